"""What one source may cost, and why something in it cannot be used."""

from __future__ import annotations

from collections import Counter

MAX_BYTES = 256 << 20
"""The most bytes that one source may be read and unpacked to, all its parts together."""
MAX_VALUES = 4_000_000
"""The most values (texts, lists, objects, rows, members) of one source that are looked at."""
MAX_DOCUMENT_VALUES = 1_000_000
"""The most values of one document that are held at once."""
BROKEN_LINE = 24
"""What a line counts whose event does not end on it, as several ways to read it are tried."""
_FREE_VALUES = 400_000
_FREE_EVENTS = 15_000
_STREAM_EVENTS = 4
_EVENT_BYTES = 80
_FREE_BYTES = 8 << 20
_MAX_RATIO = 200


class Unreadable(Exception):
    """A source or a part of it cannot be read; the message says why in the kit's own words."""


class OtherKind(Unreadable):
    """A document turned out to be of another kind than it seemed; nothing of it was yielded."""


class Exhausted(Unreadable):
    """A source passed its budget; nothing more of it is read."""


class Budget:
    """Bytes that one source may still take, values and events that it took."""

    def __init__(self, size: int = MAX_BYTES) -> None:
        """``size`` is that of the source, of which no more comes than a recording could hold."""
        self.bytes = min(MAX_BYTES, max(4 * _FREE_BYTES, _MAX_RATIO * size)) + size
        self.values = self.events = self._taken = 0
        self.noted: Counter[str] = Counter()
        """What was unusual about the source as a whole."""

    def take(self, data: bytes) -> bytes:
        """Count bytes that were read or unpacked; raise Exhausted where they are too many."""
        self.bytes -= len(data)
        self._taken += len(data)
        if self.bytes < 0:
            raise Exhausted("unpacks to more than a recording of its size could hold; unpack it and choose")
        return data

    def unpacked(self, size: int, packed: int) -> None:
        """Raise Exhausted where so few bytes unpack to so many as no recording does."""
        if size > max(_FREE_BYTES, _MAX_RATIO * packed):
            raise Exhausted(f"unpacks to more than {_MAX_RATIO} times its size, as no recording does")

    def visit(self, values: int = 1) -> None:
        """Count values; raise Exhausted where they are too many."""
        self.values += values
        allowed = min(_FREE_VALUES + self._taken, MAX_VALUES)
        if self.values > allowed:
            raise Exhausted(f"holds more than {allowed:,} values; split it")

    def judge(self, body: bytes) -> None:
        """Count the events of a stream; raise Exhausted where they are many and short as in no recording."""
        self.events += (
            _STREAM_EVENTS + max(body.count(b"data:"), body.count(b"\n{")) - len(body) // _EVENT_BYTES
        )
        if self.events > _FREE_EVENTS:
            raise Exhausted("holds more and shorter events than a recording does; split it")
