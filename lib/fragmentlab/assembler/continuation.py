"""Most of a stream: the same chunk again, with another piece of arguments.

A chunk that went through the full order of checks and only added a piece of arguments to a known call
becomes a template:
its text with holes for the contents of the arguments and, where the last member of the root is a string
nobody decides by
(padding), of that one. A later text that differs from it only inside the holes has the same structure,
keys, depth and effect, so nothing but the piece has to be read.
"""

from __future__ import annotations

import re

import msgspec

from fragmentlab.assembler.calls import CallState
from fragmentlab.assembler.chunks import DECIDING_KEYS
from fragmentlab.assembler.sse import Event

_ARGUMENTS = re.compile(rb'"arguments": ?"')
_PADDING = re.compile(rb', ?"([a-z_]{1,32})": ?"[0-9A-Za-z]+("\})\Z')
_CONTENTS = re.compile(rb'(?:[^"\\]|\\.)*"')
_LONGEST = 4096
"""The most bytes of a piece that a template is made of."""
_NEEDLE = 5
_decode = msgspec.json.Decoder(str).decode


class Template:
    """One verified text around its holes, and the call that its pieces belong to."""

    __slots__ = ("_after", "_before", "_needle", "_start", "_tail", "call", "effects", "hits")

    def __init__(
        self, call: CallState, before: bytes, after: bytes, tail: bytes, effects: dict[str, int]
    ) -> None:
        self.call = call
        self.effects = effects
        """What one such chunk adds to the counts of tolerated oddities."""
        self.hits = 0
        self._before = before
        self._start = len(before)
        self._after = after
        self._needle = after[:_NEEDLE]
        self._tail = tail

    def pieces(self, events: list[Event], at: int, most: int) -> list[str]:
        """Return the pieces of arguments of the events from ``at`` on that differ only inside the holes."""
        before, start, after, needle, tail = self._before, self._start, self._after, self._needle, self._tail
        after_size, tail_at = len(after), -len(tail)
        found: list[str] = []
        for position in range(at, min(len(events), at + most)):
            kind, data, _ = events[position]
            if kind is not None or not data or not data.startswith(before):
                break
            end = data.find(needle, start)
            if end < 0 or not data.startswith(after, end):
                break
            if tail:
                # Letters and digits need no escape, so they are the contents of a string.
                if not data.endswith(tail) or not data[end + after_size : tail_at].isalnum():
                    break
            elif end + after_size != len(data):
                break
            try:
                found.append(_decode(data[start - 1 : end + 1]))
            except msgspec.DecodeError:
                break
        return found


def template_of(data: bytes, call: CallState, effects: dict[str, int]) -> Template | None:
    """Make a template of a verified text whose only effect was its piece for ``call``.

    None where the place of the arguments is not certain: the key must stand once in the text, spelled
    plainly, and nothing around its value may be escaped, so that no other spelling of it can be the one that
    counts.
    """
    found = _ARGUMENTS.search(data)
    if found is None or data.count(b'"arguments"') != 1:
        return None
    contents = _CONTENTS.match(data, found.end(), found.end() + _LONGEST)
    if contents is None:
        return None
    before, end = data[: found.end()], contents.end() - 1
    if b"\\" in before or b"\\" in data[end:]:
        return None
    padding = _PADDING.search(data, end)
    if padding is None or padding[1].decode() in DECIDING_KEYS:
        return Template(call, before, data[end:], b"", effects)
    opening = data.rfind(b'"', end, padding.start(2)) + 1
    return Template(call, before, data[end:opening], padding[2], effects)
