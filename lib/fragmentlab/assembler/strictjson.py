"""Exact JSON: what two parsers could read differently is seen, at any depth, in linear time.

Python's own parser reads, with hooks for what it would pass over; a parser without recursion reads what is
nested too deeply for it. Both give the same values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from json import JSONDecodeError
from json.decoder import scanstring as _scan_string  # type: ignore[attr-defined]
from typing import Any, NoReturn

_BIG_DIGITS = 400
_BIG: int = 10**_BIG_DIGITS
_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
    (?P<mark>[][{}:,])
    |(?P<string>")
    |(?P<integer>-?(?:0|[1-9][0-9]*)(?![.eE0-9]))
    |(?P<real>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>true|false|null)
    )""",
    re.VERBOSE,
)
_BLANKS = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_CUT_WORD = re.compile(r"[ \t\n\r]*(?:-|tr?u?|fa?l?s?|nu?l?)?")
_CUT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][+-]?)")
_CUT_ESCAPE = re.compile(r"\\?u?[0-9a-fA-F]{0,4}")
_WORDS = {"true": True, "false": False, "null": None}


class Malformed(Exception):
    """The text is not one JSON document.

    ``ends_early`` says that more text could have made it one, ``more_follows`` that it begins with a whole
    one.
    """

    def __init__(self, ends_early: bool = False, more_follows: bool = False) -> None:
        super().__init__()
        self.ends_early = ends_early
        self.more_follows = more_follows and not ends_early


class RepeatingDict(dict[str, Any]):
    """An object of the text in which some keys stood twice; the last value counts as the dict's."""

    pairs: list[tuple[str, Any]]

    @property
    def repeated(self) -> set[str]:
        """The keys that stood twice."""
        seen: set[str] = set()
        return {key for key, _ in self.pairs if key in seen or seen.add(key)}  # type: ignore[func-returns-value]


@dataclass
class ParsedText:
    """A parsed text, and what strict readers would refuse in it.

    ``depth`` counts open arrays and objects (``{}`` is 1); ``repeats`` says that an object has a key twice,
    ``lone_surrogate`` that a string holds half a pair, ``wide_number`` that a number has more digits than
    asked or is outside a double's range.
    """

    value: Any = field(repr=False)
    depth: int
    repeats: bool
    lone_surrogate: bool
    wide_number: bool


def parse(text: str, number_digits: int) -> ParsedText:
    """Parse ``text``; raise Malformed where it is not one JSON document."""
    hooks = _Hooks(number_digits)
    try:
        return _parsed(text, hooks, hooks.decoder.decode)
    except RecursionError:
        return _parsed(text, hooks, lambda text: _Walker(text, hooks).run())


def _parsed(text: str, hooks: _Hooks, decode: Callable[[str], Any]) -> ParsedText:
    try:
        value = decode(text)
    except JSONDecodeError as error:
        raise _malformed(text, error) from None
    depth, lone_surrogate = 0, isinstance(value, str) and _has_lone_surrogate([value])
    has_escapes = _SURROGATE_ESCAPE.search(text) is not None
    for level in _levels(value):
        depth += 1
        if has_escapes and not lone_surrogate:
            lone_surrogate = any(_has_lone_surrogate(strings) for strings in _strings(level))
    return ParsedText(value, depth, hooks.repeats, lone_surrogate, hooks.wide_number)


class _Hooks:
    """What either parser calls for the objects and numbers of one text, and what they showed."""

    def __init__(self, number_digits: int) -> None:
        self._number_digits = number_digits
        self.repeats = False
        self.wide_number = False
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self.object,
            parse_int=self.integer,
            parse_float=self.real,
            parse_constant=_refuse_constant,
        )

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make an object of the pairs; one with a key twice keeps them all."""
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        self.repeats = True
        repeating = RepeatingDict(built)
        repeating.pairs = pairs
        return repeating

    def integer(self, token: str) -> int:
        """Make an integer; one of more than 400 digits is held as a smaller one that is out of range too."""
        if len(token) > min(self._number_digits, _BIG_DIGITS // 2):
            self._look_at(token, float(token))
            if len(token) > _BIG_DIGITS:
                return -_BIG if token[0] == "-" else _BIG
        return int(token)

    def real(self, token: str) -> float:
        """Make a float, an infinite one where the number is out of a double's range."""
        value = float(token)
        self._look_at(token, value)
        return value

    def _look_at(self, token: str, value: float) -> None:
        if len(token) > self._number_digits and sum(map(str.isdecimal, token)) > self._number_digits:
            self.wide_number = True
        if not math.isfinite(value):
            self.wide_number = True


