"""Server-Sent Events, written and read: outside the assembler, the one place that knows ``data:``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fragmentlab.assembler.assembler import Framing
from fragmentlab.assembler.sse import Event, JSONLinesDecoder, SSEDecoder

DONE = b"data: [DONE]\n\n"
"""The event that marks the end of a response."""
_BLOCK = 1 << 16
_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?([^:]*)(?:: ?|\Z)")
_COMMENT = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n]):")
_EVENT_LINE = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])data:[ \t]*(?:[\[{\"]|\[DONE\])")


def event(data: str | bytes | Mapping[str, Any], name: str | None = None) -> bytes:
    r"""Return one event; a mapping is written as JSON, a line break in text begins another data line.

    >>> event({"choices": []})
    b'data: {"choices":[]}\n\n'
    """
    text = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json_bytes(data)
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"".join(b"data: " + line + b"\n" for line in text.split(b"\n")) + b"\n"


def body(chunks: Iterable[str | bytes | Mapping[str, Any]], done: bool = True) -> bytes:
    """Return the body of a response: an event for each chunk, then the end marker."""
    return b"".join(map(event, chunks)) + (DONE if done else b"")


def json_bytes(value: Any) -> bytes:
    """Write compact JSON as UTF-8; half of a surrogate pair can only be written escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def payloads(body: bytes, framing: Framing) -> Iterator[bytes]:
    """Yield the data of each event as the assembler's decoder reads it, one that was cut off included."""
    for _, data, _ in _decoded(body, framing):
        if data:
            yield data


def _decoded(body: bytes, framing: Framing) -> Iterator[Event]:
    decoder = (SSEDecoder if framing == "sse" else JSONLinesDecoder)(len(body))
    for start in range(0, len(body), _BLOCK):
        yield from decoder.feed(body[start : start + _BLOCK])
    events, cut, _ = decoder.finish()
    yield from events
    if cut:
        yield cut


def looks_like_events(body: bytes) -> bool:
    """Return whether a line of the text is an event's data and could be JSON or the end marker."""
    return b"data:" in body and _EVENT_LINE.search(body) is not None


def has_comments(body: bytes) -> bool:
    """Return whether the event stream has comment lines, which servers send to keep a connection alive."""
    return _COMMENT.search(body) is not None


class Line(NamedTuple):
    """One line of a body, in pieces as written.

    They are the field with its colon and blank, its value and the line's end; beside them stands the field's
    name, which is ``data`` for every line of JSON Lines and empty for a comment and a blank line.
    """

    head: bytes
    value: bytes
    end: bytes
    name: bytes

    @property
    def written(self) -> bytes:
        """The line as it stands in the body."""
        return self.head + self.value + self.end


def line_groups(body: bytes, framing: Framing) -> Iterator[list[Line]]:
    """Yield the lines of a body event by event, each with the blank line that ends it."""
    group: list[Line] = []
    for match in filter(lambda match: match[0], _LINE.finditer(body)):
        text, end = match.groups()
        if framing == "jsonl":
            bom = _BOM if match.start() == 0 and text.startswith(_BOM) else b""
            yield [Line(bom, text.removeprefix(bom), end, b"data")]
            continue
        head = _HEAD.match(text)
        assert head is not None
        group.append(Line(head[0], text[head.end() :], end, head[1]))
        if not text:
            yield group
            group = []
    if group:
        yield group


def data_of(group: Iterable[Line]) -> list[bytes]:
    """Return the values of an event's data lines."""
    return [line.value for line in group if line.name == b"data"]
