"""Faults in words: a headline that names the point, its causes, what to do next (``categories.json``)."""

from __future__ import annotations

from dataclasses import dataclass

from .categories import CATEGORIES
from .result import Fault, Result


@dataclass(frozen=True)
class Explanation:
    """One fault in words that hold no raw value: IDs stand as aliases (A, B, ...).

    ``follows`` says that an earlier fault of the response already explains this one, so that its next steps
    need not be shown.
    """

    headline: str
    causes: tuple[str, ...]
    next_steps: tuple[str, ...]
    follows: bool = False


def explain(fault: Fault, result: Result) -> Explanation:
    """Put one fault of ``result`` into words; a result of the diagnosing mode allows the precise ones.

    >>> result = assemble(body, diagnose=True)
    >>> explain(result.faults[0], result).headline
    'another ID, B, where A is known'
    """
    category = CATEGORIES[fault.category]
    return Explanation(category.meaning, category.causes, category.next_steps)


def remarks(result: Result) -> tuple[str, ...]:
    """Say what a reader should know of the response beside its faults, in sentences without raw values."""
    return ()
