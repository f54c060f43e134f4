"""A parsed value of any shape: the texts, bytes and chunk objects in it, and which of them are one body.

What stands at the same path below a list, positions aside, is a column. A column of chunks is the events of a
response; a column of texts or bytes is the pieces of a body, or bodies one by one where each is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fragmentlab.corpus.importing.budget import Budget, Unreadable
from fragmentlab.corpus.importing.containers.encoded import decoded, from_base64
from fragmentlab.corpus.importing.documents import Body, Document, Item, Refusal
from fragmentlab.corpus.importing.exchanges import NO_EXCHANGE, Exchange, asked_keys, is_exchange
from fragmentlab.corpus.importing.lines import data_mark, is_log_record, names_chunk
from fragmentlab.corpus.importing.responses import BLANK_LINES_LOST, bodies, unit_of
from fragmentlab.corpus.importing.values import (
    END_MARKER,
    NotBase64,
    Number,
    as_body,
    json_text,
    json_value,
    octets,
    small_number,
)
from fragmentlab.wire.protocols import is_chunk, is_trace, is_whole_answer

MAX_DEPTH = 256
"""The deepest nesting that is searched, texts that hold JSON included."""
_MAX_WRAPPINGS = 4
_SHORTEST_OCTETS = 16
_KNOWN_KEYS = frozenset(
    "attributes base64Body base64_string body calls choices chunk chunks content data entries events "
    "httpResponse http_interactions interactions log logRecords mappings message messages output outputs raw "
    "request response response_body result results spans streamed_data string stringValue text then turns "
    "value values when".split()
)
"""Keys of known formats, which a place may name; any other is shown by its number."""
_TELLING = frozenset(
    "choices function input_messages mimeType output_messages resourceSpans scopeSpans toolCalls tool_calls "
    "traceId trace_id".split()
)
"""Keys that tell what holds no stream."""
_CLOCK = re.compile(r"(?=[^:]{10}|[0-9]{1,2}:)[0-9][0-9T:.Z+ -]*")
_FINISHED = re.compile(r'"finish_reason\\*"\s*:\s*\\*"|data:\s*\[DONE\]')
_ROLE = re.compile(r'"role\\*"\s*:\s*\\*"')
_EVENT_NAME = re.compile(r"[a-z][a-z_.-]{0,40}")
_WORTH_PARSING = ("choices", "data:", "delta", '["', '[ "', "b64", "base64", '"error"')


@dataclass(repr=False, slots=True)
class _Leaf:
    value: Any
    spot: _Spot
    name: str | None = None
    is_event: bool = False
    """Whether it is an event for certain, and not only a value that could be one."""
    is_searched: bool = False
    """Whether what it holds was searched by itself."""


@dataclass(repr=False, slots=True)
class _Column:
    """What stands at one path; ``below`` are the paths that go on from it."""

    leaves: list[_Leaf] = field(default_factory=list)
    below: dict[Any, _Column] = field(default_factory=dict)

    def at(self, key: Any) -> _Column:
        return self.below.setdefault(key, _Column())


@dataclass(repr=False, slots=True)
class _Spot:
    """A place in the value, and what is collected there; ``run`` numbers the innermost list."""

    column: _Column
    exchange: Exchange
    holder: _Spot | None = None
    key: str = ""
    run: int = 0
    depth: int = 0
    wrappings: int = 0

    def below(self, key: str, column: _Column) -> _Spot:
        return _Spot(column, self.exchange, self, key, self.run, self.depth + 1, self.wrappings)

    def keep(self, value: Any, name: str | None = None, is_event: bool = False, **facts: bool) -> None:
        self.column.leaves.append(_Leaf(value, self, name, is_event, **facts))

    def __str__(self) -> str:
        keys = []
        spot: _Spot | None = self
        while spot is not None:
            keys.append(spot.key)
            spot = spot.holder
        return "".join(reversed(keys)).removeprefix(".")


def recognise(document: Document) -> bool:
    return not isinstance(document.content, (str, bytes)) or isinstance(document.content, NotBase64)


def read(document: Document, budget: Budget) -> Iterator[Item]:
    walk = _Walk(document, budget)
    spot = _Spot(_Column(), document.exchange)
    walk.walk(document.content, spot)
    walk.settle(spot)
    if document.name and not any(isinstance(item, (Body, Document)) for item in walk.found):
        yield from _errors(document)
    yield from walk.found


class _Walk:
    def __init__(self, document: Document, budget: Budget) -> None:
        self.document = document
        self.budget = budget
        self.found: list[Item] = []
        self.runs = 0

    def walk(self, value: Any, spot: _Spot) -> None:
        self.budget.visit()
        if spot.depth > MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}")
        if isinstance(value, NotBase64):
            self.found.append(Refusal("not Base64"))
        elif isinstance(value, str) and not isinstance(value, Number):
            self.text(value, spot)
        elif isinstance(value, bytes):
            spot.keep(value)
        elif isinstance(value, dict):
            self.mapping(value, spot)
        elif isinstance(value, list):
            self.items(value, spot)

    def text(self, text: str, spot: _Spot) -> None:
        value = self.parsed(text) if spot.wrappings < _MAX_WRAPPINGS else None
        if is_chunk(value) or text.strip() == END_MARKER:
            spot.keep(text, is_event=True)
            return
        if value is None or isinstance(value, dict) or (isinstance(value, str) and data_mark(text)):
            spot.keep(text, is_searched=isinstance(value, dict))
        if value is not None:
            inner = spot.below("", spot.column.at("json"))
            inner.wrappings += 1
            self.walk(value, inner)

    def parsed(self, text: str) -> Any:
        start = text[:64].lstrip()[:1]
        if not start or start not in '{["' or not any(sign in text for sign in _WORTH_PARSING):
            return None
        try:
            return json_value(text, self.budget)
        except (ValueError, Unreadable):
            return None

    def mapping(self, value: dict[str, Any], spot: _Spot) -> None:
        if (body := _kit_record(value)) is not None:
            self.found.append(Body(body, value["fidelity"], str(spot), record=value))
        elif value.get("type") == "Buffer" and (data := octets(value)) is not None:
            spot.keep(data)
        elif (
            value
            and next(iter(value)).isdecimal()
            and all(key.isdecimal() and len(key) < 10 for key in value)
        ):
            self.items([value[key] for key in sorted(value, key=int)], spot)
        elif _could_be(value) and is_chunk(value):
            spot.keep(value, is_event=True)
        elif "data" in value and ("event" in value or "eventName" in value):
            self.event(value, spot)
        else:
            spot.keep(value)
            if not _TELLING.isdisjoint(value) or any("." in key for key in value):
                self.note(value, spot.exchange)
            self.members(value, spot)

    def members(self, value: dict[str, Any], spot: _Spot) -> None:
        """Search what a mapping holds; what an exchange holds belongs to nothing outside it."""
        is_own = is_exchange(value)
        exchange = Exchange(value) if is_own else spot.exchange
        asked = asked_keys(value) if is_own else frozenset()
        self.budget.visit(len(value))
        for number, (key, item) in enumerate(value.items()):
            if key in asked or not isinstance(item, (str, bytes, dict, list)) or isinstance(item, Number):
                continue
            word = f".{key}" if key in _KNOWN_KEYS else f"{{{number}}}"
            below = spot.below(word, _Column() if is_own else spot.column.at(key))
            below.exchange = exchange
            if is_own:
                below.run = 0
            self.walk(item, below)
            if is_own:
                self.settle(below)

    def note(self, value: dict[str, Any], exchange: Exchange) -> None:
        """Say what a mapping is that holds no stream, though somebody could look for one in it."""
        size = value.get("size")
        if "mimeType" in value and "text" in value and exchange is not NO_EXCHANGE:
            exchange.recorded_bytes = small_number(size)
        if is_whole_answer(value):
            self.found.append(Refusal("not streamed", is_fault=False))
        elif is_trace(value) or value.get("tool_calls") or value.get("toolCalls"):
            self.found.append(Refusal("assembled", is_fault=False))
        elif "index" in value and isinstance(value.get("function"), dict):
            self.found.append(Refusal("bare fragments", is_fault=False))

    def event(self, value: dict[str, Any], spot: _Spot) -> None:
        """Take an event that a recorder parsed, with its name."""
        name, data = value.get("eventName", value.get("event")), value["data"]
        below = spot.below(".data", spot.column.at("event"))
        if isinstance(data, (str, dict)) and not isinstance(data, Number):
            is_named = isinstance(name, str) and name != "message" and _EVENT_NAME.fullmatch(name) is not None
            is_event = data == END_MARKER or is_chunk(data if isinstance(data, dict) else self.parsed(data))
            below.keep(data, name if is_named and data != END_MARKER else None, is_event)
        else:
            self.walk(data, below)

    def items(self, value: Sequence[Any], spot: _Spot) -> None:
        data = octets(value)
        if data is not None and (spot.run or len(data) >= _SHORTEST_OCTETS):
            spot.keep(data)
            return
        is_own = not spot.run
        self.runs += 1
        run = self.runs
        column = _Column() if is_own else spot.column
        has_chunks = any(_could_be(item) and is_chunk(item) for item in value)
        first = next(iter(value), None)
        is_row = isinstance(first, Number) or (isinstance(first, str) and bool(_CLOCK.fullmatch(first)))
        for number, item in enumerate(value):
            if isinstance(item, Number) and not has_chunks:
                continue
            below = spot.below(f"[{number}]", column.at(number if is_row else "*"))
            below.run = run
            if has_chunks and not (_could_be(item) and is_chunk(item)):
                below.keep(item, is_event=item == END_MARKER)
            else:
                self.walk(item, below)
        if is_own:
            self.settle(_Spot(column, spot.exchange))

    def settle(self, spot: _Spot) -> None:
        """Take out what the columns hold, in the order in which they began."""
        waiting = [spot.column]
        while waiting:
            column = waiting.pop()
            self.found += self.column(column.leaves, spot.exchange)
            waiting += reversed(column.below.values())

    def column(self, leaves: list[_Leaf], exchange: Exchange) -> Iterator[Item]:
        if any(
            leaf.is_event and not (isinstance(leaf.value, str) and leaf.value.strip() == END_MARKER)
            for leaf in leaves
        ):
            yield from self.events(leaves, exchange)
            return
        texts = [leaf for leaf in leaves if isinstance(leaf.value, str) and not leaf.is_searched]
        packed = [leaf for leaf in leaves if isinstance(leaf.value, bytes)]
        if texts:
            yield from self.texts(texts, exchange)
        if packed:
            yield from self.packed(packed, [leaf.value for leaf in packed], exchange)

    def inner(self, content: Any, leaf: _Leaf, exchange: Exchange, *notes: str, **facts: Any) -> Document:
        exchange = exchange if exchange is not NO_EXCHANGE else self.document.exchange
        return self.document.inner(content, str(leaf.spot), *notes, exchange=exchange, **facts)

    def events(self, leaves: list[_Leaf], exchange: Exchange) -> Iterator[Item]:
        units = [unit_of(leaf.value, leaf.name, leaf.spot.run) for leaf in leaves if _fits(leaf, self.parsed)]
        yield from bodies(self.inner(None, leaves[0], exchange), units)

    def texts(self, leaves: list[_Leaf], exchange: Exchange) -> Iterator[Item]:
        values = [leaf.value for leaf in leaves]
        if any("data:" in text or names_chunk(text) for text in values):
            for group in _groups(leaves):
                pieces = [leaf.value for leaf in group]
                separator = _separator(pieces)
                lost = (BLANK_LINES_LOST,) if separator == "\n\n" and len(group) > 1 else ()
                is_joined = len(group) > 1 or self.document.is_joined
                yield self.inner(separator.join(pieces), group[0], exchange, *lost, is_joined=is_joined)
        elif len(leaves) == 1:
            if (data := decoded(values[0])) is not None:
                yield self.inner(self.budget.take(data), leaves[0], exchange)
        else:
            filled = [leaf for leaf in leaves if leaf.value.strip()]
            if not filled:
                return
            pieces = [_piece(leaf.value) for leaf in filled]
            if None not in pieces:
                yield from self.packed(filled, pieces, exchange)
            elif (joined := decoded("".join(leaf.value for leaf in filled))) is not None:
                yield self.inner(self.budget.take(joined), filled[0], exchange, fidelity="reads")

    def packed(self, leaves: list[_Leaf], pieces: Sequence[Any], exchange: Exchange) -> Iterator[Item]:
        """Take bytes: one body in pieces, or bodies one by one where more than one begins like one."""
        begins = [
            piece.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")) or _is_whole_body(piece) for piece in pieces
        ]
        if len(pieces) == 1 or sum(begins) > 1:
            for leaf, piece in zip(leaves, pieces, strict=True):
                yield self.inner(self.budget.take(piece), leaf, exchange)
        else:
            joined = self.budget.take(b"".join(pieces))
            yield self.inner(joined, leaves[0], exchange, fidelity="reads")


def _could_be(value: Any) -> bool:
    """Return whether a value may be a chunk, by its keys alone."""
    return isinstance(value, dict) and ("choices" in value or "object" in value)


def _errors(document: Document) -> Iterator[Item]:
    """Take a file that is a server's error body for the one event that it is."""
    value = document.content
    if isinstance(value, dict) and value.get("error"):
        yield document.body(as_body(json_text(value)) + b"\n", fidelity="events")
    elif isinstance(value, list) and value and isinstance(value[0], dict) and value[0].get("error"):
        yield Refusal("error answer")


