"""Which rejections moved between revisions: everything that notebook 04 shows, computed from recorded
runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

from fragmentlab.assembler import COMPOUND
from fragmentlab.corpus.streams import EVIDENCE
from fragmentlab.disclosure import for_html, for_terminal
from fragmentlab.files import kit_folder
from fragmentlab.qualification.comparing.comparison import (
    Flip,
    acceptance_interval,
    category_of,
    compare_runs,
    state_of,
)
from fragmentlab.qualification.comparing.expectations import Declared, load_expectations
from fragmentlab.qualification.comparing.verdict import Verdict, verdict_of
from fragmentlab.qualification.comparing.verdict_texts import KIT_WAS_TESTED, move_of, place_of, summary
from fragmentlab.qualification.note_facts import null_sentence
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import Run, find_run, list_runs
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Callout, Conclusion, Lists, ResultDoesNotHold, conclude
from fragmentlab.reports.show.runs_charts import (
    Acceptance,
    acceptance_figure,
    category_figure,
    category_styles,
)
from fragmentlab.reports.show.tables import Badge, Cell, Table

LISTED_FLIPS = 40
"""Flips shown on the page; ``fragmentlab compare --junit`` writes all."""


class Parts:
    """Several things under each other, as the value of one cell."""

    def __init__(self, *parts: Table | Figure | Callout | Lists) -> None:
        self.parts = parts

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        bundles = [part._repr_mimebundle_() for part in self.parts]
        return {kind: "\n".join(str(b[kind]) for b in bundles) for kind in ("text/html", "text/plain")}


@dataclass(frozen=True)
class Qualification:
    """The runs of a folder, and the judgement of a target against a base."""

    runs: Sequence[Run]
    judgement: Verdict
    batches: Sequence[str]

    def verdict(self) -> Callout:
        """The verdict and why, first on the page."""
        judgement = self.judgement
        base, target = judgement.comparison.base, judgement.comparison.target
        return Callout(
            "bad" if judgement.is_regression else "ok",
            f"{judgement.kind.capitalize()}: {target.title}, judged against {base.title}.",
            [
                f"{summary(judgement.comparison)}.",
                *(f"{reason[0].upper()}{reason[1:]}." for reason in judgement.reasons()),
                *_whose(base, target),
            ],
        )

    def recorded(self) -> Table:
        """Every run of the folder, in the order of its ledger."""
        rows = [
            (
                run.title,
                run.header["started"][:10],
                ", ".join(sorted(run.header["evidence"])),
                run.header["counts"]["streams"],
                *(
                    run.header["counts"].get(outcome, 0)
                    for outcome in ("accepted", "rejected", "no_calls", "failed")
                ),
            )
            for run in self.runs
        ]
        columns = ("run", "made on", "evidence", "streams", "accepted", "rejected", "no calls", "failed")
        return Table("Recorded runs", columns, rows, "A run that is called a reconstruction is not history.")

    def panel(self, kind: str) -> Parts:
        """Categories across runs for one kind of evidence, and how often it met a null continuation."""
        counts = {run.title: self._categories(run, kind) for run in self.runs if self._rows(run, kind)}
        sentences = [f"{run.title}: {self._nulls(run, kind)}" for run in self.runs if self._rows(run, kind)]
        if not counts:
            return Parts(Callout("plain", null_sentence(kind, 0, 0, 0, 0)))
        note = Lists([("Null continuations met", sentences)])
        return Parts(category_figure(kind, counts, self._styles), self._category_table(kind, counts), note)

    def acceptance(self) -> Parts:
        """Acceptance of each run by kind of evidence, with its interval."""
        rows = [
            _acceptance(f"{run.revision}, {kind}", [row["outcome"] for row in self._rows(run, kind)])
            for kind in EVIDENCE
            for run in self.runs
            if self._rows(run, kind)
        ]
        table = [
            (r.label, r.streams, r.accepted, f"{r.share:.1%}", f"{r.low:.1%} to {r.high:.1%}") for r in rows
        ]
        columns = ("run and evidence", "streams", "accepted", "share", "95 % interval")
        return Parts(acceptance_figure(rows), Table("The same in numbers", columns, table))

    def moves(self) -> Table:
        """How many streams moved from which state to which."""
        rows = [(before, after, n) for (before, after), n in self.judgement.comparison.moves.most_common()]
        return Table("Moves between base and target", ("from", "to", "streams"), rows)

    def tallies(self) -> Table:
        """Acceptance by evidence, provider and category, with the exact paired test."""
        rows = [
            (
                f"{by}: {t.group}",
                t.streams,
                t.base_accepted,
                t.target_accepted,
                t.lost,
                t.gained,
                f"{t.p:.2g}",
            )
            for by in ("evidence", "provider", "category")
            for t in self.judgement.comparison.tallies(by)
            if t.lost or t.gained
        ]
        columns = ("group", "streams", "base", "target", "lost", "gained", "p")
        note = "p is McNemar's exact test: how likely so uneven a split is if neither direction is favoured."
        return Table("Acceptance, where it moved", columns, rows, note)

    def flips(self) -> FlipRows:
        """The rows behind the moves, those that fail first."""
        return FlipRows(self.judgement)

    def require(self, fail_on_regression: bool) -> Callout:
        """Fail the notebook on a regression, unless told otherwise."""
        if self.judgement.is_regression and fail_on_regression:
            raise ResultDoesNotHold("; ".join(self.judgement.reasons()))
        said = (
            "a regression, which this run was told not to fail on"
            if self.judgement.is_regression
            else "no regression"
        )
        return Callout("plain", f"The comparison found {said}.")

    def conclusion(self) -> Conclusion:
        """What the runs show and what they do not."""
        kinds = {kind for run in self.runs for kind in run.header["evidence"]}
        compound = sum(self._categories(run, "imported")[COMPOUND] for run in self.runs)
        not_shown = [
            *(
                []
                if "live" in kinds
                else ["What a live server sends: captured streams are recordings, replayed."]
            ),
            *([] if "imported" in kinds else ["What failed in production: no gateway's log was imported."]),
            "How often providers send any shape: controlled streams were chosen by us.",
        ]
        if compound:
            not_shown.append(
                f"Why {compound} imported refusals happened: {COMPOUND} does not tell which rule was broken."
            )
        shows = [f"Verdict: {self.judgement.kind}. {summary(self.judgement.comparison)}."]
        target = self.judgement.comparison.target
        met = [kind for kind in EVIDENCE if self._rows(target, kind)]
        shows += [f"{target.title}: {self._nulls(target, kind)}" for kind in met]
        return conclude(shows=shows, not_shown=not_shown)

    @cached_property
    def _styles(self) -> dict[str, int]:
        return category_styles([self._categories(run, kind) for run in self.runs for kind in EVIDENCE])

    @cached_property
    def _all_rows(self) -> dict[str, list[Row]]:
        wanted = set(self.batches)
        return {
            run.id: [row for row in run.results.to_pylist() if not wanted or row["batch"] in wanted]
            for run in self.runs
        }

    def _rows(self, run: Run, kind: str) -> list[Row]:
        return [row for row in self._all_rows[run.id] if row["evidence"] == kind]

    def _categories(self, run: Run, kind: str) -> Counter[str]:
        return Counter(filter(None, (category_of(state_of(row)) for row in self._rows(run, kind))))

    def _nulls(self, run: Run, kind: str) -> str:
        rows = self._rows(run, kind)
        met = [row for row in rows if row["null_continuations"]]
        total = sum(row["null_continuations"] for row in met)
        return null_sentence(
            kind, len(rows), total, len(met), sum(row["outcome"] == "accepted" for row in met)
        )

    def _category_table(self, kind: str, counts: dict[str, Counter[str]]) -> Table:
        total = sum(counts.values(), Counter[str]())
        rows: list[list[Cell]] = [
            [name, *(own[name] for own in counts.values())] for name, _ in total.most_common()
        ]
        return Table(f"Refused streams by category, {kind} evidence", ("category", *counts), rows)


class FlipRows:
    """The flips as rows, each linked to how its stream can be looked at; at most LISTED_FLIPS."""

    def __init__(self, judgement: Verdict) -> None:
        declared = [judged for judged in judgement.judged if judged.declaration]
        self._rows = [(flip, "fails") for flip in judgement.undeclared]
        self._rows += [(judged.flip, "declared") for judged in declared]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self._to_html(), "text/plain": self._table().to_text()}

    def _table(self) -> Table:
        left = len(self._rows) - LISTED_FLIPS
        note = f"{left} more; `fragmentlab compare --junit` writes all." if left > 0 else ""
        rows = [
            (place_of(flip), flip.evidence, move_of(flip), Badge(flip.kind, "plain"), _mark(judged))
            for flip, judged in self._rows[:LISTED_FLIPS]
        ]
        return Table("Streams that moved", ("stream", "evidence", "move", "kind", "judged"), rows, note)

    def _to_html(self) -> str:
        table = self._table().to_html()
        for number, (flip, _) in enumerate(self._rows[:LISTED_FLIPS], 1):
            text = for_html(place_of(flip))
            table = table.replace(f">{text}</th>", f'><a href="#flip-{number}">{text}</a></th>', 1)
        items = "".join(
            f'<li id="flip-{number}"><code>{for_html(_how_to_look(flip))}</code></li>'
            for number, (flip, _) in enumerate(self._rows[:LISTED_FLIPS], 1)
        )
        how = f'<p class="fl-listtitle">How to look at each</p><ol>{items}</ol>' if items else ""
        return table + how


def open_qualification(p: SimpleNamespace) -> Qualification:
    """Open the runs that a notebook's checked parameters name, and judge the target against the base.

    Raises InputError for runs, batches or expectations that cannot be used.
    """
    folder, committed = _resolved(p.runs), kit_folder() / "data" / "runs"
    batches = [name.strip() for name in p.batches.split(",") if name.strip()]
    base, target = (find_run(name, [folder, committed]) for name in (p.base, p.target))
    declared = load_expectations(_resolved(p.expectations)) if p.expectations else Declared()
    recorded = list_runs(folder)
    others = [run for run in (base, target) if run.id not in {known.id for known in recorded}]
    judgement = verdict_of(compare_runs(base, target, batches), declared)
    return Qualification([*others, *recorded], judgement, batches)


def _resolved(option: str) -> Path:
    """A path as given, or else within the checkout: a notebook may be run from anywhere."""
    path = Path(option)
    return path if path.exists() or path.is_absolute() else kit_folder() / path


def _whose(base: Run, target: Run) -> list[str]:
    """Whose code was tested, where it was the kit's."""
    kit = [run.subject["kind"] in ("assembler", "counterfactual") for run in (base, target)]
    if kit[1]:
        return [f"{KIT_WAS_TESTED[0].upper()}{KIT_WAS_TESTED[1:]}."]
    return ["The base is the kit's assembler, not an earlier revision of the target."] if kit[0] else []


def _acceptance(label: str, outcomes: Sequence[str]) -> Acceptance:
    accepted = outcomes.count("accepted")
    return Acceptance(label, len(outcomes), accepted, *acceptance_interval(accepted, len(outcomes)))


def _mark(judged: str) -> Badge:
    return Badge(judged, "bad" if judged == "fails" else "ok")


def _how_to_look(flip: Flip) -> str:
    if flip.batch.startswith("vectors/"):
        return for_terminal(f"fragmentlab vectors data/{flip.batch}.json  # {flip.stream}")
    return for_terminal(f"fragmentlab report --only 01 -p batch={flip.batch} -p stream={flip.stream}")