def _refuse_constant(_: str) -> NoReturn:
    raise Malformed


def _malformed(text: str, error: JSONDecodeError) -> Malformed:
    message, at = error.msg, error.pos
    if message.startswith("Unterminated string"):
        return Malformed(ends_early=True)
    if message.startswith("Invalid \\u"):
        return Malformed(_CUT_ESCAPE.fullmatch(text, at) is not None)
    if message == "Expecting value":
        return Malformed(_CUT_WORD.fullmatch(text, at) is not None)
    number = len(text.rstrip("0123456789.eE+-"))
    is_cut_number = number < at and _CUT_NUMBER.fullmatch(text, number) is not None
    ends_early = is_cut_number or _BLANKS.fullmatch(text, at) is not None
    return Malformed(ends_early, more_follows=message == "Extra data")


def _levels(value: Any) -> Iterator[list[Any]]:
    """Yield the arrays and objects of each depth."""
    level = [value] if isinstance(value, (dict, list)) else []
    while level:
        yield level
        level = [item for holder in level for item in _items(holder) if isinstance(item, (dict, list))]


def _items(holder: Any) -> Iterable[Any]:
    """Return all values of an array or object, also those of keys that stand again."""
    if isinstance(holder, RepeatingDict):
        return [value for _, value in holder.pairs]
    return holder.values() if isinstance(holder, dict) else holder


def _strings(level: list[Any]) -> Iterator[list[str]]:
    for holder in level:
        yield [item for item in _items(holder) if isinstance(item, str)]
        if isinstance(holder, dict):
            yield list(holder)


def _has_lone_surrogate(strings: list[str]) -> bool:
    return any(not text.isascii() and _SURROGATE.search(text) for text in strings)


_VALUE = ("value", "value or ]")
_KEY = ("key", "key or }")


class _Walker:
    """The grammar as a loop over tokens with an explicit stack, so that no depth is too deep."""

    def __init__(self, text: str, hooks: _Hooks) -> None:
        self._text = text
        self._hooks = hooks
        self._at = 0
        self._stack: list[list[Any]] = []
        """Open containers: arrays as [values], objects as [pairs, the key that waits for its value]."""
        self._expect = "value"

    def run(self) -> Any:
        """Return the value; raise JSONDecodeError as Python's parser does."""
        while match := _TOKEN.match(self._text, self._at):
            kind, token = match.lastgroup, match[match.lastgroup or 0]
            if kind == "mark":
                if token in "[{":
                    self._open(token)
                    self._at = match.end()
                    continue
                if token in ":,":
                    self._separate(token)
                    self._at = match.end()
                    continue
                value = self._close(token)
                self._at = match.end()
            else:
                if self._expect not in _VALUE and (self._expect not in _KEY or kind != "string"):
                    raise self._error()
                self._at = match.end()
                value = self._scalar(kind, token)
                if self._expect in _KEY:
                    self._stack[-1][1], self._expect = value, ":"
                    continue
            if not self._stack:
                return self._end(value)
            top = self._stack[-1]
            top[0].append(value if len(top) == 1 else (top[1], value))
            self._expect = "next"
        raise self._error()

    def _error(self, message: str | None = None) -> JSONDecodeError:
        at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
        expects_value = self._expect in _VALUE
        return JSONDecodeError(
            message or ("Expecting value" if expects_value else "Unexpected"), self._text, at
        )

    def _open(self, token: str) -> None:
        if self._expect not in _VALUE:
            raise self._error()
        self._stack.append([[]] if token == "[" else [[], None])
        self._expect = "value or ]" if token == "[" else "key or }"

    def _separate(self, token: str) -> None:
        if self._expect != (":" if token == ":" else "next"):
            raise self._error()
        self._expect = "value" if token == ":" or len(self._stack[-1]) == 1 else "key"

    def _close(self, token: str) -> Any:
        is_object = token == "}"
        if not self._stack or (len(self._stack[-1]) == 2) != is_object:
            raise self._error()
        if self._expect not in ("next", "key or }" if is_object else "value or ]"):
            raise self._error()
        items = self._stack.pop()[0]
        return self._hooks.object(items) if is_object else items

    def _end(self, value: Any) -> Any:
        if _BLANKS.fullmatch(self._text, self._at) is None:
            raise self._error("Extra data")
        return value

    def _scalar(self, kind: str | None, token: str) -> Any:
        if kind == "string":
            value, self._at = _scan_string(self._text, self._at, True)
            return value
        if kind == "word":
            return _WORDS[token]
        return self._hooks.integer(token) if kind == "integer" else self._hooks.real(token)
