"""The verdict of a comparison: pass, lost protection, lost compatibility or drift.

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
from fragmentlab.qualification.comparing.expectations import Declaration

PASS = "pass"
KINDS = (LOST_PROTECTION, LOST_COMPATIBILITY, DRIFT)
"""From the worst; a verdict is the worst that was not declared."""


@dataclass(frozen=True)
class Judged:
    """A flip and the declaration that covers it, if any."""

    flip: Flip
    declaration: Declaration | None


@dataclass(frozen=True)
class Absent:
    """A stream that is ``removed`` or ``changed`` in the target, and the declaration that covers it, if
    any."""

    key: Key
    what: str
    declaration: Declaration | None


@dataclass(frozen=True)
class Verdict:
    """A comparison held against declarations. ``stale`` are declarations of what no longer occurs."""

    comparison: Comparison
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

    @property
    def kind(self) -> str:
        """The worst kind of undeclared flip; what cannot be judged, and stale declarations, are drift."""
        if self.undeclared:
            return self.undeclared[0].kind
        return DRIFT if self.undeclared_absent or self.stale else PASS

    @property
    def is_regression(self) -> bool:
        return self.kind != PASS

    def reasons(self) -> list[str]:
        """Why the verdict is what it is, a sentence each."""
        return [text for text in (*self._flip_reasons(), *self._other_reasons()) if text]

    def _flip_reasons(self) -> list[str]:
        standing = sum(flip.standing for flip in self.undeclared)
        repaired = sum(flip.repairs for flip in self.undeclared)
        return [
            *(f"{kind}: {streams(self.counts[kind])}" for kind in KINDS if self.counts[kind]),
            f"{streams(standing)} of these did not move: a vector expects a rejection, both accepted it"
            if standing
            else "",
            f"{streams(repaired)} of these moved to what the vector expects: if that is a repair, declare it"
            if repaired
            else "",
        ]

    def _other_reasons(self) -> list[str]:
        absent = Counter(absent.what for absent in self.undeclared_absent)
        known = Counter(absent.what for absent in self.absent if absent.declaration is not None)
        declared = sum(judged.declaration is not None for judged in self.judged)
        sources = ", ".join(self.comparison.changed_sources)
        return [
            *(f"{streams(count)} {what} without a declaration" for what, count in sorted(absent.items())),
            f"{len(self.stale)} declarations no longer occur" if self.stale else "",
            f"{streams(declared)} flipped as declared" if declared else "",
            *(f"{streams(count)} {what} as declared" for what, count in sorted(known.items())),
            f"changed since the base run: {sources}" if sources else "",
            f"{streams(len(self.comparison.added))} added, not judged against the base"
            if self.comparison.added
            else "",
        ]


def verdict_of(comparison: Comparison, declarations: Sequence[Declaration] = ()) -> Verdict:
    """Hold a comparison against the declared flips; each declaration must cover something."""
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
    return Verdict(comparison, judged, absent, stale)


def streams(count: int) -> str:
    """A count of streams in words."""
    return "1 stream" if count == 1 else f"{count} streams"
