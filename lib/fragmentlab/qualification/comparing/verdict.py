"""The verdict of a comparison: pass, lost protection, lost compatibility, drift or broken.

Source: docs/design.md, section 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fragmentlab.qualification.comparing.comparison import (
    DRIFT,
    LOST_COMPATIBILITY,
    LOST_PROTECTION,
    Comparison,
    Flip,
    Key,
)
from fragmentlab.qualification.comparing.expectations import Declaration, Declared
from fragmentlab.subjects.interface import FAILED

PASS = "pass"
BROKEN = "broken"
KINDS = (LOST_PROTECTION, LOST_COMPATIBILITY, DRIFT)
"""Kinds of flips from the worst; a verdict is the worst that was not declared."""


@dataclass(frozen=True)
class Judged:
    """A flip and the declaration that covers it, if any."""

    flip: Flip
    declaration: Declaration | None


@dataclass(frozen=True)
class Absent:
    """A stream that is ``removed`` or ``changed`` in the target, and what declares it, if anything."""

    key: Key
    what: str
    declaration: Declaration | None


@dataclass(frozen=True)
class Verdict:
    """A comparison held against declarations. ``stale`` are declarations of what no longer occurs."""

    comparison: Comparison
    declared: Declared
    judged: Sequence[Judged]
    absent: Sequence[Absent]
    stale: Sequence[Declaration]

    @cached_property
    def undeclared(self) -> list[Flip]:
        """Flips that fail: the worst kind first, of a kind what moved, then what a vector speaks against."""
        flips = [judged.flip for judged in self.judged if judged.declaration is None]
        return sorted(
            flips, key=lambda flip: (KINDS.index(flip.kind), flip.standing, not flip.against_vector)
        )

    @cached_property
    def undeclared_absent(self) -> list[Absent]:
        return [absent for absent in self.absent if absent.declaration is None]

    @cached_property
    def counts(self) -> Counter[str]:
        """Kind -> how many undeclared flips."""
        return Counter(flip.kind for flip in self.undeclared)

    @cached_property
    def silent(self) -> list[str]:
        """Which of the two runs gave no outcome for any compared stream: such a run shows nothing."""
        pairs = self.comparison.rows.values()
        return [
            role
            for side, role in enumerate(("base", "target"))
            if all(pair[side]["outcome"] == FAILED for pair in pairs)
        ]

    @property
    def kind(self) -> str:
        """The worst kind of undeclared flip; what cannot be judged, and stale declarations, are drift.

        Where a run failed for every compared stream, nothing but lost protection is said of it.
        """
        if self.silent and not self.counts[LOST_PROTECTION]:
            return BROKEN
        if self.undeclared:
            return self.undeclared[0].kind
        return DRIFT if self.undeclared_absent or self.stale else PASS

    @property
    def is_regression(self) -> bool:
        return self.kind != PASS

    def reasons(self) -> list[str]:
        """Why the verdict is what it is, a sentence each."""
        standing = sum(flip.standing for flip in self.undeclared)
        repaired = sum(flip.repairs for flip in self.undeclared)
        declared = sum(judged.declaration is not None for judged in self.judged)
        absent = Counter((absent.what, absent.declaration is None) for absent in self.absent)
        changed, added = self.comparison.changed_sources, len(self.comparison.added)
        counted = [
            *((self.counts[kind], f"{kind}: {{}}") for kind in KINDS),
            (standing, "{} of these did not move: a vector expects a rejection, both accepted it"),
            (repaired, "{} of these moved to what the vector expects: if that is a repair, declare it"),
            *(
                (count, f"{{}} {what} {'without a declaration' if fails else 'as declared'}")
                for (what, fails), count in sorted(absent.items())
            ),
            (declared, "{} flipped as declared"),
            (added, "{} added, not judged against the base"),
        ]
        return [
            *(f"the {role} run gave no outcome for any compared stream" for role in self.silent),
            *(sentence.format(streams(count)) for count, sentence in counted if count),
            *([f"{len(self.stale)} declarations no longer occur"] if self.stale else []),
            *([f"changed since the base run: {', '.join(changed)}"] if changed else []),
        ]


def verdict_of(comparison: Comparison, declared: Declared = Declared()) -> Verdict:  # noqa: B008 - frozen
    """Hold a comparison against the declared flips; each declaration must cover something."""
    declarations = declared.declarations
    judged = [
        Judged(flip, next((d for d in declarations if d.covers(flip)), None)) for flip in comparison.flips
    ]
    absent = [
        Absent(key, what, next((d for d in declarations if d.covers_absence(key, what)), None))
        for what, keys in (("removed", comparison.removed), ("changed", comparison.changed))
        for key in keys
    ]
    stale = [
        d
        for d in declarations
        if not any(d.covers(flip) for flip in comparison.flips)
        and not any(d.covers_absence(a.key, a.what) for a in absent)
    ]
    return Verdict(comparison, declared, judged, absent, stale)


def streams(count: int) -> str:
    """A count of streams in words."""
    return "1 stream" if count == 1 else f"{count} streams"
