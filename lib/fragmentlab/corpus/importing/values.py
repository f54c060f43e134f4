"""Parsed values that forget nothing: keys given twice, numbers and escapes stay as they were written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import MAX_DOCUMENT_VALUES, Budget, Unreadable

STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string of JSON, one that never closes included: it would be read again from each of its quotes."""
_STRAY = re.compile("[\U0010ff80-\U0010ffff]")
_BLANKS = re.compile(r"[ \t\r\n]*+")
_NUMBER = re.compile(r"[,\[]\s*+\d")
"""A number in a list, such as an octet, which is cheap."""
_FREE_VALUES = 200_000
_VALUE_BYTES = 8
"""Chunks in compact JSON take twice as much for each value."""
_FIRST_STRAY = 0x10FF00
END_MARKER = "[DONE]"


class NotBase64(str):
    """The text of a binary scalar that somebody broke."""

    __slots__ = ()


class Number(str):
    """A number as it was written, of any size."""

    __slots__ = ()


class Record(dict[str, Any]):
    """An object some of whose keys were given more than once; ``pairs`` are all of them in order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its keys and values."""
    made = dict(pairs)
    return made if len(made) == len(pairs) else Record(pairs)


_DECODER = json.JSONDecoder(
    object_pairs_hook=object_of, parse_int=Number, parse_float=Number, parse_constant=Number
)


def parse_json(text: str, at: int = 0) -> tuple[Any, int]:
    """Return the JSON value that begins at ``at`` and where it ends; raise ValueError or Unreadable."""
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise Unreadable("is nested too deeply") from None


def json_value(text: str, budget: Budget) -> Any:
    """Return the one JSON value that a text is; raise ValueError where it is none."""
    check_size(text, budget)
    start = _BLANKS.match(text).end()  # type: ignore[union-attr]
    value, end = parse_json(text, start)
    if _BLANKS.match(text, end).end() != len(text):  # type: ignore[union-attr]
        raise ValueError("more follows")
    return value


def check_size(text: str, budget: Budget) -> None:
    """Count the values that a JSON text can hold before any is made; raise Unreadable where too many."""
    marks, size = ",[{", len(text)
    if sum(map(text.count, marks)) > 10_000:
        text = STRING.sub("", text)
    values = sum(map(text.count, marks))
    allowed = min(_FREE_VALUES + size // _VALUE_BYTES, MAX_DOCUMENT_VALUES)
    if values > allowed:
        values -= len(_NUMBER.findall(text)) * 3 // 4
    if values > allowed:
        raise Unreadable(f"holds more than {allowed:,} values; split it")
    budget.visit(values)


def json_text(value: Any) -> str:
    """Write a parsed value as compact JSON, with everything that was read."""
    return "".join(_written(value))


def _written(value: Any) -> Iterator[str]:
    if isinstance(value, Number):
        yield value
    elif isinstance(value, str):
        yield _string(value)
    elif isinstance(value, dict):
        mark = "{"
        for key, item in value.pairs if isinstance(value, Record) else value.items():
            yield f"{mark}{_string(key)}:"
            yield from _written(item)
            mark = ","
        yield "}" if value else "{}"
    elif isinstance(value, list):
        mark = "["
        for item in value:
            yield mark
            yield from _written(item)
            mark = ","
        yield "]" if value else "[]"
    else:
        yield json.dumps(value)


def _string(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return written


def as_text(data: bytes) -> str:
    """Decode UTF-8; bytes that are none stand as characters that nobody uses until ``as_body``."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        return text.translate({0xDC00 + byte: _FIRST_STRAY + byte for byte in range(0x80, 0x100)})


def as_body(text: str) -> bytes:
    """Return the bytes of a text; what stood for bytes that are not UTF-8 is those bytes again."""
    if _STRAY.search(text):
        text = _STRAY.sub(lambda match: chr(ord(match[0]) - _FIRST_STRAY + 0xDC00), text)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def octets(value: Any) -> bytes | None:
    """Return the bytes that a value stands for: bytes, a list of octets, or Node's ``Buffer`` as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict) and value.get("type") == "Buffer":
        value = value.get("data")
    if isinstance(value, list) and value and all(isinstance(item, Number) for item in value):
        try:
            return bytes(map(int, value))
        except ValueError:
            return None
    return None


def small_number(value: Any) -> int | None:
    """Return a whole number that is not negative, None for anything else."""
    is_small = isinstance(value, Number) and value.isdecimal() and len(value) < 16
    return int(value) if is_small else None
