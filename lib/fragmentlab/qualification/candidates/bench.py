"""Put every stream of some sources under rule sets and counterfactuals, and note their verdicts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fragmentlab.assembler import DEFAULT_RULES, SHIPPED, FragmentRow, Result, RuleSet
from fragmentlab.qualification.candidates.counterfactuals import Counterfactual, counterfactual
from fragmentlab.qualification.runs.sources import Item, Source

Cell = tuple[str, str]
"""(identity, column) of the rule table."""


@dataclass(frozen=True)
class Verdict:
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
    """One stream: where it comes from, the cells that its fragments meet, and a verdict a rule set."""

    stream: str
    batch: str
    kind: str
    evidence: str
    provider: str | None
    fragments: int
    met: Counter[Cell]
    ids_beside: dict[Cell, tuple[int, int]]
    """Cell -> (calls that meet it, those on whose index more than one ID is said)."""
    verdicts: dict[str, Verdict]


def column_of(row: FragmentRow, known: str | None) -> str | None:
    """The table's column of a fragment, given the alias known of its index before; None where it has none."""
    if row.previous_identity is None:
        return None
    if row.incoming_kind != "string":
        return row.incoming_kind
    return "same_string" if row.incoming_alias == known else "other_string"


def cells_met(rows: Iterable[FragmentRow]) -> dict[int, list[Cell]]:
    """Index -> the cells that its fragments meet, in order. Fragments of no call meet none."""
    known: dict[int, str | None] = {}
    met: dict[int, list[Cell]] = {}
    for row in rows:
        if row.index is None or row.previous_identity is None:
            continue
        column = column_of(row, known.get(row.index))
        if column is not None:
            met.setdefault(row.index, []).append((row.previous_identity, column))
        known[row.index] = row.id_alias
    return met


def bench(
    sources: Sequence[Source], tables: Sequence[RuleSet], counterfactuals: Iterable[str] = ()
) -> list[BenchRow]:
    """Return a row for every stream under the default rule set, the tables and the counterfactuals.

    A counterfactual sees the streams of one source as consecutive responses.
    """
    wrong = [counterfactual(name) for name in counterfactuals]
    rows = []
    for source in sources:
        for subject in wrong:
            subject.forget()
        rows += [_row(item, source.kind, tables, wrong) for item in source.items()]
    return rows


def _row(item: Item, kind: str, tables: Sequence[RuleSet], wrong: Sequence[Counterfactual]) -> BenchRow:
    stream = item.stream
    sets = {rules.name: rules for rules in (SHIPPED[DEFAULT_RULES], *tables)}
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
        item.evidence,
        item.provider,
        default.counts["fragments"],
        Counter(cell for cells in met.values() for cell in cells),
        _ids_beside(default.timeline, met),
        {name: _verdict(result) for name, result in results.items()},
    )


def _verdict(result: Result) -> Verdict:
    raw = [(call.index, call.id, call.name, call.arguments) for call in result.calls]
    elsewhere = tuple(
        fault.category
        for fault in result.faults
        if fault.previous_identity is None and fault.stage != "fragment"
    )
    digest = hashlib.sha256(ascii(raw).encode()).hexdigest()
    return Verdict(result.outcome, result.category, len(raw), digest, elsewhere)


def _ids_beside(rows: Iterable[FragmentRow], met: dict[int, list[Cell]]) -> dict[Cell, tuple[int, int]]:
    said: dict[int, set[str]] = {}
    for row in rows:
        if row.index is not None and row.incoming_alias:
            said.setdefault(row.index, set()).add(row.incoming_alias)
    found: dict[Cell, tuple[int, int]] = {}
    for index, cells in met.items():
        for cell in set(cells):
            calls, several = found.get(cell, (0, 0))
            found[cell] = calls + 1, several + (len(said.get(index, ())) > 1)
    return found
