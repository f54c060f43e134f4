"""Exact JSON: what two parsers could read differently is seen, at any depth, in linear time.

Python's own parser does the work where the text is shallow and its numbers are plain; a parser without
recursion does it everywhere else. Both give the same values.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

_SAFE_DEPTH = 100
_WIDE_NUMBER = re.compile(r"[0-9]{309}|[0-9][eE]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_BIG_DIGITS = 400
_BIG = 10**_BIG_DIGITS
_TOKEN = re.compile(
    r"""[ \t\n\r]*+(?:
    (?P<mark>[][{}:,])
    |(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    |(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)
    |(?P<word>true|false|null)
    )""",
    re.VERBOSE,
)
_BLANKS = re.compile(r"[ \t\n\r]*+")
_WORDS = {"true": True, "false": False, "null": None}


class Malformed(Exception):
    """The text is not one JSON document."""


class RepeatingDict(dict[str, Any]):
    """An object of the text in which some keys stood twice; the last value counts as the dict's."""

    repeated: frozenset[str]


@dataclass
class Document:
    """A parsed text: ``depth`` counts open arrays and objects (``{}`` is 1; where ``depth`` is below 101 it
    may be an upper bound); ``repeats`` says that some object has a key twice, ``lone_surrogate`` that some
    string holds half a pair, ``wide_number`` that a number has more digits than asked or is outside a
    double's range."""

    value: Any
    depth: int
    repeats: bool
    lone_surrogate: bool
    wide_number: bool


def parse(text: str, number_digits: int, depth_limit: int) -> Document:
    """Parse ``text``; raise Malformed. ``depth`` is exact wherever it could be above ``depth_limit``."""
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


class _Walker:
    """A recursive-descent grammar turned into a loop over tokens with an explicit stack."""

    def __init__(self, text: str, number_digits: int) -> None:
        self._text = text
        self._number_digits = number_digits
        self._document = Document(None, 0, False, False, False)

    def run(self) -> Document:
        text, at = self._text, 0
        stack: list[list[Any]] = []
        """Open containers: arrays as [values], objects as [pairs, key or None]; their state is ``expect``."""
        expect = "value"
        while True:
            match = _TOKEN.match(text, at)
            if match is None:
                break
            at = match.end()
            kind, token = match.lastgroup, match.group(match.lastgroup or 0)
            if kind == "mark":
                if token in "[{":
                    if expect not in ("value", "value or ]"):
                        raise Malformed
                    stack.append([[]] if token == "[" else [[], None])
                    self._document.depth = max(self._document.depth, len(stack))
                    expect = "value or ]" if token == "[" else "key or }"
                    continue
                if token == ":":
                    if expect != ":":
                        raise Malformed
                    expect = "value"
                    continue
                if token == ",":
                    if expect != "next" or not stack:
                        raise Malformed
                    expect = "key" if len(stack[-1]) == 2 else "value"
                    continue
                value = self._close(stack, token, expect)
            elif expect in ("key", "key or }"):
                if kind != "string":
                    raise Malformed
                stack[-1][1] = self._string(token)
                expect = ":"
                continue
            elif expect not in ("value", "value or ]"):
                raise Malformed
            else:
                value = self._scalar(kind, token)
            if not stack:
                if _BLANKS.fullmatch(text, at) is None:
                    raise Malformed
                self._document.value = value
                return self._document
            top = stack[-1]
            top[0].append(value if len(top) == 1 else (top[1], value))
            expect = "next"
        raise Malformed

    def _close(self, stack: list[list[Any]], token: str, expect: str) -> Any:
        is_object = bool(stack) and len(stack[-1]) == 2
        if not stack or (token == "}") != is_object or expect not in ("next", "value or ]", "key or }"):
            raise Malformed
        items = stack.pop()[0]
        if not is_object:
            return items
        built = dict(items)
        if len(built) == len(items):
            return built
        self._document.repeats = True
        return _repeating(items)

    def _string(self, token: str) -> str:
        value: str = json.loads(token)
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            self._document.lone_surrogate = True
        return value

    def _scalar(self, kind: str | None, token: str) -> Any:
        if kind == "string":
            return self._string(token)
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
