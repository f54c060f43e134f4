"""Someone's rule set as notebook 03 shows it: how it differs, what it moves, what it breaks."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.qualification.candidates.assessment import Assessment
from fragmentlab.qualification.candidates.modelcheck import CHECKED_INVARIANTS
from fragmentlab.reports.show.prose import Callout
from fragmentlab.reports.show.rule_figures import SAYS, action_badge
from fragmentlab.reports.show.tables import Table

REPLAYED = ("controlled", "captured", "live")
"""Kinds of evidence that a stream on the bench can have."""


@dataclass(frozen=True)
class CandidateTables:
    """The assessment of one candidate, as tables and sentences.

    ``name`` is how the candidate may be called; ``streams`` is ``Bench.streams_df``.
    """

    assessment: Assessment
    name: str
    streams: pd.DataFrame

    def cells(self) -> Table:
        """The cells in which the candidate differs, and how often fragments meet them, by evidence."""
        rows = [vars(cell) | {kind: cell.met[kind] for kind in REPLAYED} for cell in self.assessment.cells]
        cells = pd.DataFrame(rows, columns=["identity", "column", "before", "after", *REPLAYED])
        actions = cells[["before", "after"]].map(action_badge)
        counts = ", ".join(f"{kind} as {kind} fragments" for kind in REPLAYED)
        return Table(
            "Cells that differ",
            cells.assign(column=cells.column.map(SAYS), **actions),
            f"identity as known identity, column as the fragment says, before as {DEFAULT_RULES}, "
            f"after as candidate, {counts}",
        )

    def departures_df(self) -> pd.DataFrame:
        """One row per stream that fares otherwise.

        Columns: ``direction``, category ``before`` and ``after`` (missing where accepted), and those of
        ``Bench.streams_df``.
        """
        numbers = {id(row): number for number, row in enumerate(self.assessment.rows)}
        rows = [
            (numbers[id(each.row)], each.direction, each.before.category, each.after.category)
            for each in self.assessment.departures
        ]
        frame = pd.DataFrame(rows, columns=["number", "direction", "before", "after"])
        return frame.astype({"before": "str", "after": "str"}).merge(self.streams, on="number")

    def verdict(self) -> Callout:
        """The assessment of the candidate in one sentence."""
        judged, name = self.assessment, self.name
        recovered, lost = len(judged.departed("recovered")), len(judged.departed("lost"))
        moved = f"Of {len(judged.rows):,} streams it recovers {recovered:,} and loses {lost:,}."
        details = [moved, *self._risks()]
        if judged.safe and judged.merging:
            dropped = f"{judged.merging:,} streams"
            headline = f"{name} breaks no invariant, but drops IDs that were sent: {dropped}."
            return Callout("bad", headline, [*details, "Two calls on one index may have become one."])
        if judged.safe:
            return Callout("ok", f"{name} breaks no invariant: it differs only in what it refuses.", details)
        broken = dict.fromkeys(
            [*(v[0] for v in judged.candidate.violations), *(f.invariant for f in judged.check.findings)]
        )
        demands = "; ".join(CHECKED_INVARIANTS[invariant] for invariant in broken)
        details.append(f"It must never serve execution, and the runtime refuses it. Broken: {demands}.")
        return Callout("bad", f"{name} is unsafe.", details)

    def flips(self) -> Table:
        """The streams that fare otherwise, by evidence, provider and direction."""
        departures = self.departures_df().sort_values(["fragments", "stream"], kind="stable")
        change = departures.before.fillna("accepted") + " → " + departures.after.fillna("accepted")
        provider = departures.provider.fillna(departures.kind)
        groups = departures.assign(change=change, provider=provider).groupby(
            ["direction", "evidence", "provider", "change"], observed=True
        )
        told = groups.stream.agg(streams="size", example="first").reset_index()
        return Table(
            "Streams that flip",
            told,
            "direction as it is, evidence, provider, change as from and to, streams, example as for example",
            "A controlled stream bears the provider whose shape it imitates, not one that sent it.",
        )

    def movements(self) -> Table:
        """Whether anything in permission, execution or recovery moves."""
        return Table("What moves after assembly", pd.DataFrame(self.assessment.movements))

    def questions(self) -> Table:
        """The three questions, answered from the assessment."""
        answers = {
            "Is the field a complete value or an incremental update?": self._value_or_update(),
            "Which existing state makes it safe?": self._safe_state(),
            "At which layer is it interpreted?": self._layer(),
        }
        told = [(question, " ".join(answer)) for question, answer in answers.items()]
        return Table("Three questions", pd.DataFrame(told, columns=["question", "what the data says"]))

    def _risks(self) -> list[str]:
        """What the candidate gives up, as far as the streams tell."""
        judged, risks = self.assessment, []
        if later := len(judged.departed("other category")):
            risks.append(f"Refused for another reason than before: {later:,}.")
        if several := sum(cell.calls_with_other_ids for cell in judged.cells):
            risks.append(f"Calls that meet a changed cell and name more than one ID: {several:,}.")
        if judged.cells and not any(cell.met["captured"] + cell.met["live"] for cell in judged.cells):
            risks.append(
                "No captured or live stream meets a changed cell: what it recovers was made, not seen."
            )
        return risks

    def _value_or_update(self) -> list[str]:
        answers = []
        for cell in self.assessment.cells:
            where = f"{SAYS[cell.column]} where the identity is {cell.identity}"
            alone = cell.calls - cell.calls_with_other_ids
            kind = "an incremental update" if alone > cell.calls_with_other_ids else "no plain update"
            if not cell.calls:
                answers.append(f"Open: no stream says {where}.")
            elif cell.identity != "established":
                answers.append(f"{cell.calls:,} calls say {where}: nothing is known that it could update.")
            else:
                only = f"{alone:,} of them the index names one ID only"
                answers.append(f"{where}: {kind}. {cell.calls:,} calls say it, and in {only}.")
        return answers or ["The candidate differs in no cell."]

    def _safe_state(self) -> list[str]:
        answers = []
        for safe in self.assessment.safe_actions:
            keep, take = (
                "is safe" if broken is None else f"breaks: {CHECKED_INVARIANTS[broken]}"
                for broken in (safe.keep, safe.set)
            )
            answers.append(f"{safe.identity} and {SAYS[safe.column]}: keep {keep}, set {take}.")
        return answers or ["No cell differs."]

    def _layer(self) -> list[str]:
        judged = self.assessment
        stages = ", ".join(f"{stage} ({count:,})" for stage, count in sorted(judged.stages.items()))
        return [
            f"The faults that decide the flips are of the stage {stages}." if stages else "No stream flips.",
            "The cell is applied while a fragment joins its call, before the proposal and the host.",
            f"Faults of other stages differ in {judged.moved_elsewhere:,} of {len(judged.rows):,} streams.",
        ]
