"""One event's data, rewritten token by token: what the allow-list does not name by path and value is
replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files

from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.json_text import (
    Token,
    alias_string,
    decoded,
    inside,
    scrub_arguments,
    tokens,
    with_inside,
)
from fragmentlab.corpus.scrubbing.text import fill, fill_index, fill_number, units, written_as
from fragmentlab.disclosure import NameAliases

_ALLOWED = json.loads(files(__package__).joinpath("allowed.json").read_bytes())
KEPT_KEYS = frozenset(_ALLOWED["keys"])
KEPT_EVENT_TYPES = frozenset(_ALLOWED["event_types"])
KEPT_LICENCES = frozenset(_ALLOWED["licences"])
_KEPT_VALUES = {
    (parent, key): frozenset(values)
    for parent, keys in _ALLOWED["values"].items()
    for key, values in keys.items()
}
_STRAY = re.compile("[\udc80-\udcff]")
_CHUNK_KIND = "chat.completion"
_INDEXED = ("choices", "tool_calls")

Path = tuple[str | int, ...]
Pieces = Mapping[Path, str]
"""Where a fragment's name or arguments stand in its chunk -> what to write there."""


class Replacements:
    """The placeholders of one batch: IDs, tool names and keys, and the shown names of providers and
    models."""

    def __init__(self) -> None:
        self.words = Aliases(KEPT_KEYS)
        self.names = NameAliases()


def scrub_event(text: str, replacements: Replacements, pieces: Pieces, stray_bytes: bool) -> str:
    """Rewrite the data of one event; never fails, broken JSON keeps what breaks it.

    ``pieces`` holds what the fragments of a readable event get; ``stray_bytes`` says that surrogates of the
    text stand for
    bytes that are not UTF-8.
    """
    writer = _Writer(replacements, pieces, stray_bytes)
    return "".join(writer.write(token) for token in tokens(text))


class _Writer:
    def __init__(self, replacements: Replacements, pieces: Pieces, stray_bytes: bool) -> None:
        self._words = replacements.words
        self._names = replacements.names
        self._pieces = pieces
        self._stray_bytes = stray_bytes
        self._path: list[str | int] = []
        """Of the value that comes next; an open object's last item is its current key, an array's a
        position."""
        self._is_array: list[bool] = []

    def write(self, token: Token) -> str:
        if token.kind == "mark":
            self._mark(token.text)
            return token.text
        if token.kind == "string":
            return self._key(token) if token.is_key else self._string(token.text)
        if token.kind == "number":
            is_index = self._path and self._path[-1] == "index" and self._parent() in _INDEXED
            return fill_index(token.text) if is_index else fill_number(token.text)
        return token.text if token.kind in ("blank", "word") else fill(token.text, self._stray_bytes)

    def _mark(self, mark: str) -> None:
        if mark in "{[":
            self._is_array.append(mark == "[")
            self._path.append(0 if mark == "[" else "")
        elif mark in "}]":
            if self._is_array:
                self._is_array.pop()
                self._path.pop()
        elif mark == "," and self._is_array and self._is_array[-1]:
            self._path[-1] = int(self._path[-1]) + 1

    def _key(self, token: Token) -> str:
        key = decoded(token.text)
        if self._is_array and not self._is_array[-1]:
            self._path[-1] = key if key is not None else ""
        if key in KEPT_KEYS:
            return token.text
        if self._holds_stray_bytes(token.text):
            return with_inside(token.text, lambda raw: fill(raw, True))
        return alias_string(token.text, self._words, "key")

    def _holds_stray_bytes(self, token: str) -> bool:
        """Whether the token has bytes that are not UTF-8, which must stay such bytes."""
        return self._stray_bytes and _STRAY.search(token) is not None

    def _parent(self) -> str:
        """The nearest key above the one that the value stands under."""
        return next((step for step in reversed(self._path[:-1]) if isinstance(step, str)), "")

    def _string(self, token: str) -> str:
        value = decoded(token)
        if value == "":
            return token
        path = tuple(self._path)
        key = path[-1] if path and isinstance(path[-1], str) else ""
        if value is None or self._holds_stray_bytes(token):
            return with_inside(token, lambda raw: fill(raw, self._stray_bytes))
        if path in self._pieces:
            return _rewritten(token, self._pieces[path])
        if key == "arguments":
            return _rewritten(token, scrub_arguments(value, self._words))
        if key == "name":
            return alias_string(token, self._words, "tool")
        if key == "id":
            return alias_string(token, self._words, "call" if self._parent() == "tool_calls" else "response")
        if key in ("model", "provider") and len(path) == 1:
            return json.dumps(self._names.show(key, value), ensure_ascii=False)
        return self._literal(token, value, key)

    def _literal(self, token: str, value: str, key: str) -> str:
        parent = self._parent()
        kept = _KEPT_VALUES.get((parent, key), frozenset())
        if value in kept or (parent == "tool_calls" and key == "type" and value.lower() == "function"):
            return token
        if key == "object" and value.startswith(_CHUNK_KIND) and len(self._path) == 1:
            start = 1 + len(_CHUNK_KIND)
            return token[:start] + fill(token[start:-1]) + token[-1]
        return with_inside(token, fill)


def _rewritten(token: str, text: str) -> str:
    """Write ``text``, as many characters as the token's value, in the token's own forms."""
    pieces = list(units(inside(token)))
    if sum(len(unit.char) if unit.form != "halves" else 2 for unit in pieces) != len(text):
        return json.dumps(text)
    body = "".join(_escaped(written_as(unit, char), char) for unit, char in zip(pieces, text, strict=True))
    return f'"{body}"'


def _escaped(written: str, char: str) -> str:
    """Escape what may not stand plainly in a string, whatever form the original character had."""
    if len(written) == 1 and (written in '"\\' or written < " " or "\ud800" <= written <= "\udfff"):
        return json.dumps(char)[1:-1]
    return written
