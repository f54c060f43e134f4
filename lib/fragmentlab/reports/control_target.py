"""Whether null changes anything a user can see: what notebook 02 plays and shows."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace

from IPython.display import display

from fragmentlab.corpus.rules import find_rules
from fragmentlab.reports.captured_pairs import load_pairs, pairs_table
from fragmentlab.reports.control_target_result import Judgement
from fragmentlab.reports.frame.catalog import shown_rules
from fragmentlab.reports.show.continuations import continuations_figure
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Callout, Conclusion, ResultDoesNotHold, conclude
from fragmentlab.reports.show.tables import Badge, Cell, Table
from fragmentlab.runtime.gateway import executable_rules
from fragmentlab.runtime.live import run_live
from fragmentlab.runtime.play import Played, play_all
from fragmentlab.runtime.scenarios import load_scenarios
from fragmentlab.runtime.task import Task

_COMPARED = ("control", "target", "variant")


def control_against_target(p: SimpleNamespace) -> ControlTarget:
    """Play every scenario over a socket, assemble the recorded pairs and ask the live
    server, if one is given.

    Raises InputError for unusable parameters, among them rules that may not serve execution.
    """
    rules = executable_rules(find_rules(p.rules))
    task = Task(p.pages, p.kilobytes, p.parallel, p.seed)
    scenarios = load_scenarios(p.scenarios)
    pairs, evidence = load_pairs(p.pairs, rules)
    with tempfile.TemporaryDirectory(prefix="fragmentlab-") as folder:
        played = play_all(scenarios, task, Path(folder), rules)
    live = run_live(os.environ, task, rules, p.live_seconds)
    return ControlTarget(Judgement(rules, played, pairs, live), task, evidence, explained=not p.scenarios)


@dataclass(frozen=True)
class ControlTarget:
    """Everything that was played; each method is one cell's value.

    ``explained``: the scenarios are the kit's own, so that their sentences may be shown.
    """

    judged: Judgement
    task: Task
    pairs_evidence: str
    explained: bool

    def overview(self) -> Callout:
        """What was done, before anything is judged."""
        played, task = self.judged.played, self.task
        requests = sum(each.outcome.requests for each in played.values())
        work = (
            f"The task: list the sources, read {task.pages} pages ({task.parallel} in one response), "
            f"save a report of {task.kilobytes} KiB, finish. Every text and ID follows from seed {task.seed}."
        )
        path = (
            "Each scenario had a workspace of its own. A provider on loopback streamed it, a gateway fed the "
            "bytes to an assembler, the host judged the whole proposal, the tools ran, results went back."
        )
        headline = f"{len(played)} scenarios were played over a real socket, with {requests} requests"
        return Callout("plain", f"{headline}, under {shown_rules(self.judged.rules.name)}.", [work, path])

    def figure(self) -> Figure:
        """What later fragments said of the ID, and how each task ended."""
        return continuations_figure(
            [(played, self._verdict(played)) for played in self.judged.of(*_COMPARED)]
        )

    def comparison(self) -> Table:
        """Controls, targets and variants side by side."""
        columns = "scenario,repeats,nulls,ended,same IDs,results by ID,report SHA-256,lines that differ"
        return Table(
            "Control, target and variants, each on the same task",
            [*columns.split(","), "calls executed", "reports", "requests"],
            [self._compared(played) for played in self.judged.of(*_COMPARED)],
            note="Nulls: fragments with a null ID after the call's ID was known. Same IDs: every call came "
            "back to the provider under the ID that it had streamed. Results by ID: so did every result, and "
            "both equal those of the scenario to repeat. Lines that differ: between the two reports.",
        )

    def negatives(self) -> Table:
        """Everything that must be refused."""
        note = "Two requests: by the host's policy the refused request was sent again, and refused again."
        return self._refusals("What must be refused, and what came of it", "negative", ["refused as"], note)

    def recoveries(self) -> Table:
        """Tasks that were refused on the way and tried again."""
        columns = ["refused on the way", "in the end"]
        return self._refusals("Recovery: refused, then tried again from nothing", "recovery", columns, "")

    def recorded(self) -> Table:
        """The captured pairs."""
        return pairs_table(self.judged.pairs, self.pairs_evidence)

    def live_evidence(self) -> Callout:
        """What a real server did, or that none was asked."""
        live = self.judged.live
        if live is None:
            how = (
                "Set FRAGMENTLAB_BASE_URL and FRAGMENTLAB_MODEL, and FRAGMENTLAB_API_KEY where needed, "
                "to put the same task to a real server."
            )
            return Callout("plain", "No live server was given: nothing on this page is live evidence.", [how])
        if live.outcome is None or live.problem:
            return Callout("bad", f"The live server gave no evidence: {live.problem}.")
        outcome = live.outcome
        met = outcome.null_continuations
        ended = f"was refused as {outcome.category}" if outcome.category else f"ended {outcome.status}"
        unproven = "a task that passes without it proves nothing of it"
        sent = (
            "did send what the repair is about" if met else f"never sent what the repair is about: {unproven}"
        )
        done = (
            f"{len(outcome.executed)} calls were executed and {outcome.effects} reports saved, over "
            f"{outcome.requests} answers with {outcome.fragments:,} fragments."
        )
        details = [f"The server {sent}.", done]
        if outcome.problem:
            details.append(f"What went wrong: {outcome.problem}.")
        headline = f"Live evidence: the task {ended}; {met:,} null continuations were observed."
        return Callout("ok" if met and outcome.status == "done" else "plain", headline, details)

    def claims(self) -> Table:
        """The result, claim by claim, computed from the tables above."""
        rows: list[list[Cell]] = [
            [claim.text, claim.held, claim.total, _badge(claim.holds, "holds", "does not hold")]
            for claim in self.judged.claims
        ]
        return Table("The result, claim by claim", ["claim", "held", "of", "result"], rows)

    def result(self) -> Callout:
        """Whether the result holds, in a sentence."""
        rules = shown_rules(self.judged.rules.name)
        if self.judged.holds:
            return Callout("ok", f"Under {rules}, null changed nothing that a user can see.")
        return Callout("bad", f"The result does not hold under {rules}.", [f"{self.judged.why()}."])

    def close(self) -> Conclusion | None:
        """End the notebook; where the result does not hold, show the conclusion and then fail the run."""
        conclusion = conclude(shows=self._shows(), not_shown=self._not_shown())
        if self.judged.holds:
            return conclusion
        display(conclusion)
        raise ResultDoesNotHold(self.judged.why())

    def _verdict(self, played: Played) -> Badge:
        wrong = self.judged.wrong(played)
        ended = played.outcome.category or played.outcome.status
        unmet = played.unmet(self.judged.rules)
        return Badge(ended if wrong is None or unmet else wrong, "bad" if wrong else "ok")

    def _compared(self, played: Played) -> list[Cell]:
        outcome, other = played.outcome, self.judged.other(played)
        differences = self.judged.differences(played) or ()
        return [
            played.scenario.name,
            played.scenario.same_as,
            outcome.null_continuations,
            self._verdict(played),
            _badge(played.ids_kept and "identity" not in differences, "yes", "no"),
            _badge(
                played.results_own and bool(played.results) and "tool results" not in differences, "yes", "no"
            ),
            (played.report_sha256 or "")[:12] or None,
            None if other is None else _differing_lines(played.report, other.report),
            len(outcome.executed),
            len(played.files),
            outcome.requests,
        ]

    def _refusals(self, caption: str, kind: str, judged: list[str], note: str) -> Table:
        what = ["what is streamed"] if self.explained else []
        rows: list[list[Cell]] = []
        for played in self.judged.of(kind):
            row: list[Cell] = [played.scenario.name, *([played.scenario.about] if what else [])]
            if len(judged) > 1:
                row.append(", ".join(played.outcome.refusals) or "none")
            row += [
                self._verdict(played),
                len(played.outcome.executed),
                len(played.files),
                played.outcome.requests,
            ]
            rows.append(row)
        return Table(
            caption, ["scenario", *what, *judged, "calls executed", "files", "requests"], rows, note=note
        )

    def _shows(self) -> list[str]:
        judged = self.judged
        targets, negatives, pairs = judged.of("target"), judged.of("negative"), judged.pairs
        nulls = sum(played.outcome.null_continuations for played in targets)
        same, refused = (sum(judged.wrong(played) is None for played in of) for of in (targets, negatives))
        null = (
            f"{same} of {len(targets)} target scenarios, with {nulls:,} null continuations over a socket, "
            "had their control's IDs, tool results, report bytes, effects and requests (controlled evidence)."
        )
        negative = (
            f"{refused} of {len(negatives)} scenarios that must be refused were refused for their reason, "
            "with no call executed and no file written (controlled evidence)."
        )
        recorded = (
            f"{sum(pair.is_same for pair in pairs)} of {len(pairs)} recorded pairs, with "
            f"{sum(pair.nulls for pair in pairs):,} null continuations, had the same outcome, tools and "
            f"arguments ({self.pairs_evidence} evidence)."
        )
        shows = [null, negative, recorded]
        if judged.rules.name == "reject-null":
            shows.append(
                "reject-null is a reconstruction of the rule before the repair, made for this kit; it is not "
                "history. This run ends as failed because what it measures is what that rule refused."
            )
        return shows

    def _not_shown(self) -> list[str]:
        live = self.judged.live
        outcome = live.outcome if live and not live.problem else None
        met = outcome.null_continuations if outcome else 0
        asked = (
            "That a live server needs the repair: none was asked."
            if outcome is None
            else f"More of the live server than one task, in which it sent {met:,} null continuations."
            if met
            else "That the live server needs the repair: it sent no null continuation."
        )
        return [
            "How often providers send null: the kit made the scenarios, one small model the recordings.",
            "Anything of another gateway than the kit's own: test yours with fragmentlab qualify --exec.",
            asked,
        ]


def _badge(holds: bool, yes: str, no: str) -> Badge:
    return Badge(yes, "ok") if holds else Badge(no, "bad")


def _differing_lines(mine: bytes | None, other: bytes | None) -> int | None:
    if mine is None or other is None:
        return None
    return sum(
        a != b for a, b in zip_longest(mine.splitlines(keepends=True), other.splitlines(keepends=True))
    )
