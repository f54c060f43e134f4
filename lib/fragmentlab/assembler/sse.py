"""Bytes to events: Server-Sent Events by the WHATWG standard, and JSON Lines recordings.

An event is a tuple (type, data, oversized): ``type`` is None without an event field; ``data`` is bytes, or
None where the event had no data line; ``oversized`` says that a line passed the limit and was dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

Event = tuple[bytes | None, bytes | None, bool]
_BOM = b"\xef\xbb\xbf"
_LONGEST_FIELD = len(b"event")


class _Lines:
    """Split reads into lines at LF, CRLF or CR, keeping at most one unfinished line of bounded size."""

    def __init__(self, limit: int) -> None:
        self.comments = 0
        self.ignored = 0
        """Lines that the standard ignores and that look like an error: a field ``error``, or bare JSON."""
        self._limit = limit
        self._tail = bytearray()
        self._discarding = False
        self._skip_lf = False
        self._started = False
        self._prefix = b""

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
        if self._discarding and lines:
            self._discarding = False
            del lines[0]
        return lines

    def _last_line(self) -> bytes:
        """Return the unfinished line at the end of the body, empty where the last line ended."""
        if not self._started:
            self._tail += self._prefix
        line, self._tail = bytes(self._tail), bytearray()
        return line

    def _discard(self) -> None:
        self._tail.clear()
        self._discarding = True


class SSEDecoder(_Lines):
    """Decode an event stream; ``limit`` is the most bytes of one event's data, its lines joined."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._reset()

    def _reset(self) -> None:
        self._type: bytes | None = None
        self._data: bytes | bytearray | None = None
        self._oversized = False
        self._reported = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield each event that this read completes, and an oversized one as soon as a line passes the limit.

        What stands after an event is not looked at before the next one is asked for.
        """
        for line in self._split(data):
            event = self._line(line) if line else self._dispatch()
            if event is not None:
                yield event
        if self._tail:
            event = self._bound_tail()
            if event is not None:
                yield event

    def finish(self) -> tuple[list[Event], Event | None, bool]:
        """Return the events still complete, one that was cut inside a line, and whether any was cut."""
        line = self._last_line()
        cut = bool(line) or self._discarding
        oversized = self._line(line) if line and not self._discarding else None
        pending = self._dispatch()
        events = [event for event in (oversized, None if cut else pending) if event is not None]
        return events, pending if cut else None, bool(line) or (cut and pending is not None)

    def _line(self, line: bytes) -> Event | None:
        """Take one line that is not empty; return the event that it made too large."""
        if line.startswith(b"data:") or line == b"data":
            value = line[6:] if line[5:6] == b" " else line[5:]
            data = self._data
            size = len(value) if data is None else len(data) + 1 + len(value)
            if size > self._limit:
                return self._pass_limit(is_data=True)
            if self._oversized:
                return None
            if data is None:
                self._data = value
            else:
                if isinstance(data, bytes):
                    self._data = data = bytearray(data)
                data += b"\n" + value
        elif line[0] == 58:
            self.comments += 1
        elif len(line) > self._limit and _value_size(line) > self._limit:
            return self._pass_limit(is_data=False)
        elif line.startswith(b"event:"):
            self._type = line[7:] if line[6:7] == b" " else line[6:]
        elif line == b"event":
            self._type = b""
        elif line[0] == 123 or line.startswith(b"error:") or line == b"error":
            self.ignored += 1
        return None

    def _pass_limit(self, is_data: bool) -> Event | None:
        """Refuse at once, unless the event is known to be a ping; an error needs no data to be one."""
        self._oversized = True
        if is_data:
            self._data = b""
        if self._reported or self._type == b"ping":
            return None
        self._reported = True
        return self._type, b"" if is_data else None, True

    def _dispatch(self) -> Event | None:
        """End the event, if a line of one stood before."""
        data = self._data
        if data is None and self._type is None and not self._oversized:
            return None
        event = self._type, None if data is None else bytes(data), self._oversized
        is_reported = self._reported
        self._reset()
        return None if is_reported else event

    def _bound_tail(self) -> Event | None:
        """Keep no unfinished comment, and no unfinished line past the limit."""
        tail = self._tail
        if self._discarding:
            tail.clear()
        elif tail[0] == 58:
            self.comments += 1
            self._discard()
        elif len(tail) > self._limit or self._data is not None:
            is_data = tail.startswith(b"data:")
            joined = len(self._data) + 1 if is_data and self._data is not None else 0
            if _value_size(tail) + joined > self._limit:
                self._discard()
                return self._pass_limit(is_data)
        return None


def _value_size(line: bytes | bytearray) -> int:
    """Bytes after the colon, or the whole of a line of no known field. Never shrinks as the line grows."""
    colon = line.find(b":", 0, _LONGEST_FIELD + 1)
    if colon < 0:
        return len(line) if len(line) > _LONGEST_FIELD else 0
    return len(line) - colon - (2 if line[colon + 1 : colon + 2] == b" " else 1)


class JSONLinesDecoder(_Lines):
    """Take each line that is not empty as one event's data."""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield each event that this read completes; an oversized one as soon as it passes the limit."""
        for line in self._split(data):
            if line:
                yield self._event(line)
        if self._discarding:
            self._tail.clear()
        elif len(self._tail) > self._limit:
            self._discard()
            yield None, b"", True

    def finish(self) -> tuple[list[Event], Event | None, bool]:
        """Return the event of an unfinished last line as the cut one."""
        line = self._last_line()
        event = self._event(line) if line and not self._discarding else None
        return [], event, event is not None

    def _event(self, line: bytes) -> Event:
        return (None, b"", True) if len(line) > self._limit else (None, line, False)
