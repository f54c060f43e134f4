"""Two runs side by side: streams matched by batch, id, body and conditions; what flipped, came or went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from fragmentlab.errors import InputError
from fragmentlab.qualification.runs.run_files import Run

LOST_PROTECTION = "lost protection"
LOST_COMPATIBILITY = "lost compatibility"
DRIFT = "drift"
KINDS = (LOST_PROTECTION, LOST_COMPATIBILITY, DRIFT)
"""Kinds of flips from the worst."""
ABSENT = ("removed", "changed")
"""Kinds of moves that cannot be judged: a stream that the target lacks, or has with other bytes or tools."""
OTHER_CALLS = "accepted:other_calls"
"""The state of a stream that was accepted with other calls than it carries."""
MOVE_COLUMNS = (
    "batch", "stream", "evidence", "provider", "base", "target", "kind", "expected", "against_vector",
    "standing", "event", "fragment",
)  # fmt: skip
_KEY = ["batch", "stream"]


@dataclass(frozen=True)
class Comparison:
    """What two runs share and how it moved.

    States are ``accepted``, ``accepted:other_calls``, ``rejected:CATEGORY``, ``no_calls`` and
    ``failed:subject.REASON``. ``compared`` has one row per compared stream: batch, stream, the states
    ``base`` and ``target``, and the base's evidence, provider and category.

    ``moves`` has MOVE_COLUMNS and one row per flip and per removed or changed stream (from ``recorded``);
    ``base`` is ``added`` where there is nothing to compare with. ``against_vector`` marks a rejection that a
    vector expects and the target accepted, ``standing`` one where the base did so too. ``event`` and
    ``fragment`` say where the run that refused did so.
    """

    base: Run
    target: Run
    compared: pd.DataFrame
    moves: pd.DataFrame
    added: Sequence[tuple[str, str]]
    changed_sources: Sequence[str]

    def tallies(self, by: str) -> pd.DataFrame:
        """Acceptance of the compared streams by ``evidence``, ``provider`` or the base's ``category``.

        One row per ``group``: streams, base_accepted, target_accepted, lost, gained, and ``p`` of McNemar's
        exact test of these two. ``all`` gives one row for everything.
        """
        groups = "all" if by == "all" else self.compared[by].fillna("none")
        base, target = (self.compared[side].map(_outcome) == "accepted" for side in ("base", "target"))
        counts = {"streams": 1, "base_accepted": base, "target_accepted": target}
        moved = {"lost": base & ~target, "gained": target & ~base}
        table = self.compared[[]].assign(group=groups, **counts, **moved).groupby("group").sum().reset_index()
        return table.assign(p=list(map(paired_p, table.lost, table.gained)))


def compare_runs(base: Run, target: Run, batches: Sequence[str] = ()) -> Comparison:
    """Compare two runs over their common streams, or those of the named ``batches`` only.

    Raises InputError for a batch that neither run has, and where nothing is common.
    """
    before, after = _rows(base, batches), _rows(target, batches)
    streams = after.index.union(before.index, sort=False)
    if missing := set(batches) - set(streams.get_level_values("batch")):
        raise InputError(
            f"{len(missing)} of the named batches are in neither run; see `fragmentlab runs list`"
        )
    before, after = before.reindex(streams), after.reindex(streams)
    common = before.state.notna() & after.state.notna()
    same = common & (before.content == after.content)
    if not same.any():
        raise InputError("the two runs have no stream in common, so there is nothing to judge")
    compared = before.assign(base=before.state, target=after.state)[same]
    moves = pd.DataFrame(
        _moves(zip(streams, before.itertuples(), after.itertuples(), same, strict=True)),
        columns=MOVE_COLUMNS,
        dtype=object,
    )
    return Comparison(
        base,
        target,
        compared[["evidence", "provider", "category", "base", "target"]].reset_index(),
        moves.where(moves.notna(), None),
        list(streams[before.state.isna()]),
        _changed_sources(base, target),
    )


def states(rows: pd.DataFrame) -> pd.Series:
    """The state of each result row."""
    other = (rows.outcome == "accepted") & (rows.calls_match == False)  # noqa: E712 - it may be missing
    return _joined(rows.outcome, rows.category).mask(other, OTHER_CALLS)


def category_of(state: str) -> str | None:
    """The category of a rejected or failed state."""
    return state.partition(":")[2] if _outcome(state) in ("rejected", "failed") else None


def _rows(run: Run, batches: Sequence[str]) -> pd.DataFrame:
    """One row per stream: its state, where it was refused, and ``content``, by which it is matched."""
    results = run.results.to_pandas().set_index(_KEY)
    first = run.diagnostics.filter(pc.field("fault") == 1).select([*_KEY, "event", "fragment"])
    places = first.to_pandas(types_mapper={"int64": pd.Int64Dtype()}.get).set_index(_KEY)
    rows = results[["evidence", "provider", "category"]].assign(
        state=states(results),
        expected=_joined(results.expected_outcome, results.expected_category),
        content=results.body_sha256 + results.conditions_sha256.fillna(""),
    )
    rows = rows.join(places)
    return rows[rows.index.get_level_values("batch").isin(batches)] if batches else rows


def _moves(pairs: Iterable[tuple[Any, ...]]) -> Iterator[tuple[object, ...]]:
    for key, before, after, is_same in pairs:
        is_known, is_left = pd.notna(before.state), pd.notna(after.state)
        if is_known and not is_same:
            kind = "changed" if is_left else "removed"
            names = (before.evidence, before.provider)
            yield *key, *names, "recorded", kind, kind, None, False, False, None, None
        if not is_left:
            continue
        base = before.state if is_same else "added"
        expects_rejection = pd.notna(after.expected) and _outcome(after.expected) == "rejected"
        against = expects_rejection and _outcome(after.state) == "accepted"
        if against or (is_same and base != after.state):
            kind = LOST_PROTECTION if against else _kind(base, after.state)
            facts = (base, after.state, kind, after.expected, against, base == after.state)
            refusing = after if _outcome(after.state) == "rejected" else before
            place = (refusing.event, refusing.fragment) if is_same else (None, None)
            yield *key, after.evidence, after.provider, *facts, *place


def _joined(first: pd.Series, rest: pd.Series) -> pd.Series:
    return first.where(rest.isna(), first + ":" + rest)


def _outcome(state: str) -> str:
    return state.partition(":")[0]


def _kind(base: str, target: str) -> str:
    before, after = _outcome(base), _outcome(target)
    if after == "accepted" and (before in ("rejected", "no_calls") or target == OTHER_CALLS):
        return LOST_PROTECTION
    if before == "accepted" and after != "accepted":
        return LOST_COMPATIBILITY
    if before == "no_calls" and after in ("rejected", "failed"):
        return LOST_COMPATIBILITY
    return DRIFT


def _changed_sources(base: Run, target: Run) -> list[str]:
    before = {source["name"]: source["sha256"] for source in base.header["sources"]}
    after = {source["name"]: source["sha256"] for source in target.header["sources"]}
    return sorted(name for name in before.keys() & after.keys() if before[name] != after[name])


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
