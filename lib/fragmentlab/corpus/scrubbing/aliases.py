"""Placeholders for IDs, names and keys: equal words stay equal, within a stream and across a batch.

A word that repeats a known one, or begins with one, has a placeholder that does the same: clients glue
words together,
and that must stay visible.
"""

from __future__ import annotations

from collections.abc import Iterable

from fragmentlab.corpus.scrubbing.text import placeholder

_MARKERS = {"call": "c", "response": "r", "tool": "t", "key": "k"}
_LONGEST = 512
"""The longest beginning that is searched for."""
_TRIES = 26**3


class Aliases:
    """The placeholders of one batch. ``kept`` words stand for themselves and are never given to another."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._used: dict[str, set[str]] = {kind: set(kept) for kind in _MARKERS}
        self._next = dict.fromkeys(_MARKERS, 0)

    def of(self, kind: str, word: str) -> str:
        """Return the placeholder of a word of one kind (call, response, tool, key)."""
        if not word:
            return word
        known = self._words.get((kind, word))
        if known is None:
            known = self._built_from_known(kind, word) or self._fresh(kind, word)
            self._words[kind, word] = known
            self._used[kind].add(known)
        return known

    def knows(self, kind: str, word: str) -> bool:
        """Whether the word has been met."""
        return (kind, word) in self._words

    def _built_from_known(self, kind: str, word: str) -> str | None:
        period = (word * 2).find(word, 1)
        if period < len(word):
            # The word may come later by itself, as a known tool: this one must still be a repetition of it.
            return self._unless_used(kind, self.of(kind, word[:period]) * (len(word) // period))
        for size in range(min(len(word) - 1, _LONGEST), 0, -1):
            known = self._words.get((kind, word[:size]))
            if known is not None:
                return self._unless_used(kind, known + self._fresh(kind, word[size:], known))
        return None

    def _unless_used(self, kind: str, alias: str) -> str | None:
        return None if alias in self._used[kind] else alias

    def _fresh(self, kind: str, word: str, before: str = "") -> str:
        """Return an unused placeholder; a word too short to have one left gets a longer one."""
        for extra in ("", "a", "aa", "aaa", "aaaa", "a" * 8):
            for _ in range(_TRIES):
                alias = placeholder(word + extra, _MARKERS[kind], self._next[kind])
                self._next[kind] += 1
                if before + alias not in self._used[kind]:
                    return alias
                if len(word) + len(extra) < 3 and self._next[kind] > 26**2:
                    break
        return placeholder(word, _MARKERS[kind], 0)
