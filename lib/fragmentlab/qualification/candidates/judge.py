"""Judge a candidate: someone's rule set against ``keep-established``, over streams and by model checking.

The judgement holds what three questions need: is the field a complete value or an incremental update, which
existing state makes it safe, and at which layer is it interpreted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fragmentlab.assembler import (
    CATEGORIES,
    CELLS,
    DEFAULT_RULES,
    IDENTITIES,
    IMPOSSIBLE,
    SHIPPED,
    RuleSet,
    rules_from_json,
)
from fragmentlab.assembler.rules import SCHEMA
from fragmentlab.qualification.candidates.bench import BenchRow, Cell, Verdict
from fragmentlab.qualification.candidates.checked import TableUnderTest
from fragmentlab.qualification.candidates.modelcheck import Check, check_model

Direction = Literal["recovered", "lost", "other category", "other calls"]


@dataclass(frozen=True)
class CellChange:
    """A cell in which the candidate differs; ``met`` counts fragments that meet it, by evidence."""

    identity: str
    column: str
    before: str
    after: str
    met: Counter[str]
    calls: int
    calls_with_other_ids: int


@dataclass(frozen=True)
class Flip:
    """A stream that fares otherwise: ``recovered`` (refused before), ``lost`` (refused now), refused under
    another category, or accepted with other calls."""

    row: BenchRow
    before: Verdict
    after: Verdict
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
class Judgement:
    """A candidate, how it differs, what it moves and what it breaks."""

    candidate: RuleSet
    rows: tuple[BenchRow, ...]
    cells: tuple[CellChange, ...]
    flips: tuple[Flip, ...]
    check: Check
    movements: tuple[Movement, ...]
    safe_actions: tuple[SafeActions, ...]
    stages: Counter[str]
    """Stage of the fault that decided, of each flipped stream that one of both refuses."""
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
            any(flip.row.ids_beside.get(cell, (0, 0))[1] for cell in cells)
            for flip in self.flipped("recovered")
        )

    def flipped(self, direction: Direction) -> list[Flip]:
        """The flips of one direction."""
        return [flip for flip in self.flips if flip.direction == direction]


def judge(candidate: RuleSet, rows: Sequence[BenchRow], check: Check) -> Judgement:
    """Judge the candidate, given its model check, over rows that hold its verdicts and the default's."""
    flips = tuple(flip for row in rows if (flip := _flip(row, candidate.name)) is not None)
    cells = tuple(_change(cell, candidate, rows) for cell in differing_cells(candidate))
    return Judgement(
        candidate,
        tuple(rows),
        cells,
        flips,
        check,
        tuple(_movements(rows, flips, candidate.name)),
        tuple(
            SafeActions(
                identity, column, _broken_by(identity, column, "keep"), _broken_by(identity, column, "set")
            )
            for column in dict.fromkeys(change.column for change in cells)
            for identity in IDENTITIES
            if (identity, column) not in IMPOSSIBLE
        ),
        Counter(_stage(flip) for flip in flips if flip.direction != "other calls"),
        sum(row.verdicts[DEFAULT_RULES].elsewhere != row.verdicts[candidate.name].elsewhere for row in rows),
    )


def differing_cells(candidate: RuleSet) -> list[Cell]:
    """The cells in which the candidate is not ``keep-established``."""
    default = SHIPPED[DEFAULT_RULES]
    return [cell for cell in CELLS if candidate.action(*cell) != default.action(*cell)]


def _change(cell: Cell, candidate: RuleSet, rows: Sequence[BenchRow]) -> CellChange:
    met: Counter[str] = Counter()
    calls = several = 0
    for row in rows:
        met[row.evidence] += row.met[cell]
        own, beside = row.ids_beside.get(cell, (0, 0))
        calls, several = calls + own, several + beside
    before, after = SHIPPED[DEFAULT_RULES].action(*cell), candidate.action(*cell)
    return CellChange(*cell, before, after, met, calls, several)


def _flip(row: BenchRow, name: str) -> Flip | None:
    before, after = row.verdicts[DEFAULT_RULES], row.verdicts[name]
    if before.refused != after.refused:
        return Flip(row, before, after, "lost" if after.refused else "recovered")
    if before.category != after.category:
        return Flip(row, before, after, "other category")
    return None if before.digest == after.digest else Flip(row, before, after, "other calls")


def _stage(flip: Flip) -> str:
    category = flip.before.category if flip.before.refused else flip.after.category
    return CATEGORIES[category].stage if category else "none"


def _movements(rows: Sequence[BenchRow], flips: Sequence[Flip], name: str) -> list[Movement]:
    refused = [row for row in rows if row.verdicts[DEFAULT_RULES].refused]
    both = [row for row in rows if not row.verdicts[DEFAULT_RULES].refused and not row.verdicts[name].refused]
    by_direction = Counter(flip.direction for flip in flips)
    proposed = sum(row.verdicts[DEFAULT_RULES].calls for row in rows)
    newly = sum(flip.after.calls for flip in flips if flip.direction == "recovered")
    no_more = sum(flip.before.calls for flip in flips if flip.direction == "lost")
    return [
        Movement("permission", "calls that newly reach the host's authorization", newly, proposed),
        Movement("permission", "calls that no longer reach it", no_more, proposed),
        Movement(
            "execution", "streams accepted by both whose calls differ", by_direction["other calls"], len(both)
        ),
        Movement(
            "recovery", "refused streams that need none any more", by_direction["recovered"], len(refused)
        ),
        Movement(
            "recovery", "refused streams with another category", by_direction["other category"], len(refused)
        ),
    ]


def _broken_by(identity: str, column: str, action: str) -> str | None:
    """The invariant that keep-established would break with this one cell changed, by model checking."""
    cells = {i: dict(SHIPPED[DEFAULT_RULES].cells[i]) for i in IDENTITIES}
    cells[identity][column] = action
    rules = rules_from_json(json.dumps({"schema": SCHEMA, "name": "one-cell", "note": "", "cells": cells}))
    found = check_model(TableUnderTest(rules), responses=1).findings
    return found[0].invariant if found else None
