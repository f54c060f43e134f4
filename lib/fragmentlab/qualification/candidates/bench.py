"""Put every stream of some sources under rule sets and counterfactuals, and keep what each makes of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fragmentlab.assembler import Result, RuleSet
from fragmentlab.assembler.result import FragmentRow
from fragmentlab.assembler.rules import DEFAULT_RULES, SHIPPED
from fragmentlab.qualification.candidates.counterfactuals import Counterfactual
from fragmentlab.qualification.runs.sources import Item, RunSource

RuleCell = tuple[str, str]
"""(identity, column) of the rule table."""


@dataclass(frozen=True)
class Ruling:
    """What one rule set makes of one stream; ``calls`` counts them, ``digest`` stands for their content."""

    outcome: str
    category: str | None
    calls: int
    digest: str = field(repr=False)
    elsewhere: tuple[str, ...]
    """Categories of the faults that no identity rule gave, in order."""

    @property
    def refused(self) -> bool:
        return self.outcome == "rejected"


@dataclass(frozen=True)
class BenchRow:
    """One stream: where it comes from, the cells that its fragments meet, and the ruling of each rule set."""

    stream: str
    batch: str
    kind: str
    evidence: str
    provider: str | None
    fragments: int
    met: Counter[RuleCell]
    ids_beside: Mapping[RuleCell, tuple[int, int]]
    """Cell -> (calls that meet it, those whose index is given more than one ID)."""
    rulings: Mapping[str, Ruling]


def bench(
    sources: Sequence[RunSource], tables: Sequence[RuleSet], counterfactuals: Iterable[str] = ()
) -> list[BenchRow]:
    """Return a row for every stream under the default rule set, the tables and the counterfactuals.

    A counterfactual sees the streams of one source as consecutive responses.
    """
    sets = {rules.name: rules for rules in (SHIPPED[DEFAULT_RULES], *tables)}
    names = list(counterfactuals)
    rows = []
    for source in sources:
        wrong = [Counterfactual(name) for name in names]
        rows += [_row(item, source.facts.kind, sets, wrong) for item in source.items()]
    return rows


def cells_met(rows: Iterable[FragmentRow]) -> dict[int, list[RuleCell]]:
    """Return index -> the cells that its fragments meet, in order. Fragments of no call meet none."""
    known: dict[int, str | None] = {}
    met: dict[int, list[RuleCell]] = {}
    for row in rows:
        if row.index is None or row.previous_identity is None:
            continue
        column: str | None = row.incoming_kind
        if column == "string":
            column = "same_string" if row.incoming_alias == known.get(row.index) else "other_string"
        if column is not None:
            met.setdefault(row.index, []).append((row.previous_identity, column))
        known[row.index] = row.id_alias
    return met


def _row(item: Item, kind: str, sets: Mapping[str, RuleSet], wrong: Sequence[Counterfactual]) -> BenchRow:
    stream = item.stream
    results = {name: stream.assemble(rules, diagnose=True) for name, rules in sets.items()}
    for subject in wrong:
        results[subject.name] = subject.assemble(
            stream.body,
            tools=stream.tools,
            limits=stream.limits,
            framing=stream.framing,
            end=stream.end,
            diagnose=True,
        )
    default = results[DEFAULT_RULES]
    met = cells_met(default.timeline)
    return BenchRow(
        stream.id,
        item.batch,
        kind,
        stream.evidence,
        stream.provider,
        default.counts["fragments"],
        Counter(cell for cells in met.values() for cell in cells),
        _ids_beside(default.timeline, met),
        {name: _ruling(result) for name, result in results.items()},
    )


def _ruling(result: Result) -> Ruling:
    raw = [(call.index, call.id, call.name, call.arguments) for call in result.calls]
    digest = hashlib.sha256(ascii(raw).encode()).hexdigest()
    elsewhere = [
        fault.category
        for fault in result.faults
        if fault.previous_identity is None and fault.stage != "fragment"
    ]
    return Ruling(result.outcome, result.category, len(raw), digest, tuple(elsewhere))


def _ids_beside(
    rows: Iterable[FragmentRow], met: Mapping[int, list[RuleCell]]
) -> dict[RuleCell, tuple[int, int]]:
    said: dict[int, set[str]] = {}
    for row in rows:
        if row.index is not None and row.incoming_alias:
            said.setdefault(row.index, set()).add(row.incoming_alias)
    found: dict[RuleCell, tuple[int, int]] = {}
    for index, cells in met.items():
        for cell in set(cells):
            calls, several = found.get(cell, (0, 0))
            found[cell] = calls + 1, several + (len(said.get(index, ())) > 1)
    return found
