"""Delta debugging: the smallest list, JSON value or text for which something still holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

Item = TypeVar("Item")
MAX_TRIES = 20_000
MAX_TRIED_BYTES = 64 << 20
"""How often, and over how many bytes in all, is tried before the smallest so far is taken."""
_PIECES = [
    re.compile(pattern, re.DOTALL)
    for pattern in (r"[^\n]*\n|[^\n]+", r"[^,]*,|[^,]+", r"[^\s,{}\[\]:]+|.", r".")
]


class Reducer:
    """Reduces parts of a body; ``holds`` is the test of a whole one."""

    def __init__(
        self, holds: Callable[[bytes], bool], tries: int = MAX_TRIES, work: int = MAX_TRIED_BYTES
    ) -> None:
        self._holds, self._tries, self._work = holds, tries, work

    @property
    def is_done(self) -> bool:
        """Whether the tries or the bytes are used up."""
        return self._tries <= 0 or self._work <= 0

    def holds(self, body: bytes) -> bool:
        """Try once; False where nothing may be tried any more."""
        if self.is_done:
            return False
        self._tries -= 1
        self._work -= len(body)
        return self._holds(body)

    def items(self, items: Sequence[Item], body: Callable[[list[Item]], bytes]) -> list[Item]:
        """Return a part of ``items``, order kept, from which no single item can be taken (Zeller's ddmin).

        ``body`` makes the whole body of a part.
        """
        kept = list(items)
        size = len(kept)
        while size and not self.is_done:
            at, removed = 0, False
            while at < len(kept) and not self.is_done:
                part = kept[:at] + kept[at + size :]
                if self.holds(body(part)):
                    kept, removed = part, True
                else:
                    at += size
            if size == 1 and not removed:
                break
            size = max(1, size // 2)
        return kept

    def text(self, text: str, body: Callable[[str], bytes]) -> str:
        """Return a part of the text: lines are taken first, then what commas end, words, characters."""
        for pattern in _PIECES:
            text = "".join(self.items(pattern.findall(text), lambda kept: body("".join(kept))))
        return text

    def value(self, value: Any, body: Callable[[Any], bytes]) -> Any:
        """Return the JSON value with what can go taken out: members, items, characters; then numbers to 0."""
        if isinstance(value, dict):
            value = dict(self.items(list(value.items()), lambda kept: body(dict(kept))))
            for key in value:
                value[key] = self.value(value[key], partial(_put, body, value, key))
        elif isinstance(value, list):
            value = self.items(value, body)
            for at in range(len(value)):
                value[at] = self.value(value[at], partial(_put, body, value, at))
        elif isinstance(value, str):
            value = self.text(value, body)
        elif type(value) in (int, float) and value != 0 and self.holds(body(0)):
            value = 0
        return value


def _put(body: Callable[[Any], bytes], holder: Any, key: Any, inner: Any) -> bytes:
    changed = holder.copy()
    changed[key] = inner
    return body(changed)
