"""The verdict of a comparison: pass, lost protection, lost compatibility, drift or broken.

Source: docs/design.md, section 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from fragmentlab.qualification.comparing.comparison import ABSENT, DRIFT, KINDS, LOST_PROTECTION, Comparison
from fragmentlab.qualification.comparing.expectations import Declaration, Declared
from fragmentlab.subjects.interface import FAILED

PASS = "pass"
BROKEN = "broken"


@dataclass(frozen=True)
class Verdict:
    """A comparison held against declarations; ``stale`` are those of what no longer occurs.

    ``moves`` are the comparison's with the ``declaration`` that covers each, if any, and whether it
    ``fails``: those first, of them the worst kind, of a kind what moved, then what a vector speaks against.
    """

    comparison: Comparison
    declared: Declared
    moves: pd.DataFrame
    stale: Sequence[Declaration]

    @cached_property
    def undeclared(self) -> pd.DataFrame:
        """Moves that fail."""
        return self.moves[self.moves.fails]

    @cached_property
    def counts(self) -> Counter[str]:
        """Kind -> how many undeclared moves."""
        return Counter(self.undeclared.kind)

    @cached_property
    def silent(self) -> list[str]:
        """Which of the two runs gave no outcome for any compared stream: such a run shows nothing."""
        compared = self.comparison.compared
        return [role for role in ("base", "target") if compared[role].str.startswith(FAILED).all()]

    @property
    def kind(self) -> str:
        """The worst kind of undeclared flip; what cannot be judged, and stale declarations, are drift.

        Where a run failed for every compared stream, nothing but lost protection is said of it.
        """
        if self.silent and not self.counts[LOST_PROTECTION]:
            return BROKEN
        worst = next((kind for kind in KINDS if self.counts[kind]), None)
        return worst or (DRIFT if self.counts or self.stale else PASS)

    @property
    def is_regression(self) -> bool:
        return self.kind != PASS

    def reasons(self) -> list[str]:
        """Why the verdict is what it is, a sentence each."""
        failing = self.undeclared
        standing, repaired = sum(failing.standing), sum(failing.target == failing.expected)
        declared = Counter(self.moves.kind) - self.counts
        changed, added = self.comparison.changed_sources, len(self.comparison.added)
        counted = [
            *((self.counts[kind], f"{kind}: {{}}") for kind in KINDS),
            (standing, "{} of these did not move: a vector expects a rejection, both accepted it"),
            (repaired, "{} of these moved to what the vector expects: if that is a repair, declare it"),
            *(
                (counts[kind], f"{{}} {kind} {how}")
                for kind in sorted(ABSENT)
                for counts, how in ((declared, "as declared"), (self.counts, "without a declaration"))
            ),
            (sum(declared[kind] for kind in KINDS), "{} flipped as declared"),
            (added, "{} added, not judged against the base"),
        ]
        return [
            *(f"the {role} run gave no outcome for any compared stream" for role in self.silent),
            *(sentence.format(streams(count)) for count, sentence in counted if count),
            *([f"{len(self.stale)} declarations no longer occur"] if self.stale else []),
            *([f"changed since the base run: {', '.join(changed)}"] if changed else []),
        ]


def verdict_of(comparison: Comparison, declared: Declared = Declared()) -> Verdict:  # noqa: B008 - frozen
    """Hold a comparison against the declared moves; each declaration must cover something."""
    rows = list(comparison.moves.itertuples())
    declarations = declared.declarations
    covering = [next((each for each in declarations if each.covers(row)), None) for row in rows]
    stale = [each for each in declarations if not any(each.covers(row) for row in rows)]
    moves = comparison.moves.assign(
        declaration=pd.Series(covering, dtype=object),
        fails=lambda moves: moves.declaration.isna(),
        kind=pd.Categorical(comparison.moves.kind, [*KINDS, *ABSENT], ordered=True),
    )
    order = {"fails": False, "kind": True, "standing": True, "against_vector": False}
    return Verdict(
        comparison, declared, moves.sort_values(list(order), ascending=list(order.values())), stale
    )


def streams(count: int) -> str:
    """A count of streams in words."""
    return "1 stream" if count == 1 else f"{count} streams"
