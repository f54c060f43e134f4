"""Assess a candidate: someone's rule set against ``keep-established``, over streams and by model checking.

An assessment holds what three questions need: is the field a complete value or an incremental update, which
existing state makes it safe, and at which layer is it interpreted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from fragmentlab.assembler import CATEGORIES, RuleSet
from fragmentlab.assembler.rules import (
    CELLS,
    DEFAULT_RULES,
    IDENTITIES,
    IMPOSSIBLE,
    INVARIANTS,
    SHIPPED,
    check_invariants,
)
from fragmentlab.qualification.candidates.bench import BenchRow, RuleCell, Ruling
from fragmentlab.qualification.candidates.modelcheck import Check

Direction = Literal["recovered", "lost", "other category", "other calls"]


@dataclass(frozen=True)
class CellChange:
    """A cell in which the candidate differs; ``met`` counts the fragments that meet it, by evidence."""

    identity: str
    column: str
    before: str
    after: str
    met: Counter[str]
    calls: int
    calls_with_other_ids: int


@dataclass(frozen=True)
class Departure:
    """A stream that fares otherwise under the candidate.

    It is ``recovered`` (refused before), ``lost`` (refused now), refused under another category, or accepted
    with other calls.
    """

    row: BenchRow
    before: Ruling
    after: Ruling
    direction: Direction


@dataclass(frozen=True)
class Movement:
    """What moves in one layer after assembly; ``moved`` counts ``what``."""

    layer: str
    what: str
    moved: int
    of: int


@dataclass(frozen=True)
class SafeActions:
    """For one identity and a changed cell's column: the invariant that each action would break, if any."""

    identity: str
    column: str
    keep: str | None
    set: str | None


@dataclass(frozen=True)
class Assessment:
    """A candidate, how it differs, what it moves and what it breaks."""

    candidate: RuleSet
    rows: tuple[BenchRow, ...]
    cells: tuple[CellChange, ...]
    departures: tuple[Departure, ...]
    check: Check
    movements: tuple[Movement, ...]
    safe_actions: tuple[SafeActions, ...]
    stages: Counter[str]
    """Stage of the fault that decided, over the departures of which one side is refused."""
    moved_elsewhere: int
    """Streams in which faults that no identity rule gave differ."""

    @property
    def safe(self) -> bool:
        """Whether neither its cells nor any sequence breaks an invariant."""
        return self.candidate.executable and self.check.safe

    @property
    def merging(self) -> int:
        """Recovered streams in which an index that meets a changed cell names more than one ID."""
        cells = [(change.identity, change.column) for change in self.cells]
        return sum(
            any(departure.row.ids_beside.get(cell, (0, 0))[1] for cell in cells)
            for departure in self.departed("recovered")
        )

    def departed(self, direction: Direction) -> list[Departure]:
        """Return the departures of one direction."""
        return [departure for departure in self.departures if departure.direction == direction]


def assess(candidate: RuleSet, rows: Sequence[BenchRow], check: Check) -> Assessment:
    """Assess the candidate, given its model check, over rows that hold its rulings and the default's.

    ::

        rows = bench(open_sources(["data/batches/captured-local"]), [candidate])
        found = assess(candidate, rows, check_model(table_under_check(candidate)))
        found.safe, len(found.departed("recovered"))
    """
    departures = tuple(found for row in rows if (found := _departure(row, candidate.name)))
    cells = tuple(_change(cell, candidate, rows) for cell in differing_cells(candidate))
    return Assessment(
        candidate,
        tuple(rows),
        cells,
        departures,
        check,
        tuple(_movements(rows, departures, candidate.name)),
        tuple(
            SafeActions(*cell, _broken_by(cell, "keep"), _broken_by(cell, "set"))
            for column in dict.fromkeys(change.column for change in cells)
            for identity in IDENTITIES
            if (cell := (identity, column)) not in IMPOSSIBLE
        ),
        Counter(_stage(departure) for departure in departures if departure.direction != "other calls"),
        sum(row.rulings[DEFAULT_RULES].elsewhere != row.rulings[candidate.name].elsewhere for row in rows),
    )


def differing_cells(candidate: RuleSet) -> list[RuleCell]:
    """Return the cells in which the candidate is not ``keep-established``."""
    default = SHIPPED[DEFAULT_RULES]
    return [cell for cell in CELLS if candidate.action(*cell) != default.action(*cell)]


def _change(cell: RuleCell, candidate: RuleSet, rows: Sequence[BenchRow]) -> CellChange:
    met: Counter[str] = Counter()
    calls = several = 0
    for row in rows:
        met[row.evidence] += row.met[cell]
        own, beside = row.ids_beside.get(cell, (0, 0))
        calls, several = calls + own, several + beside
    before, after = SHIPPED[DEFAULT_RULES].action(*cell), candidate.action(*cell)
    return CellChange(*cell, before, after, met, calls, several)


def _departure(row: BenchRow, name: str) -> Departure | None:
    before, after = row.rulings[DEFAULT_RULES], row.rulings[name]
    if before.refused != after.refused:
        return Departure(row, before, after, "lost" if after.refused else "recovered")
    if before.category != after.category:
        return Departure(row, before, after, "other category")
    return None if before.digest == after.digest else Departure(row, before, after, "other calls")


def _stage(departure: Departure) -> str:
    category = departure.before.category if departure.before.refused else departure.after.category
    return CATEGORIES[category].stage if category else "none"


def _movements(rows: Sequence[BenchRow], departures: Sequence[Departure], name: str) -> Iterator[Movement]:
    by_direction = Counter(departure.direction for departure in departures)
    refused = sum(row.rulings[DEFAULT_RULES].refused for row in rows)
    both = sum(not row.rulings[DEFAULT_RULES].refused and not row.rulings[name].refused for row in rows)
    proposed = sum(row.rulings[DEFAULT_RULES].calls for row in rows)
    newly = sum(found.after.calls for found in departures if found.direction == "recovered")
    no_more = sum(found.before.calls for found in departures if found.direction == "lost")
    yield Movement("permission", "calls that newly reach the host's authorization", newly, proposed)
    yield Movement("permission", "calls that no longer reach it", no_more, proposed)
    moved = by_direction["other calls"]
    yield Movement("execution", "streams accepted by both whose calls differ", moved, both)
    moved = by_direction["recovered"]
    yield Movement("recovery", "refused streams that need none any more", moved, refused)
    moved = by_direction["other category"]
    yield Movement("recovery", "refused streams with another category", moved, refused)


def _broken_by(cell: RuleCell, action: str) -> str | None:
    """Return the first invariant that keep-established breaks with this one cell changed.

    That a table's own invariants find what model checking finds is tested for every cell.
    """
    identity, column = cell
    default = SHIPPED[DEFAULT_RULES]
    row = MappingProxyType({**default.cells[identity], column: action})
    cells = MappingProxyType({**default.cells, identity: row})
    broken = {name for name, _, _ in check_invariants(RuleSet("one-cell", "", cells))}
    return next((name for name in INVARIANTS if name in broken), None)
