"""One recorded stream: its bytes, and what is known of where they came from."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fragmentlab.assembler import Limits, Result, RuleSet, Tools, assemble
from fragmentlab.assembler.assembler import End, Framing
from fragmentlab.assembler.proposal import AnyTools
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.errors import InputError

MAX_STREAM_BYTES = 64 << 20
"""The largest single stream that is read from a file; a stream that passes every limit is far smaller."""
EVIDENCE = ("controlled", "captured", "live", "imported")
FIDELITIES = ("reads", "events", "chunks")
ENDS = ("clean", "aborted", "unknown")
_LIMITS = Limits()
_CONTENT_ID = re.compile(r"s-[0-9a-f]{16}(-[0-9]{1,9})?")
_OTHER_LINE = re.compile(rb"[\r\n](?!(?:data|event|id|retry)?:|[\r\n]|\Z)")
_FIELD_LINE = re.compile(rb"(?:^|[\r\n])(?:\xef\xbb\xbf)?(?:data|event|id|retry)?:")


@dataclass(frozen=True)
class Stream:
    """One streamed response as it was recorded or made, and what it is judged by.

    ``tools`` are the known tools, or None where they are unknown; ``pair`` names a control and its target;
    ``framed`` states the framing where it must not be told from the body.

    >>> Stream("s-1", b"data: [DONE]\\n\\n", end="clean").assemble().category
    'completion.no_finish_reason'
    """

    id: str
    body: bytes
    provider: str | None = None
    server: str | None = None
    model: str | None = None
    tools: tuple[Any, ...] | None = None
    fidelity: str = "events"
    end: End = "unknown"
    pair: str | None = None
    evidence: str = "captured"
    limits: Limits = _LIMITS
    framed: Framing | None = None

    def assemble(
        self,
        rules: str | RuleSet = DEFAULT_RULES,
        *,
        diagnose: bool = False,
        tools: AnyTools | None = None,
        limits: Limits | Mapping[str, int] | None = None,
    ) -> Result:
        """Return the outcome of the stream; ``tools`` and ``limits`` take the place of its own.

        Raises InputError where a tool has no usable name or schema.
        """
        known = self.tools if tools is None else tools
        try:
            known = known if known is None or isinstance(known, Tools) else Tools(known)
        except ValueError:
            raise InputError("a tool of the stream has no usable name or schema") from None
        return assemble(
            self.body,
            rules=rules,
            tools=known,
            limits=self.limits if limits is None else limits,
            diagnose=diagnose,
            framing=self.framing,
            end=self.end,
        )

    @property
    def framing(self) -> Framing:
        """``jsonl`` where the first non-blank byte is ``{``; otherwise ``sse``."""
        return self.framed or framing_of(self.body)

    @property
    def body_sha256(self) -> str:
        """The SHA-256 of the body, in hex."""
        return hashlib.sha256(self.body).hexdigest()

    @property
    def shown_id(self) -> str:
        """The id as it may leave: one that is no content hash may name a file or a customer."""
        return self.id if _CONTENT_ID.fullmatch(self.id) else stream_id(self.body)

    def __repr__(self) -> str:
        return f"Stream({self.shown_id}, {len(self.body)} bytes)"


def stream_id(body: bytes) -> str:
    """Name a stream by its content, never by a file name."""
    return "s-" + hashlib.sha256(body).hexdigest()[:16]


def framing_of(body: bytes) -> Framing:
    """Tell JSON Lines from an event stream by the first non-blank byte."""
    return "jsonl" if body.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")[:1] == b"{" else "sse"


def plain_stream(data: bytes) -> Stream | None:
    """Return the stream that a file is as it stands; None where something else may be around it.

    It must be an event stream in which every line is a field or a comment, or chunks as JSON Lines.
    """
    if framing_of(data) == "jsonl":
        lines = [line for line in data.splitlines() if line.strip()]
        is_plain = all(line.lstrip()[:1] == b"{" for line in lines) and b'"choices"' in lines[0]
    else:
        is_plain = _FIELD_LINE.match(data) is not None and _OTHER_LINE.search(data) is None
    return Stream(stream_id(data), data) if is_plain else None


def own_id(wanted: str, ids: Counter[str]) -> str:
    """Return ``wanted``, numbered where it was given before, and note it in ``ids``."""
    name = wanted
    while name in ids:
        ids[wanted] += 1
        name = f"{wanted}-{ids[wanted]}"
    ids[name] = 1
    return name