def _fits(leaf: _Leaf, parsed: Callable[[str], Any]) -> bool:
    """Return whether a value among chunks is one of their events, and no other record or text of a log."""
    value = leaf.value
    if leaf.is_event or leaf.name is not None:
        return True
    if type(value) is str:
        if value[:1] != "{":
            return False
        value = parsed(value)
    return not (isinstance(value, dict) and is_log_record(value))


def _groups(leaves: list[_Leaf]) -> Iterator[list[_Leaf]]:
    """Yield the texts of each body: one begins where the texts before have ended and a text opens another."""
    group: list[_Leaf] = []
    may_part = True
    for leaf in leaves:
        text = leaf.value
        if group and may_part and _opens(text):
            yield group
            group = []
        group.append(leaf)
        has_ended = _FINISHED.search(text) is not None
        may_part = has_ended if "data:" in text else may_part or has_ended
    if group:
        yield group


def _opens(text: str) -> bool:
    """Return whether a text is the beginning of a body: several events, the first of which gives a role."""
    return text.count("data:") > 1 and (
        _ROLE.search(text[:2000]) is not None or _FINISHED.search(text) is not None
    )


def _separator(texts: Sequence[str]) -> str:
    """Return what recorders dropped between the texts: nothing, a line end, or a blank line."""
    if any("\n" in text or "\r" in text for text in texts):
        return ""
    if any(not text for text in texts):
        return "\n"
    return "\n\n" if all(text.startswith(("data:", ":")) for text in texts) else "\n"


def _is_whole_body(data: bytes) -> bool:
    return data[:64].lstrip().startswith((b"data:", b"event:", b":")) and b"[DONE]" in data


def _piece(text: str) -> bytes | None:
    """Decode one of several texts; a short one too, as reads can be of any size."""
    if len(text) >= _SHORTEST_OCTETS:
        return decoded(text)
    try:
        return bytes.fromhex(text)
    except ValueError:
        return from_base64(text) if re.fullmatch(r"[A-Za-z0-9+/_-]+={0,2}", text) else None


def _kit_record(value: Mapping[str, Any]) -> bytes | None:
    """Return the body of a stream record of a batch (docs/design.md, section 7), None for anything else."""
    if not {"id", "provider", "fidelity", "end", "pair"} <= value.keys():
        return None
    if isinstance(body := value.get("body"), str):
        return as_body(body)
    if isinstance(packed := value.get("body_base64"), str):
        return from_base64(packed)
    return None
