"""Two runs side by side: streams matched by batch, id, body and conditions; what flipped, came or went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fragmentlab.errors import InputError
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import Run

LOST_PROTECTION = "lost protection"
LOST_COMPATIBILITY = "lost compatibility"
DRIFT = "drift"
OTHER_CALLS = "accepted:other_calls"
"""The state of a stream that was accepted with other calls than it carries."""
_COLUMNS = (
    "stream", "batch", "evidence", "provider", "body_sha256", "conditions_sha256", "outcome", "category",
    "calls_match", "null_continuations", "expected_outcome", "expected_category", "as_expected",
)  # fmt: skip
_HASHES = ("body_sha256", "conditions_sha256")
_PLACE = ("batch", "stream", "fault", "event", "fragment")

Key = tuple[str, str]
"""(batch, stream)."""


@dataclass(frozen=True)
class Flip:
    """One stream whose state moved; states are ``accepted``, ``accepted:other_calls``, ``rejected:CATEGORY``,
    ``no_calls`` and ``failed:subject.REASON``.

    ``standing`` marks a vector whose expected rejection was accepted in both runs; ``base`` is None for an
    added one. ``event`` and ``fragment`` say where the run that refused it did so.
    """

    batch: str
    stream: str
    evidence: str
    provider: str | None
    base: str | None
    target: str
    kind: str
    expected: str | None = None
    against_vector: bool = False
    standing: bool = False
    event: int | None = None
    fragment: int | None = None

    @property
    def categories(self) -> frozenset[str]:
        """The categories on either side."""
        return frozenset(filter(None, (category_of(self.base), category_of(self.target))))

    @property
    def repairs(self) -> bool:
        """Whether it moved to what the vector expects."""
        return self.expected is not None and self.target == self.expected


@dataclass(frozen=True)
class Tally:
    """Acceptance of the compared streams of one group; ``p`` is McNemar's exact test of lost and gained."""

    group: str
    streams: int
    base_accepted: int
    target_accepted: int
    lost: int
    gained: int
    p: float


@dataclass(frozen=True)
class Comparison:
    """What two runs share and how it moved; ``rows`` pairs the two rows of each compared stream."""

    base: Run
    target: Run
    rows: Mapping[Key, tuple[Row, Row]]
    flips: Sequence[Flip]
    added: Sequence[Key]
    removed: Sequence[Key]
    changed: Sequence[Key]
    changed_sources: Sequence[str]

    @cached_property
    def moves(self) -> Counter[tuple[str, str]]:
        """(state in base, state in target) -> how many streams moved so."""
        return Counter((flip.base, flip.target) for flip in self.flips if flip.base and not flip.standing)

    def tallies(self, by: str) -> list[Tally]:
        """Acceptance by ``evidence``, ``provider`` or the base's ``category``; "all" for everything."""
        groups: dict[str, list[tuple[Row, Row]]] = {}
        for base, target in self.rows.values():
            groups.setdefault("all" if by == "all" else base[by] or "none", []).append((base, target))
        return [_tally(name, pairs) for name, pairs in sorted(groups.items())]


def compare_runs(base: Run, target: Run, batches: Sequence[str] = ()) -> Comparison:
    """Compare two runs over their common streams, or those of the named ``batches`` only.

    Raises InputError for a batch that neither run has, and where nothing is common.
    """
    before, after = _rows(base, batches), _rows(target, batches)
    named = {key[0] for key in (*before, *after)}
    if missing := set(batches) - named:
        raise InputError(
            f"{len(missing)} of the named batches are in neither run; see `fragmentlab runs list`"
        )
    common = before.keys() & after.keys()
    same = {key for key in common if all(before[key][name] == after[key][name] for name in _HASHES)}
    if not same:
        raise InputError("the two runs have no stream in common, so there is nothing to judge")
    rows = {key: (before[key], after[key]) for key in before if key in same}
    return Comparison(
        base,
        target,
        rows,
        list(_flips(rows, after, base, target)),
        added=[key for key in after if key not in common],
        removed=[key for key in before if key not in common],
        changed=[key for key in before if key in common - same],
        changed_sources=_changed_sources(base, target),
    )


