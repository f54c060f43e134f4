"""Someone's rule set as notebook 03 shows it: how it differs, what it moves, what it breaks."""

from __future__ import annotations

from dataclasses import dataclass

from fragmentlab.assembler import DEFAULT_RULES
from fragmentlab.qualification.candidates.assessment import Assessment
from fragmentlab.qualification.candidates.bench import BenchRow
from fragmentlab.qualification.candidates.modelcheck import CHECKED_INVARIANTS
from fragmentlab.reports.rule_names import EVIDENCE, action_cell, shown_rules, shown_stream, smallest
from fragmentlab.reports.show.prose import Callout
from fragmentlab.reports.show.rule_figures import SAYS
from fragmentlab.reports.show.tables import Cell, Table


@dataclass(frozen=True)
class Candidate:
    """The assessment of one candidate, as tables and sentences."""

    assessment: Assessment

    def verdict(self) -> Callout:
        """The assessment of the candidate in one sentence."""
        judged, name = self.assessment, shown_rules(self.assessment.candidate.name)
        recovered, lost = len(judged.departed("recovered")), len(judged.departed("lost"))
        details = [
            f"Of {len(judged.rows):,} streams it recovers {recovered:,} and loses {lost:,}.",
            *self._risks(),
        ]
        if judged.safe and judged.merging:
            headline = (
                f"{name} breaks no invariant, but drops IDs that were sent: {judged.merging:,} streams."
            )
            return Callout("bad", headline, [*details, "Two calls on one index may have become one."])
        if judged.safe:
            return Callout("ok", f"{name} breaks no invariant: it differs only in what it refuses.", details)
        broken = dict.fromkeys(
            [*(v[0] for v in judged.candidate.violations), *(f.invariant for f in judged.check.findings)]
        )
        demands = "; ".join(CHECKED_INVARIANTS[invariant] for invariant in broken)
        details.append(f"It must never serve execution, and the runtime refuses it. Broken: {demands}.")
        return Callout("bad", f"{name} is unsafe.", details)

    def cells(self) -> Table:
        """The cells in which the candidate differs, and how often they are met."""
        rows: list[list[Cell]] = [
            [
                c.identity,
                SAYS[c.column],
                action_cell(c.before),
                action_cell(c.after),
                *(c.met[e] for e in EVIDENCE),
            ]
            for c in self.assessment.cells
        ]
        columns = [
            "known identity",
            "the fragment says",
            DEFAULT_RULES,
            "candidate",
            *(f"{e} fragments" for e in EVIDENCE),
        ]
        return Table("Cells that differ", columns, rows)

    def flips(self) -> Table:
        """The streams that fare otherwise, by evidence, provider and direction."""
        groups: dict[tuple[str, str, str, str], list[BenchRow]] = {}
        for flip in self.assessment.departures:
            change = f"{flip.before.category or 'accepted'} → {flip.after.category or 'accepted'}"
            key = (flip.direction, flip.row.evidence, flip.row.provider or flip.row.kind, change)
            groups.setdefault(key, []).append(flip.row)
        rows: list[list[Cell]] = [
            [direction, evidence, provider, change, len(found), shown_stream(smallest(found))]
            for (direction, evidence, provider, change), found in sorted(groups.items())
        ]
        return Table(
            "Streams that flip",
            ["it is", "evidence", "provider", "from and to", "streams", "for example"],
            rows,
            note="A controlled stream bears the provider whose shape it imitates, not one that sent it.",
        )

    def movements(self) -> Table:
        """Whether anything in permission, execution or recovery moves."""
        rows: list[list[Cell]] = [[m.layer, m.what, m.moved, m.of] for m in self.assessment.movements]
        return Table("What moves after assembly", ["layer", "what", "moved", "of"], rows)

    def questions(self) -> Table:
        """The three questions, answered from the assessment."""
        rows: list[list[Cell]] = [
            ["Is the field a complete value or an incremental update?", " ".join(self._value_or_update())],
            ["Which existing state makes it safe?", " ".join(self._safe_state())],
            ["At which layer is it interpreted?", " ".join(self._layer())],
        ]
        return Table("Three questions", ["question", "what the data says"], rows)

    def _risks(self) -> list[str]:
        """What the candidate gives up, as far as the streams tell."""
        judged, risks = self.assessment, []
        if later := len(judged.departed("other category")):
            risks.append(f"Refused for another reason than before: {later:,}.")
        if several := sum(cell.calls_with_other_ids for cell in judged.cells):
            risks.append(f"Calls that meet a changed cell and name more than one ID: {several:,}.")
        if judged.cells and not any(cell.met[kind] for cell in judged.cells for kind in ("captured", "live")):
            risks.append(
                "No captured or live stream meets a changed cell: what it recovers was made, not seen."
            )
        return risks

    def _value_or_update(self) -> list[str]:
        answers = []
        for cell in self.assessment.cells:
            where = f"{SAYS[cell.column]} where the identity is {cell.identity}"
            if not cell.calls:
                answers.append(f"Open: no stream says {where}.")
            elif cell.identity != "established":
                answers.append(f"{cell.calls:,} calls say {where}: nothing is known that it could update.")
            else:
                alone = cell.calls - cell.calls_with_other_ids
                kind = "an incremental update" if alone > cell.calls_with_other_ids else "no plain update"
                answers.append(
                    f"{where}: {kind}. {cell.calls:,} calls say it, "
                    f"and in {alone:,} of them the index names one ID only."
                )
        return answers or ["The candidate differs in no cell."]

    def _safe_state(self) -> list[str]:
        answers = []
        for safe in self.assessment.safe_actions:
            parts = [
                f"{action} {'is safe' if broken is None else 'breaks: ' + CHECKED_INVARIANTS[broken]}"
                for action, broken in (("keep", safe.keep), ("set", safe.set))
            ]
            answers.append(f"{safe.identity} and {SAYS[safe.column]}: {', '.join(parts)}.")
        return answers or ["No cell differs."]

    def _layer(self) -> list[str]:
        judged = self.assessment
        stages = ", ".join(f"{stage} ({count:,})" for stage, count in sorted(judged.stages.items()))
        first = (
            f"The faults that decide the flips are of the stage {stages}." if stages else "No stream flips."
        )
        return [
            first,
            "The cell is applied while a fragment joins its call, before the proposal and the host.",
            f"Faults of other stages differ in {judged.moved_elsewhere:,} of {len(judged.rows):,} streams.",
        ]
