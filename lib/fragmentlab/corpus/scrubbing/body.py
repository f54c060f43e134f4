"""The lines of a body, rewritten one by one: same events, same line ends, nothing of what they said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from fragmentlab.assembler import Framing, Limits
from fragmentlab.assembler.chunks import is_complete
from fragmentlab.corpus.scrubbing.events import KEPT_EVENT_TYPES, Pieces, Replacements, scrub_event
from fragmentlab.corpus.scrubbing.fragments import FragmentTexts
from fragmentlab.corpus.scrubbing.text import fill

_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BOM = b"\xef\xbb\xbf"
_EVENT_BYTES = Limits().event_bytes


@dataclass(repr=False)
class _Event:
    """The lines of one event by number, and what their data says when joined."""

    lines: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    kind: bytes | None = None
    is_cut: bool = False

    @property
    def text(self) -> bytes:
        return b"\n".join(self.data)


def scrub_body(body: bytes, framing: Framing, replacements: Replacements) -> bytes:
    """Rewrite a body; its bytes must be verified afterwards, since broken input can break in more ways than
    one."""
    bom = _BOM if body.startswith(_BOM) else b""
    lines = [match.groups() for match in _LINE.finditer(body.removeprefix(_BOM)) if match[0]]
    events = list(_sse_events(lines) if framing == "sse" else _jsonl_events(lines))
    pieces = _pieces(events, replacements)
    written = [_line(line) if framing == "sse" else b"" for line, _ in lines]
    for number, event in enumerate(events):
        _write_event(event, written, lines, replacements, pieces.get(number, {}), framing)
    return bom + b"".join(text + end for text, (_, end) in zip(written, lines, strict=True))


def _sse_events(lines: list[tuple[bytes, ...]]) -> Iterator[_Event]:
    event = _Event()
    for number, (line, end) in enumerate(lines):
        if not line:
            yield event
            event = _Event()
        elif line.startswith(b"data:"):
            event.lines.append(number)
            event.data.append(_value(line))
        elif line == b"data":
            event.data.append(b"")
            event.lines.append(number)
        elif line.startswith(b"event:"):
            event.kind = _value(line)
        elif line == b"event":
            event.kind = b""
        event.is_cut = not end
    yield event


def _jsonl_events(lines: list[tuple[bytes, ...]]) -> Iterator[_Event]:
    for number, (line, end) in enumerate(lines):
        if line:
            yield _Event([number], [line], None, not end)


def _value(line: bytes) -> bytes:
    value = line.partition(b":")[2]
    return value[1:] if value.startswith(b" ") else value


def _pieces(events: list[_Event], replacements: Replacements) -> dict[int, Pieces]:
    texts = FragmentTexts()
    for number, event in enumerate(events):
        data = event.text
        is_read = data and len(data) <= _EVENT_BYTES and event.kind not in (b"ping", b"error")
        if is_read and (not event.is_cut or is_complete(data)):
            texts.take(number, data)
    return dict(texts.replaced(replacements.words))


def _write_event(
    event: _Event,
    written: list[bytes],
    lines: list[tuple[bytes, ...]],
    replacements: Replacements,
    pieces: Pieces,
    framing: Framing,
) -> None:
    if not event.lines:
        return
    text = event.text.decode("utf-8", "surrogateescape")
    if text.strip(" \t") == "[DONE]":
        scrubbed = text
    else:
        scrubbed = scrub_event(text, replacements, pieces, stray_bytes=_SURROGATE.search(text) is not None)
    parts = scrubbed.split("\n")
    if len(parts) != len(event.lines):
        parts = [fill(part.decode("utf-8", "surrogateescape"), stray_bytes=True) for part in event.data]
    for number, value, part in zip(event.lines, event.data, parts, strict=True):
        line = lines[number][0]
        prefix = line[: len(line) - len(value)] if framing == "sse" else b""
        written[number] = prefix + _encoded(part)


def _line(line: bytes) -> bytes:
    """Rewrite a line that holds no data: comments, types, IDs, fields of no meaning."""
    if line in (b"data", b"event"):
        return line
    name, colon, value = line.partition(b":")
    if name in (b"event", b"id", b"retry", b"data", b""):
        text = _value(line).decode("utf-8", "surrogateescape")
        if name == b"event" and text in KEPT_EVENT_TYPES:
            return line
        return name + colon + _filled(value)
    return _filled(name) + colon + _filled(value)


def _filled(data: bytes) -> bytes:
    return _encoded(fill(data.decode("utf-8", "surrogateescape"), stray_bytes=True))


def _encoded(text: str) -> bytes:
    return _SURROGATE.sub("\udcff", text).encode("utf-8", "surrogateescape")
