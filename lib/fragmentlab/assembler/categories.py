"""The categories of refusal, read from ``categories.json``: the one place that explains them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Case:
    """What a fault means where certain facts hold: ``when`` maps a flag or an observed fact to its value.

    True stands for any value that holds. The headline may name ``{known}``, ``{incoming}`` and the like.
    """

    when: Mapping[str, Any]
    headline: str
    causes: tuple[str, ...]
    next_steps: tuple[str, ...]


@dataclass(frozen=True)
class Category:
    """What is said of one category.

    ``stage`` is where in the order of checks it is found; the first of ``cases`` that holds goes before the
    general words; ``follows`` names faults, of the same call or of the response, that explain this one
    already.
    """

    name: str
    stage: str
    headline: str
    meaning: str
    causes: tuple[str, ...]
    next_steps: tuple[str, ...]
    links: tuple[str, ...]
    cases: tuple[Case, ...] = ()
    follows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_DATA = json.loads(files(__package__).joinpath("categories.json").read_bytes())


def _category(name: str, entry: dict[str, Any]) -> Category:
    cases = tuple(Case(**_frozen(case)) for case in entry.pop("cases", ()))
    follows = _frozen(entry.pop("follows", {}))
    return Category(name=name, cases=cases, follows=follows, **_frozen(entry))


def _frozen(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


CATEGORIES: MappingProxyType[str, Category] = MappingProxyType(
    {name: _category(name, entry) for name, entry in _DATA["categories"].items()}
)
FOLLOWING: str = _DATA["following"]
"""What to do next about a fault that follows from an earlier one."""
REMARKS: tuple[tuple[str, str], ...] = tuple((entry["when"], entry["text"]) for entry in _DATA["remarks"])
"""(count or tolerance, what a reader should know where there is one)."""
COMPOUND = "TOOL_FRAGMENT_ID"
"""The category that stood for every identity rejection before the repair; charted as recorded, never
split."""
HOST_CATEGORY = "authorization.denied"
"""The only category that the assembler never gives: the host decides it after assembly."""
