"""Exact JSON: what two parsers could read differently is seen, at any depth, in linear time.

msgspec does the work where its result is proven to be exact: no string can hold what looks like the end
of a key, and as
many keys were decoded as the text has. Python's own parser does it where the text is shallow and its
numbers are plain; a parser without recursion does it everywhere else. All give the same values.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from json.decoder import scanstring as _scan_string  # type: ignore[attr-defined]
from typing import Any

import msgspec

_SAFE_DEPTH = 100
_WIDE_NUMBER = re.compile(r"[0-9]{309}|[0-9][eE]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_BIG_DIGITS = 400
_BIG = 10**_BIG_DIGITS
_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
    (?P<mark>[][{}:,])
    |(?P<string>")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>true|false|null)
    )""",
    re.VERBOSE,
)
_SPACED_COLON = re.compile(r'"[ \t\n\r]+:')
_PLAIN_NUMBER = 1e300
_decode = msgspec.json.Decoder().decode
_BLANKS = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}


class Malformed(Exception):
    """The text is not one JSON document."""


class _NotPlain(Exception):
    """The decoded value needs the exact parser."""


class RepeatingDict(dict[str, Any]):
    """An object of the text in which some keys stood twice; the last value counts as the dict's."""

    repeated: frozenset[str]


@dataclass
class Document:
    """A parsed text: ``depth`` counts open arrays and objects (``{}`` is 1; where ``depth`` is below 101 it
    may be an upper bound); ``repeats`` says that some object has a key twice, ``lone_surrogate`` that some
    string holds half a pair, ``wide_number`` that a number has more digits than asked or is outside a
    double's range."""

    value: Any = field(repr=False)
    depth: int
    repeats: bool
    lone_surrogate: bool
    wide_number: bool


def parse(text: str, number_digits: int, depth_limit: int) -> Document:
    """Parse ``text``; raise Malformed. ``depth`` is exact wherever it could be above ``depth_limit``."""
    if len(text) <= number_digits and '\\":' not in text and "\\u" not in text:
        try:
            value = _decode(text)
            keys, depth = _measure(value, min(depth_limit, _SAFE_DEPTH))
        except (msgspec.DecodeError, _NotPlain, RecursionError):
            pass
        else:
            if keys == text.count('":') and not _SPACED_COLON.search(text):
                return Document(value, depth, False, False, False)
    brackets = text.count("[") + text.count("{")
    if (
        brackets <= min(depth_limit, _SAFE_DEPTH)
        and not _WIDE_NUMBER.search(text)
        and not _SURROGATE_ESCAPE.search(text)
    ):
        try:
            return _parse_plain(text, brackets)
        except RecursionError:  # the caller's own stack is nearly full
            pass
    return _Walker(text, number_digits).run()


def _measure(value: Any, levels: int) -> tuple[int, int]:
    """Return the keys and the depth of decoded JSON; raise _NotPlain past ``levels`` or at a number that
    may be wide."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return 0, 0
    if kind is int or kind is float:
        if -_PLAIN_NUMBER < value < _PLAIN_NUMBER:
            return 0, 0
        raise _NotPlain
    if not levels:
        raise _NotPlain
    keys, depth = (len(value), 0) if kind is dict else (0, 0)
    for item in value.values() if kind is dict else value:
        inner_keys, inner_depth = _measure(item, levels - 1)
        keys += inner_keys
        depth = max(depth, inner_depth)
    return keys, depth + 1


def _parse_plain(text: str, brackets: int) -> Document:
    repeats = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        built = dict(pairs)
        if len(built) != len(pairs):
            repeats = True
            return _repeating(pairs)
        return built

    try:
        value = json.loads(text, object_pairs_hook=build, parse_constant=_refuse_constant)
    except ValueError:
        raise Malformed from None
    return Document(value, brackets, repeats, False, False)


def _refuse_constant(_: str) -> None:
    raise ValueError


def _repeating(pairs: list[tuple[str, Any]]) -> RepeatingDict:
    built = RepeatingDict(pairs)
    seen: set[str] = set()
    built.repeated = frozenset(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return built


_VALUE = ("value", "value or ]")
_KEY = ("key", "key or }")


class _Walker:
    """The grammar as a loop over tokens with an explicit stack, so that no depth is too deep."""

    def __init__(self, text: str, number_digits: int) -> None:
        self._text = text
        self._number_digits = number_digits
        self._document = Document(None, 0, False, False, False)
        self._at = 0
        self._stack: list[list[Any]] = []
        """Open containers: arrays as [values], objects as [pairs, the key that waits for its value]."""
        self._expect = "value"

    def run(self) -> Document:
        while match := _TOKEN.match(self._text, self._at):
            self._at = match.end()
            kind, token = match.lastgroup, match[0].lstrip(" \t\n\r")
            if kind == "mark":
                if token in "[{":
                    self._open(token)
                    continue
                if token in ":,":
                    self._separate(token)
                    continue
                value = self._close(token)
            else:
                value = self._string() if kind == "string" else self._scalar(kind, token)
                if self._expect in _KEY and kind == "string":
                    self._stack[-1][1], self._expect = value, ":"
                    continue
                if self._expect not in _VALUE:
                    raise Malformed
            if not self._stack:
                return self._end(value)
            top = self._stack[-1]
            top[0].append(value if len(top) == 1 else (top[1], value))
            self._expect = "next"
        raise Malformed

    def _open(self, token: str) -> None:
        if self._expect not in _VALUE:
            raise Malformed
        self._stack.append([[]] if token == "[" else [[], None])
        self._document.depth = max(self._document.depth, len(self._stack))
        self._expect = "value or ]" if token == "[" else "key or }"

    def _separate(self, token: str) -> None:
        if self._expect != (":" if token == ":" else "next"):
            raise Malformed
        self._expect = "value" if token == ":" or len(self._stack[-1]) == 1 else "key"

    def _close(self, token: str) -> Any:
        is_object = token == "}"
        if not self._stack or (len(self._stack[-1]) == 2) != is_object:
            raise Malformed
        if self._expect not in ("next", "key or }" if is_object else "value or ]"):
            raise Malformed
        items = self._stack.pop()[0]
        if not is_object:
            return items
        built = dict(items)
        if len(built) == len(items):
            return built
        self._document.repeats = True
        return _repeating(items)

    def _end(self, value: Any) -> Document:
        if _BLANKS.fullmatch(self._text, self._at) is None:
            raise Malformed
        self._document.value = value
        return self._document

    def _string(self) -> str:
        value: str
        try:
            value, self._at = _scan_string(self._text, self._at, True)
        except ValueError:
            raise Malformed from None
        if not value.isascii() and _SURROGATE.search(value):
            self._document.lone_surrogate = True
        return value

    def _scalar(self, kind: str | None, token: str) -> Any:
        if kind == "word":
            return _WORDS[token]
        wide = len(token) > self._number_digits and sum(map(str.isdecimal, token)) > self._number_digits
        if token.lstrip("-").isdecimal():
            value: int | float = (
                int(token) if len(token) <= _BIG_DIGITS else (-_BIG if token[0] == "-" else _BIG)
            )
            wide = wide or not math.isfinite(float(token))
        else:
            value = float(token)
            wide = wide or not math.isfinite(value)
        self._document.wide_number = self._document.wide_number or wide
        return value
