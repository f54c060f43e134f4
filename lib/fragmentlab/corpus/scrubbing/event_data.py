"""One event's data, rewritten token by token: only paths and values on the allow-list stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.json_text import Token, scrub_arguments, string_value, tokens, with_inside
from fragmentlab.corpus.scrubbing.text import fill, fill_index, fill_number
from fragmentlab.disclosure import NameAliases
from fragmentlab.wire.fragments import Place

_ALLOWED = json.loads(files(__package__).joinpath("allowed.json").read_bytes())
KEPT_KEYS = frozenset(_ALLOWED["keys"])
KEPT_EVENT_TYPES = frozenset(_ALLOWED["event_types"])
KEPT_LICENCES = frozenset(_ALLOWED["licences"])
_KEPT_VALUES = {
    (parent, key): frozenset(value.lower() for value in values)
    for parent, keys in _ALLOWED["values"].items()
    for key, values in keys.items()
}
_STRAY = re.compile("[\udc80-\udcff]")
_CHUNK_KIND = "chat.completion"
_INDEXED = ("choices", "tool_calls")
_DEEPEST_PIECE = 7

Pieces = Mapping[Place, str]
"""Where a fragment's name or arguments stand in its chunk -> what to write there."""


class Replacements:
    """The placeholders of one batch, and the shown names of its providers and models."""

    def __init__(self) -> None:
        self.words = Aliases(KEPT_KEYS)
        self.names = NameAliases()


def scrub_event(
    text: str, replacements: Replacements, pieces: Pieces, keeps_size: bool = False
) -> Iterator[str]:
    """Rewrite the data of one event, token by token; broken JSON keeps what breaks it.

    ``pieces`` holds what the fragments of a readable event get; with ``keeps_size`` text keeps its length,
    for an event that is near the limit. Surrogates of the text stand for bytes that
    are not UTF-8, and stay such bytes.
    """
    writer = _Writer(replacements, pieces, keeps_size)
    return map(writer.write, tokens(text))


class _Writer:
    def __init__(self, replacements: Replacements, pieces: Pieces, keeps_size: bool) -> None:
        self._words = replacements.words
        self._names = replacements.names
        self._pieces = pieces
        self._keeps_size = keeps_size
        self._path: list[str | int] = []
        """Of the next value: the current key of each open object, the position in each open array."""
        self._above: list[str] = [""]
        """By level, the nearest key above the one that the value stands under."""

    def write(self, token: Token) -> str:
        """Return the token as it leaves."""
        if token.kind == "mark":
            self._mark(token.text)
        elif token.kind == "string":
            return self._key(token.text) if token.is_key else self._string(token.text)
        elif token.kind == "number":
            is_index = self._path and self._path[-1] == "index" and self._above[-1] in _INDEXED
            return fill_index(token.text) if is_index else fill_number(token.text)
        elif token.kind == "other":
            return fill(token.text, stray_bytes=True).replace(" ", "x")
        return token.text

    def _mark(self, mark: str) -> None:
        if mark in "{[":
            key = self._path[-1] if self._path else ""
            self._above.append(key if isinstance(key, str) else self._above[-1])
            self._path.append(0 if mark == "[" else "")
        elif mark in "}]" and self._path:
            self._path.pop()
            self._above.pop()
        elif mark == "," and self._path and isinstance(place := self._path[-1], int):
            self._path[-1] = place + 1

    def _key(self, token: str) -> str:
        key = string_value(token)
        if self._path and isinstance(self._path[-1], str):
            self._path[-1] = key or ""
        if key in KEPT_KEYS:
            return token
        if key is None or _STRAY.search(token):
            return with_inside(token, _filled)
        return _quoted(self._words.of("key", key), token)

    def _string(self, token: str) -> str:
        value = string_value(token)
        if value == "":
            return token
        if value is None or _STRAY.search(token):
            return with_inside(token, _filled)
        if self._pieces and len(self._path) <= _DEEPEST_PIECE:
            piece = self._pieces.get(tuple(self._path))
            if piece is not None:
                return _quoted(piece, token)
        key = self._path[-1] if self._path else ""
        if key == "arguments":
            return _quoted(scrub_arguments(value, self._words), token)
        if key == "name":
            return _quoted(self._words.of("tool", value), token)
        if key == "id":
            kind = "call" if self._above[-1] == "tool_calls" else "response"
            return _quoted(self._words.of(kind, value), token)
        if key in ("model", "provider") and len(self._path) == 1:
            return json.dumps(self._names.show(str(key), value), ensure_ascii=False)
        if value.lower() in _KEPT_VALUES.get((self._above[-1], str(key)), ()):
            return token
        if key == "object" and value.startswith(_CHUNK_KIND) and len(self._path) == 1:
            return f'"{_CHUNK_KIND}{"x" * (len(value) - len(_CHUNK_KIND))}"'
        if self._keeps_size:
            return with_inside(token, _filled)
        return f'"{"x" * (1 << (len(value).bit_length() - 1))}"'


def _filled(raw: str) -> str:
    return fill(raw, stray_bytes=True)


def _quoted(text: str, like: str) -> str:
    """Write a string, all escaped where the original was, as it is sent by a server that escapes all."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=like.isascii())