def state_of(row: Row) -> str:
    """A result row's state, as flips name it."""
    outcome = row["outcome"]
    if outcome == "accepted" and row["calls_match"] is False:
        return OTHER_CALLS
    return f"{outcome}:{row['category']}" if row["category"] else outcome


def category_of(state: str | None) -> str | None:
    """The category of a rejected or failed state."""
    outcome, _, rest = (state or "").partition(":")
    return rest if outcome in ("rejected", "failed") else None


def _rows(run: Run, batches: Sequence[str]) -> dict[Key, Row]:
    rows = run.results.select(list(_COLUMNS)).to_pylist()
    wanted = set(batches)
    return {(row["batch"], row["stream"]): row for row in rows if not wanted or row["batch"] in wanted}


def _flips(
    rows: Mapping[Key, tuple[Row, Row]], judged: Mapping[Key, Row], base: Run, target: Run
) -> Iterator[Flip]:
    places = {run.id: _places(run) for run in (base, target)}
    for key, row in judged.items():
        before = state_of(rows[key][0]) if key in rows else None
        after, against = state_of(row), _against_vector(row)
        if not against and before in (None, after):
            continue
        refusing = target if after.startswith("rejected") else base
        event, fragment = places[refusing.id].get(key, (None, None)) if before else (None, None)
        yield Flip(
            row["batch"],
            row["stream"],
            row["evidence"],
            row["provider"],
            before,
            after,
            LOST_PROTECTION if against else _kind(before or "", after),
            ":".join(filter(None, (row["expected_outcome"], row["expected_category"]))) or None,
            against,
            standing=before == after,
            event=event,
            fragment=fragment,
        )


def _against_vector(row: Row) -> bool:
    return row["expected_outcome"] == "rejected" and row["outcome"] == "accepted"


def _kind(base: str, target: str) -> str:
    before, after = base.partition(":")[0], target.partition(":")[0]
    if after == "accepted" and (before in ("rejected", "no_calls") or target == OTHER_CALLS):
        return LOST_PROTECTION
    if before == "accepted" and after != "accepted":
        return LOST_COMPATIBILITY
    if before == "no_calls" and after in ("rejected", "failed"):
        return LOST_COMPATIBILITY
    return DRIFT


def _places(run: Run) -> dict[Key, tuple[int | None, int | None]]:
    rows = run.diagnostics.select(list(_PLACE)).to_pylist()
    return {(r["batch"], r["stream"]): (r["event"], r["fragment"]) for r in rows if r["fault"] == 1}


def _changed_sources(base: Run, target: Run) -> list[str]:
    before = {source["name"]: source["sha256"] for source in base.header["sources"]}
    after = {source["name"]: source["sha256"] for source in target.header["sources"]}
    return sorted(name for name in before.keys() & after.keys() if before[name] != after[name])


def _tally(group: str, pairs: Iterable[tuple[Row, Row]]) -> Tally:
    accepted = [(base["outcome"] == "accepted", target["outcome"] == "accepted") for base, target in pairs]
    counts = Counter(accepted)
    lost, gained = counts[True, False], counts[False, True]
    return Tally(
        group,
        len(accepted),
        counts[True, True] + lost,
        counts[True, True] + gained,
        lost,
        gained,
        paired_p(lost, gained),
    )


def paired_p(lost: int, gained: int) -> float:
    """McNemar's exact two-sided test: how likely so uneven a split is if neither direction is favoured."""
    from scipy.stats import binomtest

    return float(binomtest(min(lost, gained), lost + gained, 0.5).pvalue) if lost + gained else 1.0


def acceptance_interval(accepted: int, streams: int) -> tuple[float, float]:
    """The Wilson 95 % interval of a share; (0, 1) where there is nothing."""
    from scipy.stats import binomtest

    if not streams:
        return 0.0, 1.0
    interval = binomtest(accepted, streams).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)
