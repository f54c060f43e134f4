"""Most of a stream: the same chunk again, with another piece of arguments.

A chunk that went through the full order of checks and only added a piece of arguments to a known call
becomes a template: its text with holes for the contents of the arguments and for the values of root members
that nobody decides by and that are seen to vary (padding, a timestamp). A later text that differs from it
only inside the holes, and fills each with the contents of a string or with a whole number as the template
has there, has the same structure, keys, depth and effect; so nothing but the piece has to be read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

from fragmentlab.assembler.calls import CallState
from fragmentlab.assembler.chunks import DECIDING_KEYS
from fragmentlab.assembler.sse import Event

_MEMBER = rb'"([A-Za-z_]{1,40})": ?(?:"([^"\\]*)"|(0|[1-9][0-9]*)|null|true|false)'
_LEADING = re.compile(rb"\{(?:" + _MEMBER + rb", ?)*(?=\"choices\")")
_TRAILING = re.compile(rb"(?<=\])(?:, ?" + _MEMBER + rb")*\}\Z")
_LAST = re.compile(rb", ?" + _MEMBER + rb"\}\Z")
_SCALAR = re.compile(_MEMBER)
_ARGUMENTS = re.compile(rb'"arguments": ?"')
_CONTENTS = re.compile(rb'(?:[^"\\]|\\.)*"')
_LONGEST = 4096
"""The most bytes of a piece that a template is made of."""
_NEEDLE = 5
_PIECE, _STRING, _NUMBER = range(3)
_Span = tuple[int, int, int]
"""Start and end of a hole's contents, and the hole's kind."""
_Hole = tuple[int, bytes, bytes, int]
"""A hole's kind, the text that follows it up to the next one, the beginning of that, and its length."""
_decode = msgspec.json.Decoder(str).decode


@dataclass(slots=True, repr=False)
class Template:
    """One verified text around its holes, and the call that its pieces belong to."""

    call: CallState
    effects: dict[str, int]
    """What one such chunk adds to the counts of tolerated oddities."""
    text: bytes
    varying: frozenset[bytes] | None
    """Keys of root members that are known to vary; None where only a string at the end is held to."""
    before: bytes
    holes: tuple[_Hole, ...]
    hits: int = field(default=0)

    def pieces(self, events: list[Event], at: int, most: int) -> list[str]:
        """Return the pieces of arguments of the events from ``at`` on that differ only inside the holes."""
        before, first, holes = self.before, len(self.before), self.holes
        found: list[str] = []
        for position in range(at, min(len(events), at + most)):
            kind, data, _ = events[position]
            if kind is not None or not data or data[:first] != before:
                break
            start = first
            for kind_of_hole, after, needle, size in holes:
                end = data.find(needle, start)
                if end < 0 or data[end : end + size] != after:
                    return found
                if kind_of_hole == _PIECE:
                    try:
                        piece = _decode(data[start - 1 : end + 1])
                    except msgspec.DecodeError:
                        return found
                elif not _may_fill(kind_of_hole, data, start, end):
                    return found
                start = end + size
            if start != len(data):
                break
            found.append(piece)
        return found


def _may_fill(kind: int, data: bytes, start: int, end: int) -> bool:
    """Whether the contents make a string, or a whole number, of what stands around them."""
    contents = data[start:end]
    if kind == _NUMBER:
        return contents.isdigit() and (contents[0] != 48 or len(contents) == 1)
    if contents.isalnum():
        return True
    try:
        _decode(data[start - 1 : end + 1])
    except msgspec.DecodeError:
        return False
    return True


def template_of(
    data: bytes, call: CallState, effects: dict[str, int], previous: Template | None = None
) -> Template | None:
    """Make a template of a verified text whose only effect was its piece for ``call``.

    What varies is learned from ``previous``, the last template of the response, where no text fitted it. None
    where the place of the arguments is not certain: the key must stand once in the text, spelled plainly, and
    nothing around its value may be escaped, so that no other spelling of it can be the one that counts.
    """
    found = _ARGUMENTS.search(data)
    if found is None or data.count(b'"arguments"') != 1:
        return None
    contents = _CONTENTS.match(data, found.end(), found.end() + _LONGEST)
    if contents is None:
        return None
    start, end = found.end(), contents.end() - 1
    if b"\\" in data[:start] or b"\\" in data[end:]:
        return None
    varying = previous.varying if previous else None
    if previous and not previous.hits:
        then, now = (_values(text, _root_members(text)) for text in (previous.text, data))
        varying = (varying or frozenset()).union(key for key in now if now[key] != then.get(key))
    if varying is None:
        spans = {
            key: span
            for key, span in _members(_LAST.match(data, data.rfind(b",", end))).items()
            if span[2] == _STRING
        }
    else:
        spans = {key: span for key, span in _root_members(data).items() if key in varying}
    places = sorted([(start, end, _PIECE), *spans.values()])
    return Template(call, effects, data, varying, data[: places[0][0]], _holes(data, places))


def _root_members(data: bytes) -> dict[bytes, _Span]:
    """Return the root's flat members before and after the choices.

    The text is one JSON object, so flat members from its first brace on, or up to its last one, are the
    root's.
    """
    return _members(_LEADING.match(data)) | _members(_TRAILING.search(data))


def _members(region: re.Match[bytes] | None) -> dict[bytes, _Span]:
    """Return the region's members whose value is a string or a whole number and that nobody decides by."""
    spans = {}
    for member in _SCALAR.finditer(region.string, *region.span()) if region else ():
        group = 2 if member[2] is not None else 3
        if member[group] is not None and member[1].decode() not in DECIDING_KEYS:
            spans[member[1]] = (*member.span(group), _STRING if group == 2 else _NUMBER)
    return spans


def _values(data: bytes, spans: dict[bytes, _Span]) -> dict[bytes, bytes]:
    return {key: data[start:end] for key, (start, end, _) in spans.items()}


def _holes(data: bytes, places: list[_Span]) -> tuple[_Hole, ...]:
    nexts = [start for start, _, _ in places[1:]] + [len(data)]
    afters = [data[end:after] for (_, end, _), after in zip(places, nexts, strict=True)]
    return tuple(
        (kind, after, after[:_NEEDLE], len(after)) for (_, _, kind), after in zip(places, afters, strict=True)
    )
