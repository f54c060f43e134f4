"""The lines of a body, rewritten event by event: same events, same line ends, nothing of what they said."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.assembler.chunks import is_complete
from fragmentlab.corpus.scrubbing.event_data import KEPT_EVENT_TYPES, Pieces, Replacements, scrub_event
from fragmentlab.corpus.scrubbing.fragment_texts import FragmentTexts
from fragmentlab.corpus.scrubbing.text import fill
from fragmentlab.corpus.streams import Stream
from fragmentlab.wire.events import Line, data_of, line_groups

MAX_SCRUB_BYTES = 16 << 20
MAX_SCRUB_VALUES = 4_000_000
"""The most lines and JSON tokens of one body: what a stream that passes every limit never has."""
_FIELDS = (b"event", b"id", b"retry", b"data", b"error", b"")
_SURROGATE = re.compile("[\ud800-\udfff]")


class TooLarge(Exception):
    """The body passes the budget; the message says which one."""


def scrub_body(stream: Stream, replacements: Replacements) -> bytes:
    """Return a stream's body rewritten, to be verified: broken input can break in more ways than one.

    Raises TooLarge where the body passes MAX_SCRUB_BYTES or MAX_SCRUB_VALUES.
    """
    return b"".join(_Body(stream, replacements).written())


class _Body:
    def __init__(self, stream: Stream, replacements: Replacements) -> None:
        if len(stream.body) > MAX_SCRUB_BYTES:
            raise TooLarge(f"it is larger than {MAX_SCRUB_BYTES >> 20} MiB")
        self._body, self._framing, self._limits = stream.body, stream.framing, stream.limits
        self._replacements = replacements
        self._left = MAX_SCRUB_VALUES

    def written(self) -> Iterator[bytes]:
        """Yield the body, rewritten, in parts."""
        pieces = self._pieces()
        for number, group in enumerate(line_groups(self._body, self._framing)):
            data = data_of(group)
            parts = iter(self._data(data, pieces.get(number, {})))
            for line in group:
                yield line.head + next(parts) + line.end if line.name == b"data" else _other_line(line)

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise TooLarge(f"it holds more than {MAX_SCRUB_VALUES:,} values")

    def _pieces(self) -> dict[int, Pieces]:
        texts = FragmentTexts(self._limits)
        for number, group in enumerate(line_groups(self._body, self._framing)):
            self._spend(len(group))
            data = b"\n".join(data_of(group))
            kind = next((line.value for line in reversed(group) if line.name == b"event"), b"")
            is_read = data and len(data) <= self._limits.event_bytes and kind not in (b"ping", b"error")
            if is_read and (group[-1].end or is_complete(data)):
                texts.take(number, data)
        return dict(texts.replaced(self._replacements.words))

    def _data(self, values: list[bytes], pieces: Pieces) -> list[bytes]:
        """Return what stands in the place of an event's data, for each of its lines."""
        if not values:
            return []
        text = b"\n".join(values).decode("utf-8", "surrogateescape")
        if text.strip(" \t") == "[DONE]":
            return values
        written = []
        is_large = 2 * len(text) > self._limits.event_bytes
        for token in scrub_event(text, self._replacements, pieces, keeps_size=is_large):
            self._spend(1)
            written.append(token)
        lines = "".join(written).split("\n")
        return (
            [_encoded(line) for line in lines] if len(lines) == len(values) else [_filled(v) for v in values]
        )


def _other_line(line: Line) -> bytes:
    """Rewrite a line that holds no data: comments, types, IDs, fields of no meaning."""
    if line.name == b"event" and line.value.decode("utf-8", "replace") in KEPT_EVENT_TYPES:
        return line.written
    name = line.name
    # What begins like JSON is counted as a line that was ignored.
    brace = name[:1] if name.startswith(b"{") else b""
    head = line.head if name in _FIELDS else line.head.replace(name, brace + _filled(name[len(brace) :]), 1)
    return head + _filled(line.value) + line.end


def _filled(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    return _encoded(fill(text, stray_bytes=True))


def _encoded(text: str) -> bytes:
    return _SURROGATE.sub("\udcff", text).encode("utf-8", "surrogateescape")
