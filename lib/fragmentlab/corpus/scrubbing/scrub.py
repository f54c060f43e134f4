"""Streams without their content: the same outcome, faults, timeline and shape, and nothing of what was said.

Everything is replaced unless its path and value are on the allow-list (allowed.json). Each scrubbed
stream is proven on the spot: what the assembler says of it, diagnosing, must be what it says of the original.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fragmentlab.assembler import Result
from fragmentlab.assembler.rules import DEFAULT_RULES, SHIPPED
from fragmentlab.corpus.scrubbing.aliases import NoPlaceholder
from fragmentlab.corpus.scrubbing.body import TooLarge, scrub_body
from fragmentlab.corpus.scrubbing.event_data import Replacements
from fragmentlab.corpus.scrubbing.tool_schema import scrub_schema
from fragmentlab.corpus.streams import Stream, own_id, stream_id
from fragmentlab.disclosure import KINDS
from fragmentlab.errors import InputError

_PAIR = re.compile(r"pair-[0-9]{1,9}")
_TIMELINE_INDICES = range(-1, 128)


class Unscrubbable(Exception):
    """The scrubbed stream does not behave as the original; the message names what differs, never a value."""


@dataclass(repr=False)
class Scrubber:
    """Scrubs the streams of one batch with one set of placeholders; ``refused`` counts why some could not."""

    refused: Counter[str] = field(default_factory=Counter)
    _replacements: Replacements = field(default_factory=Replacements)
    _pairs: dict[str, str] = field(default_factory=dict)
    _ids: Counter[str] = field(default_factory=Counter)

    def scrub_all(self, streams: Iterable[Stream]) -> Iterator[Stream]:
        """Yield each stream scrubbed; one that cannot be proven is counted and left out."""
        for stream in streams:
            try:
                yield self.scrub(stream)
            except Unscrubbable as error:
                self.refused[str(error)] += 1

    def scrub(self, stream: Stream) -> Stream:
        """Return the stream scrubbed, or raise Unscrubbable."""
        try:
            tools = None if stream.tools is None else tuple(self._tool(tool) for tool in stream.tools)
            body = scrub_body(stream, self._replacements)
        except TooLarge as error:
            raise Unscrubbable(str(error)) from None
        except NoPlaceholder:
            raise Unscrubbable("its batch has more short words of one form than placeholders") from None
        except RecursionError:
            raise Unscrubbable("the schema of a known tool is nested too deeply") from None
        names: Any = self._replacements.names
        shown = {kind: names.show(kind, getattr(stream, kind)) for kind in KINDS}
        pair = self._pair(stream.pair)
        scrubbed = replace(stream, id=stream_id(body), body=body, tools=tools, pair=pair, **shown)
        verify(stream, scrubbed)
        # Streams that differed in content only have one body now, but stay two.
        return replace(scrubbed, id=own_id(scrubbed.id, self._ids))

    def _tool(self, tool: Any) -> Any:
        words = self._replacements.words
        if isinstance(tool, str):
            return words.of("tool", tool)
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            renamed: dict[str, Any] = {"name": words.of("tool", tool["name"])}
            if tool.get("schema") is not None:
                renamed["schema"] = scrub_schema(tool["schema"], words)
            return renamed
        raise Unscrubbable("a known tool is neither a name nor an object with one")

    def _pair(self, pair: str | None) -> str | None:
        if pair is None or _PAIR.fullmatch(pair):
            return pair
        return self._pairs.setdefault(pair, f"pair-{len(self._pairs) + 1:04d}")


def verify(original: Stream, scrubbed: Stream) -> None:
    """Raise Unscrubbable unless every shipped rule set finds the same in both.

    That is faults, timeline, counts and tolerances. Schemas, which can be dear to check, know no rules.
    """
    if original.framing != scrubbed.framing:
        raise Unscrubbable("the framing differs")
    for rules in SHIPPED:
        sides = (
            (original, scrubbed) if rules == DEFAULT_RULES else map(_without_schemas, (original, scrubbed))
        )
        try:
            before, after = (_facts(side.assemble(rules, diagnose=True)) for side in sides)
        except InputError as error:
            raise Unscrubbable(str(error)) from None
        for name, value in before.items():
            if after[name] != value:
                raise Unscrubbable(f"the {name} would differ")


def _without_schemas(stream: Stream) -> Stream:
    names = [tool["name"] if isinstance(tool, dict) else tool for tool in stream.tools or ()]
    return replace(stream, tools=None if stream.tools is None else tuple(names))


def _facts(result: Result) -> dict[str, Any]:
    return {
        "outcome": (result.outcome, result.category),
        "faults": [fault.to_json() for fault in result.faults],
        # Indices that no call can have are replaced like any number.
        "timeline": [
            asdict(row) | ({} if row.index in _TIMELINE_INDICES else {"index": None})
            for row in result.timeline
        ],
        "counts": result.counts,
        "tolerances": result.tolerances,
        "calls": [(call.index, call.alias, len(call.name), len(call.arguments)) for call in result.calls],
    }
