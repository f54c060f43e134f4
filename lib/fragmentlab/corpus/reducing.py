"""Delta debugging: the smallest list, JSON value or text for which something still holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
MAX_TRIES = 30_000
"""How often a candidate is tried before the smallest one so far is taken."""


class Reducer:
    """Counts the tries of one reduction; ``is_done`` says that they are used up."""

    def __init__(self, tries: int = MAX_TRIES) -> None:
        self._left = tries

    @property
    def is_done(self) -> bool:
        """Whether no try is left."""
        return self._left <= 0

    def holds(self, test: Callable[[], bool]) -> bool:
        """Try once; False where no try is left."""
        if self.is_done:
            return False
        self._left -= 1
        return test()

    def items(self, items: Sequence[Item], test: Callable[[list[Item]], bool]) -> list[Item]:
        """Return a part of ``items``, order kept, from which no single item can be taken (Zeller's ddmin)."""
        kept = list(items)
        size = len(kept)
        while size and not self.is_done:
            start, removed = 0, False
            while start < len(kept):
                candidate = kept[:start] + kept[start + size :]
                if self.holds(lambda candidate=candidate: test(candidate)):  # type: ignore[misc]
                    kept, removed = candidate, True
                else:
                    start += size
            if size == 1 and not removed:
                break
            size = max(1, size // 2) if not removed or size > 1 else 1
        return kept

    def text(self, text: str, test: Callable[[str], bool]) -> str:
        """Return a part of the text from which no single character can be taken."""
        return "".join(self.items(list(text), lambda kept: test("".join(kept))))

    def value(self, value: Any, test: Callable[[Any], bool]) -> Any:
        """Return the JSON value with what can go taken out: members, items, characters; then numbers to 0."""
        changed = True
        while changed and not self.is_done:
            changed = False
            for candidate in _smaller(value):
                if self.holds(lambda candidate=candidate: test(candidate)):  # type: ignore[misc]
                    value, changed = candidate, True
                    break
        return value


def _smaller(value: Any) -> Iterator[Any]:
    """Yield the value with one thing less, the largest things first."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            for smaller in _smaller(item):
                yield value | {key: smaller}
    elif isinstance(value, list):
        for position in range(len(value)):
            yield value[:position] + value[position + 1 :]
        for position, item in enumerate(value):
            for smaller in _smaller(item):
                yield [*value[:position], smaller, *value[position + 1 :]]
    elif isinstance(value, str) and value:
        yield ""
        half = len(value) // 2
        if half:
            yield value[:half]
            yield value[half:]
        if len(value) <= 64:
            for position in range(len(value)):
                yield value[:position] + value[position + 1 :]
    elif type(value) in (int, float) and value != 0:
        yield 0
