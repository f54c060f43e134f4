"""Which wire shapes one recorded stream shows, in a closed vocabulary; never what it says."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from importlib.resources import files
from itertools import pairwise
from typing import Any

from fragmentlab.assembler.assembler import Framing
from fragmentlab.wire.events import has_comments, payloads
from fragmentlab.wire.fragments import choices_of, fragments_of, function_of

SHAPES: dict[str, str] = json.loads(files(__package__).joinpath("shapes.json").read_bytes())
"""Label of a shape -> what it means. The order is that of the tables."""


def observe(body: bytes, framing: Framing) -> frozenset[str]:
    """Return the labels of SHAPES that the stream shows; empty where it has no fragment of a tool call.

    Events that are no chunk are passed over; the assembler says what is wrong with them.
    """
    seen = _Seen()
    done = False
    for data in payloads(body, framing):
        done = done or data.strip(b" \t") == b"[DONE]"
        for document in data.split(b"\n"):
            with suppress(ValueError, RecursionError):
                seen.chunk(json.loads(document))
    seen.note("comments", framing == "sse" and has_comments(body))
    seen.note("no [DONE]", framing == "sse" and not done)
    return seen.all_shapes()


class _Seen:
    """What was seen so far; calls go by the text of their index."""

    def __init__(self) -> None:
        self._shapes: set[str] = set()
        self._ids: dict[str, Any] = {}
        self._names: dict[str, Any] = {}
        self._order: list[int | str] = []
        self._responses: set[str] = set()
        self._finishes: list[str] = []
        self._deltas = 0

    def note(self, shape: str, is_shown: bool) -> None:
        if is_shown and shape in SHAPES:
            self._shapes.add(shape)

    def chunk(self, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            return
        if isinstance(chunk.get("id"), str) and chunk["id"]:
            self._responses.add(chunk["id"])
        self.note("empty choices", chunk.get("choices") == [])
        fragments = list(fragments_of(chunk))
        self.note("several in a chunk", len({repr(fragment.get("index")) for fragment in fragments}) > 1)
        for choice in choices_of(chunk):
            if isinstance(choice.get("delta"), dict):
                self._delta(choice["delta"])
            if isinstance(finish := choice.get("finish_reason"), str) and finish:
                self._finishes.append(finish)
                self.note("finish with fragment", bool(fragments))
        for fragment in fragments:
            self._fragment(fragment)

    def all_shapes(self) -> frozenset[str]:
        """Add what the whole response shows."""
        counts = Counter(self._order)
        whole = [index for index in counts if isinstance(index, int) and index >= 0]
        self.note("one fragment", 1 in counts.values())
        self.note("base above 0", min(whole, default=0) > 0)
        self.note("interleaved", sum(one != other for one, other in pairwise(self._order)) >= len(counts))
        self.note("response id changes", len(self._responses) > 1)
        self.note("no finish", not self._finishes)
        self.note("finish repeated", len(self._finishes) > 1)
        self.note("finish stop", set(self._finishes) == {"stop"})
        return frozenset(self._shapes if self._order else ())

    def _delta(self, delta: dict[str, Any]) -> None:
        if self._deltas and "role" in delta:
            self.note("role null" if delta["role"] is None else "role repeated", True)
        self._deltas += 1
        self.note("tool_calls null", delta.get("tool_calls", ()) is None)
        self.note("legacy function_call", delta.get("function_call") is not None)

    def _fragment(self, fragment: dict[str, Any]) -> None:
        index, function = fragment.get("index"), function_of(fragment)
        arguments = function.get("arguments", "")
        self.note("no index", index is None)
        self.note("negative index", type(index) is int and index < 0)
        self.note("arguments null", arguments is None)
        self.note("arguments not text", not isinstance(arguments, str | None))
        call = repr(index)
        self._order.append(index if type(index) is int else call)
        if call not in self._ids:
            self._ids[call], self._names[call] = fragment.get("id"), function.get("name")
            self.note("first id missing", not fragment.get("id"))
            self.note("type missing", not fragment.get("type"))
            return
        how = _how(fragment, "id", self._ids[call])
        if how == "other" and not self._ids[call]:
            self._ids[call] = fragment["id"]
        else:
            self.note(f"id {how}", True)
        self.note(f"name {_how(function, 'name', self._names[call])}", True)
        if "type" in fragment:
            self.note("type null" if fragment["type"] is None else "type repeated", True)


def _how(holder: dict[str, Any], name: str, known: Any) -> str:
    """How a field is said that was said before, in the words of SHAPES."""
    if name not in holder:
        return "omitted"
    value = holder[name]
    if value is None or value == "":
        return "null" if value is None else "empty"
    return "repeated" if value == known else "other"
