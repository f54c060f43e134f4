"""Faults in words: a headline that names the point, its causes, what to do next (``categories.json``)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from .categories import CATEGORIES, FOLLOWING, REMARKS, Case, Category
from .result import Fault, FragmentRow, Result

_FRESH = 3
"""The fewest IDs of one call that tell a server which makes a new one for each fragment."""


@dataclass(frozen=True)
class Explanation:
    """One fault in words that hold no raw value: IDs stand as aliases (A, B, ...).

    ``follows`` says that an earlier fault of the response already explains this one.
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
    observed = _observed(result)
    facts = observed.facts(fault)
    words = case_of(category, facts) or category
    follows = observed.is_explained(fault, category)
    steps = (FOLLOWING,) if follows else words.next_steps
    return Explanation(words.headline.format_map(facts), words.causes, steps, follows)


def remarks(result: Result) -> tuple[str, ...]:
    """Say what a reader should know of the response beside its faults, in sentences without raw values."""
    counts = {**result.counts, **result.tolerances}
    return tuple(text for name, text in REMARKS if counts.get(name))


def case_of(category: Category, facts: dict[str, Any]) -> Case | None:
    """Return the first case of the category that the facts meet."""
    for case in category.cases:
        if all(
            bool(facts.get(n)) if wanted is True else facts.get(n) == wanted
            for n, wanted in case.when.items()
        ):
            return case
    return None


class _Index:
    """What one index of the timeline shows."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.names = 0
        self.arguments: list[int] = []

    def add(self, row: FragmentRow) -> None:
        if row.incoming_alias:
            self.ids.append(row.incoming_alias)
        self.names += bool(row.name_bytes)
        if row.arguments_bytes:
            self.arguments.append(row.arguments_bytes)


class _Observed:
    """What a result shows beyond each fault's own facts, looked at once."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._rows = {row.fragment: row for row in result.timeline}
        self._indices: dict[int, _Index] = defaultdict(_Index)
        for row in result.timeline:
            if row.index is not None and row.previous_identity is not None:
                self._indices[row.index].add(row)
        self._index_of_call = dict(enumerate(self._indices, 1))
        openings = any(i.ids and i.names and not i.arguments for i in self._indices.values())
        strays = any(i.arguments and not i.ids and not i.names for i in self._indices.values())
        self._elsewhere = openings and strays
        self._position = {id(fault): at for at, fault in enumerate(result.faults)}
        self._first: dict[tuple[str, int | None], int] = {}
        for at, fault in enumerate(result.faults):
            for name in (fault.category, fault.category.partition(".")[0] + "."):
                self._first.setdefault((name, fault.call), at)
                self._first.setdefault((name, None), at)

    def facts(self, fault: Fault) -> dict[str, Any]:
        """Return the fault's facts and flags, and what the response shows of them."""
        counts, tolerances = self._result.counts, self._result.tolerances
        row = self._rows.get(fault.fragment or 0)
        index = self._indices.get(self._index_of_call.get(fault.call or 0, -1), _Index())
        ids = index.ids
        is_fresh = len(ids) >= _FRESH and len(set(ids)) == len(ids) and index.names <= 1
        return {
            "incoming_kind": fault.incoming_kind,
            "incoming_empty": fault.incoming_empty,
            "previous_identity": fault.previous_identity,
            "known": row.id_alias if row and row.id_alias else "one",
            "incoming": f", {row.incoming_alias}," if row and row.incoming_alias else "",
            "fresh_ids": is_fresh,
            "opens_call": bool(row and row.name_bytes),
            "resent": len(index.arguments) > 1 and index.arguments[-1] * 2 == sum(index.arguments),
            "arguments_elsewhere": self._elsewhere,
            "only_named": 0 < tolerances.get("named_event", 0) == counts["chunks"],
            "only_pings": bool(counts["pings"]) and not counts["chunks"],
            "nothing_came": not counts["events"] and not counts["pings"],
            "is_first": (fault.event or 0) <= 1,
            "finished": counts["finished"],
            "null_tool_calls": bool(tolerances.get("null_padding.tool_calls")),
            **fault.flags,
        }

    def is_explained(self, fault: Fault, category: Category) -> bool:
        """Whether this one follows from an earlier fault of the same call or of the response."""
        at = self._position.get(id(fault), 0)
        calls = category.follows.get("call", ()) if fault.call else ()
        earlier = [self._first.get((name, fault.call), at) for name in calls]
        earlier += [self._first.get((name, None), at) for name in category.follows.get("response", ())]
        return any(other < at for other in earlier)


def _observed(result: Result) -> _Observed:
    held = vars(result)
    if "_observed" not in held:
        held["_observed"] = _Observed(result)
    observed: _Observed = held["_observed"]
    return observed
