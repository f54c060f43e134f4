"""Which rejections moved between revisions: what notebook 04 shows, computed from recorded runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pandas as pd

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.corpus.streams import EVIDENCE
from fragmentlab.disclosure import for_terminal
from fragmentlab.files import data_folder, find_path
from fragmentlab.qualification.comparing.comparison import KINDS, MOVE_COLUMNS, compare_runs
from fragmentlab.qualification.comparing.expectations import Declared, load_expectations
from fragmentlab.qualification.comparing.verdict import Verdict, verdict_of
from fragmentlab.qualification.comparing.verdict_texts import KIT_WAS_TESTED, move_of, place_of, summary
from fragmentlab.qualification.note import null_sentence
from fragmentlab.qualification.runs.run_files import Run, find_run, list_runs
from fragmentlab.reports import frames
from fragmentlab.reports.columns import once
from fragmentlab.reports.frame.parameters import names_in
from fragmentlab.reports.show.charts import category_figure, category_styles, share_figure, with_shares
from fragmentlab.reports.show.prose import Callout, Conclusion, Lists, Parts, ResultDoesNotHold, conclude
from fragmentlab.reports.show.tables import Badge, Table

LISTED_FLIPS = 40
"""Flips shown on the page; ``fragmentlab compare --junit`` writes all."""


_WITHOUT = {
    "live": "What a live server sends: captured streams are recordings, replayed.",
    "imported": "What failed in production: no gateway's log was imported.",
    "": "How often providers send any shape: controlled streams were chosen by us.",
}
"""Kind of evidence -> what stays unknown without it."""


@dataclass(frozen=True)
class Qualification:
    """The runs of a folder, and the verdict on a target against a base."""

    runs: Sequence[Run]
    judged: Verdict
    batches: Sequence[str]

    def runs_df(self) -> pd.DataFrame:
        """One row per run: ``fragmentlab.reports.frames.runs_df``."""
        return frames.runs_df(self.runs)

    @once
    def results_df(self) -> pd.DataFrame:
        """One row per run and stream of the chosen batches: ``fragmentlab.reports.frames.results_df``."""
        return self._chosen(frames.results_df(self.runs))

    def faults_df(self) -> pd.DataFrame:
        """One row per run, stream and fault: ``fragmentlab.reports.frames.faults_df``."""
        return self._chosen(frames.faults_df(self.runs))

    def flips_df(self) -> pd.DataFrame:
        """One row per stream whose state moved, or that a vector speaks against; undeclared ones first.

        Columns: batch, stream, evidence, provider, the states ``base`` and ``target``, the ``kind`` of flip,
        what a vector expected, event and fragment of the refusal, and whether the flip was ``declared``.
        """
        flips = self._flips.assign(declared=~self._flips.fails)[[*MOVE_COLUMNS, "declared"]]
        closed = {"evidence": pd.CategoricalDtype(EVIDENCE), "kind": pd.CategoricalDtype(KINDS)}
        places = {"event": "Int64", "fragment": "Int64"}
        return flips.astype(closed | places | dict.fromkeys(("against_vector", "standing"), "bool"))

    def tallies_df(self) -> pd.DataFrame:
        """One row per evidence, provider and category: acceptance in both runs, and the exact paired test."""
        compared = self.judged.comparison
        groupings = ("evidence", "provider", "category")
        return pd.concat([compared.tallies(by).assign(by=by) for by in groupings], ignore_index=True)

    def verdict(self) -> Callout:
        """The verdict and why, first on the page."""
        declared = self.judged.declared.sha256
        base, target = self.judged.comparison.base, self.judged.comparison.target
        return Callout(
            "bad" if self.judged.is_regression else "ok",
            f"{self.judged.kind.capitalize()}: {target.title}, judged against {base.title}.",
            [
                f"{summary(self.judged.comparison)}.",
                *(f"{reason[0].upper()}{reason[1:]}." for reason in self.judged.reasons()),
                *([f"Flips are declared in the file with SHA-256 {declared}."] if declared else []),
                *_whose(base, target),
            ],
        )

    def recorded(self) -> Table:
        """Every run of the folder, in the order of its ledger."""
        runs = self.runs_df()
        told = runs.assign(
            run=runs.run.map(self._titles),
            started=runs.started.dt.strftime("%Y-%m-%d"),
            evidence=runs.evidence.map(lambda text: ", ".join(json.loads(text))),
        )
        columns = (
            "run, started as made on, evidence, streams, accepted, rejected, no_calls as no calls, failed"
        )
        return Table("Recorded runs", told, columns, "A run that is called a reconstruction is not history.")

    def panel(self, kind: str) -> Parts:
        """Categories across runs for one kind of evidence, and how often it met a null continuation."""
        rows = self.results_df().query("evidence == @kind")
        runs = rows.run.unique()
        if not len(runs):
            return Parts(Callout("plain", null_sentence(kind, rows)))
        counts = pd.crosstab(rows.category.astype(str), rows.run).reindex(columns=runs, fill_value=0)
        counts = counts.loc[counts.sum(axis=1).sort_values(ascending=False, kind="stable").index]
        counts = counts.rename(columns=self._titles)
        table = counts.rename_axis(index="category", columns=None).reset_index()
        sentences = [f"{self._titles[run]}: {self._nulls(run, kind)}" for run in runs]
        return Parts(
            category_figure(kind, counts, category_styles(self.results_df().category.dropna())),
            Table(f"Refused streams by category, {kind} evidence", table),
            Lists([("Null continuations met", sentences)]),
        )

    def acceptance(self) -> Parts:
        """Acceptance of each run by kind of evidence, with its interval."""
        counts = (
            self.results_df()
            .assign(is_accepted=self.results_df().outcome == "accepted")
            .groupby(["evidence", "run", "revision"], observed=True, sort=False)
            .is_accepted.agg(part="sum", streams="size")
            .reset_index()
            .sort_values("evidence", key=lambda kinds: kinds.map(EVIDENCE.index).astype(int), kind="stable")
        )
        shares = with_shares(counts.assign(label=counts.revision + ", " + counts.evidence.astype(str)))
        columns = "label as run and evidence, streams, part as accepted, percent as share, "
        return Parts(
            share_figure(shares, "accepted", "Acceptance by run and kind of evidence"),
            Table("The same in numbers", shares, f"{columns}interval as 95 % interval"),
        )

    def moves(self) -> Table:
        """How many streams moved from which state to which."""
        moved = self.flips_df().query("not standing and base != 'added'").groupby(["base", "target"]).size()
        told = moved.sort_values(ascending=False, kind="stable").rename("streams").reset_index()
        return Table("Moves between base and target", told, "base as from, target as to, streams")

    def tallies(self) -> Table:
        """Acceptance by evidence, provider and category, with the exact paired test."""
        moved = self.tallies_df().query("lost > 0 or gained > 0")
        told = moved.assign(group=moved.by + ": " + moved.group, p=moved.p.map("{:.2g}".format))
        columns = "group, streams, base_accepted as base, target_accepted as target, lost, gained, p"
        note = "p is McNemar's exact test: how likely so uneven a split is if neither direction is favoured."
        return Table("Acceptance, where it moved", told, columns, note)

    def flips(self) -> Table:
        """The streams behind the moves, those that fail first, and how each can be looked at."""
        left = len(self._flips) - LISTED_FLIPS
        rows = [
            [place_of(flip), flip.evidence, move_of(flip), flip.kind,
             Badge("fails", "bad") if flip.fails else Badge("declared", "ok"), _how_to_look(flip)]
            for flip in self._flips[:LISTED_FLIPS].itertuples()
        ]  # fmt: skip
        columns = ["stream", "evidence", "move", "kind", "judged", "look at it with"]
        note = f"{left} more; `fragmentlab compare --junit` writes all." if left > 0 else ""
        return Table("Streams that moved", pd.DataFrame(rows, columns=columns), note=note)

    def require(self, fail_on_regression: bool) -> Callout:
        """Fail the notebook on a regression, unless told otherwise."""
        if self.judged.is_regression and fail_on_regression:
            raise ResultDoesNotHold("; ".join(self.judged.reasons()))
        told = ", which this run was told not to fail on"
        found = f"a regression{told}" if self.judged.is_regression else "no regression"
        return Callout("plain", f"The comparison found {found}.")

    def conclusion(self) -> Conclusion:
        """What the runs show and what they do not."""
        kinds = {kind for run in self.runs for kind in run.header["evidence"]}
        not_shown = [text for kind, text in _WITHOUT.items() if kind not in kinds]
        if compound := len(self.results_df().query("evidence == 'imported' and category == @COMPOUND")):
            not_shown.append(
                f"Why {compound} imported refusals happened: {COMPOUND} does not tell which rule was broken."
            )
        shows = [f"Verdict: {self.judged.kind}. {summary(self.judged.comparison)}."]
        target = self.judged.comparison.target
        met = set(self.results_df().query("run == @target.id").evidence)
        shows += [f"{target.title}: {self._nulls(target.id, kind)}" for kind in EVIDENCE if kind in met]
        return conclude(shows=shows, not_shown=not_shown)

    @cached_property
    def _titles(self) -> dict[str, str]:
        return {run.id: run.title for run in self.runs}

    @cached_property
    def _flips(self) -> pd.DataFrame:
        return self.judged.moves[self.judged.moves.kind.isin(KINDS)]

    def _chosen(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame[frame.batch.isin(self.batches)] if self.batches else frame

    def _nulls(self, run: str, kind: str) -> str:
        return null_sentence(kind, self.results_df().query("run == @run and evidence == @kind"))


def open_qualification(p: SimpleNamespace) -> Qualification:
    """Open the runs that a notebook's checked parameters name, and judge the target against the base.

    Raises InputError for runs, batches or expectations that cannot be used.
    """
    folder = find_path(p.runs, "runs")
    batches = names_in(p.batches)
    base, target = (find_run(name, [folder, data_folder("runs")]) for name in (p.base, p.target))
    declared = load_expectations(find_path(p.expectations, "runs")) if p.expectations else Declared()
    recorded = list_runs(folder)
    others = [run for run in (base, target) if run.id not in {known.id for known in recorded}]
    verdict = verdict_of(compare_runs(base, target, batches), declared)
    return Qualification([*others, *recorded], verdict, batches)


def _whose(base: Run, target: Run) -> list[str]:
    """Whose code was tested, where it was the kit's."""
    kit = [run.subject["kind"] in ("assembler", "counterfactual") for run in (base, target)]
    if kit[1]:
        return [f"{KIT_WAS_TESTED[0].upper()}{KIT_WAS_TESTED[1:]}."]
    return ["The base is the kit's assembler, not an earlier revision of the target."] if kit[0] else []


def _how_to_look(flip: Any) -> str:
    batch = f"-p batch={flip.batch} " if not flip.batch.startswith("vectors/") else ""
    return for_terminal(f"fragmentlab report --only 01 {batch}-p stream={flip.stream}")
