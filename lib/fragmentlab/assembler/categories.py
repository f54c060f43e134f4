"""The categories of refusal, read from ``categories.json``: the one place that explains them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True)
class Category:
    """One entry: ``stage`` is where in the order of checks it is found."""

    name: str
    stage: str
    meaning: str
    causes: tuple[str, ...]
    next_steps: tuple[str, ...]
    links: tuple[str, ...]


def _load() -> dict[str, Category]:
    data = json.loads(files(__package__).joinpath("categories.json").read_bytes())
    return {
        name: Category(
            name,
            entry["stage"],
            entry["meaning"],
            tuple(entry["causes"]),
            tuple(entry["next_steps"]),
            tuple(entry["links"]),
        )
        for name, entry in data["categories"].items()
    }


CATEGORIES: MappingProxyType[str, Category] = MappingProxyType(_load())
COMPOUND = "TOOL_FRAGMENT_ID"
"""The category that stood for every identity rejection before the repair; charted as recorded, never
split."""
HOST_CATEGORY = "authorization.denied"
"""The only category that the assembler never gives: the host decides it after assembly."""
