"""Placeholders for IDs, names and keys: equal words stay equal, within a stream and across a batch.

A word that repeats a known one, or begins with one, has a placeholder that does the same: clients glue
words together, and that must stay visible.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Iterable
from itertools import islice

_MARKERS = {"call": "c", "response": "r", "tool": "t", "key": "k"}
_LONGEST = 512
"""The longest beginning that is searched for."""
_MARKED = 4
"""The fewest free characters of a placeholder whose first one says what kind of word it is."""
_LETTERS = 26
_COUNTED = 8
"""Free characters that give more placeholders than any batch has words."""
_FIXED = '"\\/\x7f\ufffd'
_ASCII = (
    string.ascii_letters + string.digits + "".join(c for c in string.punctuation + " " if c not in _FIXED)
)
_SPANS = {
    "2": (0x80, 0x800, 0x3B1),
    "3": (0x800, 0xD800, 0x4E00),
    "4": (0x10000, 0x110000, 0x1F600),
    "high": (0xD800, 0xDC00, 0xD83D),
    "low": (0xDC00, 0xE000, 0xDE00),
}
"""Class of characters -> the code points that its placeholders are written with, and which is the first."""
_SIZES = {"1": len(_ASCII)} | {name: end - start for name, (start, end, _) in _SPANS.items()}


class NoPlaceholder(Exception):
    """A batch holds more words of one form than there are placeholders of it."""


class Aliases:
    """The placeholders of one batch. ``kept`` words stand for themselves and are never given to another."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._used: dict[str, set[str]] = {kind: set(kept) for kind in _MARKERS}
        self._next: Counter[object] = Counter()

    def of(self, kind: str, word: str) -> str:
        """Return the placeholder of a word of one kind (call, response, tool, key).

        Raises NoPlaceholder where none of its form is left.
        """
        if not word:
            return word
        known = self._words.get((kind, word))
        if known is None:
            known = self._built_from_known(kind, word) or self._fresh(kind, word)
            if known is None:
                raise NoPlaceholder
            self._words[kind, word] = known
            self._used[kind].add(known)
        return known

    def knows(self, kind: str, word: str) -> bool:
        """Return whether the word has been met."""
        return (kind, word) in self._words

    def _built_from_known(self, kind: str, word: str) -> str | None:
        period = (word * 2).find(word, 1)
        if period < len(word):
            # The word may come later by itself, as a known tool: this one must still be a repetition of it.
            alias = self.of(kind, word[:period]) * (len(word) // period)
            return None if alias in self._used[kind] else alias
        for size in range(min(len(word) - 1, _LONGEST), 0, -1):
            known = self._words.get((kind, word[:size]))
            if known is not None:
                return self._fresh(kind, word[size:], known)
        return None

    def _fresh(self, kind: str, word: str, before: str = "") -> str | None:
        """Return an unused placeholder that begins with ``before``, None where its form has none left.

        Numbers are counted through all words of a kind, so that no placeholder begins another. Words too
        short for their number are counted by form: a form has as many placeholders as words.
        """
        used, form = self._used[kind], [_class_of(char) for char in word]
        sizes = [_SIZES[name] for name in islice(filter(_SIZES.get, form), _COUNTED)]
        marker = _MARKERS[kind] if len(sizes) >= _MARKED else ""
        if marker:
            del sizes[0]
        of_all = (kind, _LETTERS, _LETTERS ** len(sizes))
        of_form = ((kind, before, *form), None, math.prod(sizes))
        for counter, base, most in (of_all, of_form):
            while self._next[counter] < most:
                alias = before + _written(form, marker, self._next[counter], base)
                self._next[counter] += 1
                if alias not in used:
                    return alias
        return None


def _class_of(char: str) -> str:
    """Return what must stay of a character: itself, or the name of its alphabet."""
    if char < " " or char in _FIXED:
        # A slash stays one: it may be written as an escape, which has no other character of its class.
        return char
    if "\ud800" <= char <= "\udfff":
        return "high" if char < "\udc00" else "low"
    return str(len(char.encode()))


def _written(form: list[str], marker: str, number: int, base: int | None) -> str:
    """Write ``number`` in the free characters of a form, least significant first."""
    written = []
    for name in form:
        if name not in _SIZES:
            written.append(name)
            continue
        if marker:
            digit, marker = ord(marker) - ord("a"), ""
        else:
            number, digit = divmod(number, base or _SIZES[name])
        start, end, first = _SPANS.get(name, (0, 0, 0))
        written.append(chr(start + (first - start + digit) % (end - start)) if end else _ASCII[digit])
    return "".join(written)
