"""Bytes to events: Server-Sent Events by the WHATWG standard, and JSON Lines recordings.

An event is a tuple (type, data, oversized): ``type`` is None without an event field; ``data`` is bytes, or
None where the event had no data line; ``oversized`` says that a line passed the limit and was dropped.
"""

from __future__ import annotations

from typing import Protocol

Event = tuple[bytes | None, bytes | None, bool]
_BOM = b"\xef\xbb\xbf"
_LONGEST_FIELD = len(b"event")


class Decoder(Protocol):
    """Take reads of any size; give events as soon as they are complete."""

    comments: int

    def forget_after(self, position: int) -> None: ...

    def feed(self, data: bytes) -> list[Event]: ...

    def finish(self) -> tuple[list[Event], Event | None, bool]: ...


class _Lines:
    """Split reads into lines at LF, CRLF or CR, keeping at most one unfinished line of bounded size."""

    def __init__(self) -> None:
        self.comments = 0
        self._comments_at: list[int] = []
        self._tail = bytearray()
        self._skip_lf = False
        self._started = False
        self._prefix = b""

    def forget_after(self, position: int) -> None:
        """Do not count the comments that stood after the last read's event of that position, counted from
        0."""
        self.comments -= sum(at > position for at in self._comments_at)

    def _comment(self, events: list[Event]) -> None:
        self.comments += 1
        self._comments_at.append(len(events))

    def _split(self, data: bytes) -> list[bytes]:
        """Return the lines that ``data`` ends; the last, unfinished one stays in ``_tail``."""
        if not self._started:
            data = self._prefix + data
            if len(data) < 3 and _BOM.startswith(data):
                self._prefix = data
                return []
            self._started = True
            data = data.removeprefix(_BOM)
        if self._skip_lf and data:
            self._skip_lf = False
            if data[0] == 10:
                data = data[1:]
        if b"\r" in data:
            self._skip_lf = data[-1] == 13
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            lines[0] = bytes(self._tail) + lines[0]
            self._tail.clear()
        self._tail += rest
        return lines

    def _last_line(self) -> bytes:
        """Return the unfinished line at the end of the body, empty where the last line ended."""
        if not self._started:
            self._tail += self._prefix
        line, self._tail = bytes(self._tail), bytearray()
        return line


class SSEDecoder(_Lines):
    """Decode an event stream; ``limit`` is the most bytes of one event's data (line ends not counted)."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._discarding = False
        self._reset()

    def _reset(self) -> None:
        self._type: bytes | None = None
        self._data: list[bytes] = []
        self._size = 0
        self._oversized = False
        self._reported = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that this read completes, and an oversized one as soon as a line passes the
        limit."""
        events: list[Event] = []
        self._comments_at.clear()
        lines = self._split(data)
        if self._discarding and lines:
            self._discarding = False
            del lines[0]
        fresh = self._is_fresh()
        single: bytes | None = None
        for line in lines:
            if fresh:
                if single is None:
                    if line[:6] == b"data: " and len(line) <= self._limit:
                        single = line
                        continue
                elif line:
                    self._line(single, events)
                else:
                    events.append((None, single[6:], False))
                    single = None
                    continue
                single = None
            if line:
                self._line(line, events)
            elif not self._is_fresh():
                self._dispatch(events)
            fresh = self._is_fresh()
        if single is not None:
            self._line(single, events)
        self._bound_tail(events)
        return events

    def _is_fresh(self) -> bool:
        """Whether no line of an event stands before the next one."""
        return self._type is None and not self._data and not self._oversized

    def finish(self) -> tuple[list[Event], Event | None, bool]:
        """Return the events still complete, the one that the body's end cut inside a line, and whether any
        was cut."""
        events: list[Event] = []
        line = self._last_line()
        cut = bool(line) or self._discarding
        if line and not self._discarding:
            self._line(line, events)
        pending: list[Event] = []
        if not self._is_fresh():
            self._dispatch(pending)
        if not cut:
            return events + pending, None, False
        return events, pending[0] if pending else None, bool(pending) or bool(line)

    def _line(self, line: bytes, events: list[Event]) -> None:
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._size += len(value)
            if self._size > self._limit:
                self._pass_limit(events, is_data=True)
            elif not self._oversized:
                self._data.append(value)
        elif line[0] == 58:
            self._comment(events)
        elif line == b"data":
            self._data.append(b"")
        elif len(line) > self._limit and _value_size(line) > self._limit:
            self._pass_limit(events, is_data=False)
        elif line.startswith(b"event:"):
            self._type = line[7:] if line[6:7] == b" " else line[6:]
        elif line == b"event":
            self._type = b""

    def _pass_limit(self, events: list[Event], is_data: bool) -> None:
        """Refuse at once, unless the event is known to be a ping; an error needs no data to be one."""
        self._oversized = True
        if is_data:
            self._data = [b""]
        if not self._reported and self._type != b"ping":
            self._reported = True
            events.append((self._type, b"" if is_data else None, True))

    def _dispatch(self, events: list[Event]) -> None:
        if not self._reported:
            events.append((self._type, b"\n".join(self._data) if self._data else None, self._oversized))
        self._reset()

    def _bound_tail(self, events: list[Event]) -> None:
        """Keep no unfinished comment, and no unfinished line past the limit."""
        tail = self._tail
        if not tail:
            return
        if self._discarding:
            tail.clear()
        elif tail[0] == 58:
            self._comment(events)
            self._discard()
        elif len(tail) > self._limit:
            is_data = tail.startswith(b"data:")
            if _value_size(tail) + (self._size if is_data else 0) > self._limit:
                self._pass_limit(events, is_data)
                self._discard()

    def _discard(self) -> None:
        self._tail.clear()
        self._discarding = True


def _value_size(line: bytes | bytearray) -> int:
    """Bytes after the colon, or the whole of a line of no known field. Never shrinks as the line grows."""
    colon = line.find(b":", 0, _LONGEST_FIELD + 1)
    if colon < 0:
        return len(line) if len(line) > _LONGEST_FIELD else 0
    return len(line) - colon - (2 if line[colon + 1 : colon + 2] == b" " else 1)


class JSONLinesDecoder(_Lines):
    """Take each line that is not empty as one event's data."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._discarding = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that this read completes, and an oversized one as soon as its line passes the
        limit."""
        lines = self._split(data)
        if self._discarding and lines:
            self._discarding = False
            del lines[0]
        events = [event for event in map(self._event, lines) if event]
        if self._discarding:
            self._tail.clear()
        elif len(self._tail) > self._limit:
            self._tail.clear()
            self._discarding = True
            events.append((None, b"", True))
        return events

    def finish(self) -> tuple[list[Event], Event | None, bool]:
        """Return the event of an unfinished last line as the cut one."""
        event = None if self._discarding else self._event(self._last_line())
        return [], event, event is not None

    def _event(self, line: bytes) -> Event | None:
        if len(line) > self._limit:
            return None, b"", True
        return (None, line, False) if line else None
