"""The structural reader: finds streamed Chat Completions bodies wherever they sit in a parsed container."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fragmentlab.corpus.importing.interactions import Step, content_encoding, facts_of, request_keys
from fragmentlab.corpus.importing.joining import as_bytes, chunks_to_body, join_list
from fragmentlab.corpus.importing.unpack import (
    Budget,
    Unreadable,
    as_body,
    from_base64,
    from_hex,
    unchunked,
    unpack,
)
from fragmentlab.corpus.importing.yaml_events import NotBase64
from fragmentlab.wire.events import looks_like_events
from fragmentlab.wire.protocols import (
    CHAT,
    is_chunk,
    is_trace,
    is_whole_answer,
    protocol_of,
)

MAX_DEPTH = 256
"""The deepest nesting that is searched, texts that hold JSON included."""
_MAX_WRAPPINGS = 4
_SHORTEST_BASE64 = 16
_DATA_ADDRESS = re.compile(r"\Adata:[\w/+.;=-]*;base64,")
_NOT_BASE64 = "is said to be Base64 and is not"
_WORTH_PARSING = ("choices", "data:", '["', '[ "', "b64", "base64")


@dataclass(frozen=True, repr=False)
class Found:
    """One body with its place: ``steps`` lead from the document to it; ``protocol`` is None where no event
    says."""

    body: bytes
    fidelity: str
    steps: tuple[Step, ...]
    protocol: str | None
    record: dict[str, Any] | None = None
    """The kit's own stream record, where the body came from one."""

    @property
    def place(self) -> str:
        """The place in the document, like ``interactions[3].response.body.string``."""
        text = ""
        for _, key in self.steps:
            text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
        return text or "document"


class Finder:
    """Searches the documents of one file; ``seen`` counts what is not a streamed body but worth naming."""

    def __init__(self, budget: Budget) -> None:
        self.seen: Counter[str] = Counter()
        self.broken: list[str] = []
        """Reasons why single bodies could not be unpacked."""
        self.budget = budget

    def find(self, document: Any) -> Iterator[Found]:
        """Yield each body of the document in order; raise Unreadable where it is nested too deeply or
        unpacks too far."""
        if is_chunk(document):
            document = [document]
        yield from self._value(document, ())

    def _value(self, value: Any, steps: tuple[Step, ...], wrappings: int = 0) -> Iterator[Found]:
        if len(steps) > MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}")
        if isinstance(value, dict):
            yield from self._mapping(value, steps, wrappings)
        elif isinstance(value, list):
            yield from self._list(value, steps, wrappings)
        elif isinstance(value, str):
            yield from self._text(value, steps, wrappings)
        elif isinstance(value, bytes):
            yield from self._bytes(value, steps, wrappings)

    def _mapping(self, value: dict[str, Any], steps: tuple[Step, ...], wrappings: int) -> Iterator[Found]:
        if (record := _kit_record(value)) is not None:
            yield Found(record, value["fidelity"], steps, CHAT, value)
            return
        if (data := as_bytes(value)) is not None:
            yield from self._bytes(data, steps, wrappings)
            return
        if value and all(isinstance(key, str) and key.isdecimal() for key in value):
            yield from self._list([value[key] for key in sorted(value, key=int)], steps, wrappings)
            return
        if fault := _fault_of_content(value, steps):
            self.broken.append(fault)
        if is_whole_answer(value):
            self.seen["answers that were not streamed"] += 1
        if is_trace(value):
            self.seen["assembled messages of a trace"] += 1
        skipped = request_keys(value)
        for key, item in value.items():
            if key not in skipped:
                yield from self._value(item, (*steps, (value, key)), wrappings)

    def _list(self, value: list[Any], steps: tuple[Step, ...], wrappings: int) -> Iterator[Found]:
        if (data := as_bytes(value)) is not None:
            yield from self._bytes(data, steps, wrappings)
            return
        joined = join_list(value, content_encoding(steps), self.budget)
        if joined is not None:
            body, fidelity = joined
            yield self._found(body, fidelity, steps)
            return
        for number, item in enumerate(value):
            yield from self._value(item, (*steps, (value, number)), wrappings)

    def _text(self, text: str, steps: tuple[Step, ...], wrappings: int) -> Iterator[Found]:
        if isinstance(text, NotBase64):
            self.broken.append(_NOT_BASE64)
            return
        if "data:" in text:
            body = unchunked(as_body(text))
            if looks_like_events(body):
                yield self._found(body, "events", steps)
                return
        if wrappings >= _MAX_WRAPPINGS:
            return
        start = text[:64].lstrip()[:1]
        if start and start in '{["':
            if any(sign in text for sign in _WORTH_PARSING):
                yield from self._json_text(text, steps, wrappings)
            return
        packed = _DATA_ADDRESS.sub("", text, count=1)
        for decode in (from_hex, from_base64):
            data = decode(packed, self.budget)
            if data is not None:
                yield from self._bytes(data, steps, wrappings + 1)
                return

    def _json_text(self, text: str, steps: tuple[Step, ...], wrappings: int) -> Iterator[Found]:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            if is_chunk_lines(text):
                yield self._found(as_body(text), "chunks", steps)
            return
        if is_chunk(document):
            yield self._found(chunks_to_body([document]), "chunks", steps)
        else:
            yield from self._value(document, steps, wrappings + 1)

    def _bytes(self, data: bytes, steps: tuple[Step, ...], wrappings: int) -> Iterator[Found]:
        try:
            body = unpack(data, content_encoding(steps), self.budget)
        except Unreadable as reason:
            if self.budget.left < 0:
                raise
            self.broken.append(str(reason))
            return
        if looks_like_events(body):
            yield self._found(body, "events", steps)
            return
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return
        yield from self._text(text, steps, wrappings + 1)

    def _found(self, body: bytes, fidelity: str, steps: tuple[Step, ...]) -> Found:
        return Found(body, fidelity, steps, CHAT if fidelity == "chunks" else protocol_of(body))


def is_chunk_lines(text: str) -> bool:
    """Whether the text is JSON Lines of chunk objects, by its first line that is JSON."""
    for line in text.split("\n", 16)[:16]:
        try:
            return is_chunk(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return False


def _fault_of_content(value: dict[str, Any], steps: tuple[Step, ...]) -> str | None:
    """Say what is wrong with HAR's ``content`` of a streamed answer: browsers often keep none."""
    kind, text = value.get("mimeType"), value.get("text")
    if not isinstance(kind, str) or "event-stream" not in kind or facts_of(steps).path is None:
        return None
    if not text:
        return "of an event stream was not kept by the recorder"
    if value.get("encoding") == "base64" and isinstance(text, str) and not text.startswith(("[", "{")):
        is_broken = len(text) >= _SHORTEST_BASE64 and from_base64(text, Budget()) is None
        return _NOT_BASE64 if is_broken else None
    return None


def _kit_record(value: dict[str, Any]) -> bytes | None:
    """Return the body of a stream record of a batch (docs/design.md, section 7), None for anything else."""
    if not {"id", "provider", "fidelity", "end", "pair"} <= value.keys():
        return None
    if isinstance(body := value.get("body"), str):
        return as_body(body)
    if isinstance(packed := value.get("body_base64"), str):
        return from_base64(packed, Budget()) or None
    return None
