"""Draws that are the same on every supported Python: only the generator's bits are used."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draws:
    """A seeded source of draws; ``scope`` gives each part of a batch its own, so that none moves another."""

    def __init__(self, seed: int, *scope: str | int) -> None:
        text = ":".join(map(str, (seed, *scope)))
        self._bits = random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")).getrandbits

    def below(self, limit: int) -> int:
        """Return a number from 0 to ``limit`` - 1; ``limit`` is below 2**32, so no bias shows."""
        return (self._bits(64) * limit) >> 64

    def chance(self, permille: int) -> bool:
        """Return True in ``permille`` of 1,000 draws."""
        return self.below(1000) < permille

    def pick(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.below(len(items))]

    def hex(self, digits: int) -> str:
        """Return a hexadecimal word."""
        return f"{self._bits(4 * digits):0{digits}x}"
