"""Whether null changes anything a user can see: what notebook 02 plays and shows."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from IPython.display import display

from fragmentlab.assembler import RuleSet
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import shown_name
from fragmentlab.files import data_folder
from fragmentlab.reports.columns import once
from fragmentlab.reports.show.charts import continuations_figure
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.pairs import pairs_df, pairs_table
from fragmentlab.reports.show.prose import Callout, Conclusion, ResultDoesNotHold, conclude
from fragmentlab.reports.show.tables import Badge, Table, badges
from fragmentlab.runtime.gateway import executable_rules
from fragmentlab.runtime.live import LiveRun, run_live
from fragmentlab.runtime.play import Played, play_all
from fragmentlab.runtime.scenarios import load_scenarios
from fragmentlab.runtime.task import Task

_HOW_TO_ASK = (
    "Set FRAGMENTLAB_BASE_URL and FRAGMENTLAB_MODEL, and FRAGMENTLAB_API_KEY where needed, to put the same "
    "task to a real server."
)
_NEVER_SENT = (
    "The server never sent what the repair is about: a task that passes without it proves nothing of it."
)
_COMPARED = ["control", "target", "variant"]
_RECONSTRUCTED = (
    "reject-null is a reconstruction of the rule before the repair, made for this kit; it is not history. "
    "This run ends as failed because what it measures is what that rule refused."
)
_NAMED = 6
_SAYS = {"omitted": "omitted", "null": "null", "string": "the same ID"}
_OTHER = "something else"
_CLAIMS = {
    "Every control and variant ends as it should, every variant as its control": ["control", "variant"],
    "Every target repeats its control: IDs, results, report, effects, requests": ["target"],
    "Every negative is refused for its reason, without a call or a file": ["negative"],
    "Every recovery ends as it should and uses nothing of a refused response": ["recovery"],
}
"""Claim -> the kinds of scenarios that must all hold."""


def control_against_target(p: SimpleNamespace) -> ControlTarget:
    """Play every scenario over a socket, assemble the recorded pairs, and ask the live server that is named.

    Raises InputError for unusable parameters, among them rules that may not serve execution.
    """
    rules = executable_rules(find_rules(p.rules))
    task = Task(p.pages, p.kilobytes, p.parallel, p.seed)
    scenarios = load_scenarios(p.scenarios)
    pairs = pairs_df(p.pairs, rules)
    with tempfile.TemporaryDirectory(prefix="fragmentlab-") as folder:
        played = play_all(scenarios, task, Path(folder), rules)
    live = run_live(os.environ, task, rules, p.live_seconds)
    return ControlTarget(rules, task, played, pairs, live, explained=not p.scenarios)


@dataclass(frozen=True)
class ControlTarget:
    """Everything that was played; each method is one cell's value.

    ``explained``: the scenarios are the kit's own, so that their sentences and hashes may be shown.
    """

    rule_set: RuleSet
    task: Task
    played: Mapping[str, Played]
    pairs: pd.DataFrame
    live: LiveRun | None
    explained: bool

    @property
    def rules(self) -> str:
        """The rule set's name, as it is shown."""
        return shown_name(self.rule_set.name, "your rule set")

    @once
    def scenarios_df(self) -> pd.DataFrame:
        """One row per scenario, in order.

        Columns: ``scenario``, ``kind`` (control, target, variant, negative, recovery), ``about``, ``repeats``
        (the scenario that it must repeat), ``status``, ``category`` and ``refusals`` (JSON) of the
        task, ``null_continuations`` met, ``ids_kept`` and ``results_own`` (each call and result under its own
        ID, and as in the repeated scenario), ``report_sha256``, ``lines_that_differ`` from the repeated
        report, ``executed`` calls, ``files`` and ``requests`` (counts), and ``wrong``: what does not hold.
        """
        frame = pd.DataFrame(map(self._row, self.played.values()))
        texts = ["category", "repeats", "report_sha256", "unmet", "wrong"]
        return frame.astype(dict.fromkeys(texts, "str") | {"lines_that_differ": "Int64", "kind": "category"})

    def pairs_df(self) -> pd.DataFrame:
        """One row per recorded pair: ``fragmentlab.reports.show.pairs.pairs_df``."""
        return self.pairs

    def continuations_df(self) -> pd.DataFrame:
        """One row per compared scenario: how many fragments of a known call said what.

        Columns: one per thing said, read from the bytes that were streamed.
        """
        compared = self.scenarios_df().query("kind in @_COMPARED").scenario
        said = [
            (name, _SAYS.get(row.incoming_kind or "", _OTHER))
            for name, played in zip(self._names.values(), self.played.values(), strict=True)
            for body in (played.bodies if name in set(compared) else ())
            for row in Stream("", body).assemble(diagnose=True).timeline
            if row.previous_identity == "established" and row.decision != "reject"
        ]
        frame = pd.DataFrame(said, columns=["scenario", "said"], dtype="str")
        counts = pd.crosstab(frame.scenario, frame.said).rename_axis(columns=None)
        return counts.reindex(index=compared, columns=[*_SAYS.values(), _OTHER], fill_value=0)

    def claims_df(self) -> pd.DataFrame:
        """One row per claim of the result: ``claim``, how often it ``held`` of ``total``, and ``holds``."""
        held = {claim: self._of(kinds).wrong.isna() for claim, kinds in _CLAIMS.items()}
        held["Every target really streamed null after an ID"] = self._of(["target"]).null_continuations > 0
        held["Every recorded target has its control's outcome and arguments"] = self.pairs.is_same
        if self.live is not None:
            held["The live server that was named gave evidence"] = pd.Series([not self.live.problem])
        rows = [(claim, each.sum(), len(each), each.all()) for claim, each in held.items() if len(each)]
        return pd.DataFrame(rows, columns=["claim", "held", "total", "holds"])

    @property
    def holds(self) -> bool:
        return bool(self.claims_df().holds.all())

    def overview(self) -> Callout:
        """What was done, before anything is judged."""
        task = self.task
        work = (
            f"The task: list the sources, read {task.pages} pages ({task.parallel} in one response), "
            f"save a report of {task.kilobytes} KiB, finish. Every text and ID follows from seed {task.seed}."
        )
        path = (
            "Each scenario had a workspace of its own. A provider on loopback streamed it, a gateway fed the "
            "bytes to an assembler, the host judged the whole proposal, the tools ran, results went back."
        )
        played = f"{len(self.played)} scenarios were played over a real socket, with "
        played += f"{self.scenarios_df().requests.sum()} requests, under {self.rules}."
        return Callout("plain", played, [work, path])

    def figure(self) -> Figure:
        """What later fragments said of the ID, and how each task ended."""
        return continuations_figure(self.continuations_df(), self._endings(self._of(_COMPARED)))

    def comparison(self) -> Table:
        """Controls, targets and variants side by side."""
        own = self._of(_COMPARED)
        told = own.assign(
            ended=self._endings(own),
            ids=badges(own.ids_kept, "yes", "no"),
            results=badges(own.results_own, "yes", "no"),
            sha256=own.report_sha256.str[:12],
        )
        return Table(
            "Control, target and variants, each on the same task",
            told,
            "scenario, repeats, null_continuations as nulls, ended, ids as same IDs, results as results by ID"
            f"{', sha256 as report SHA-256' if self.explained else ''}, lines_that_differ as lines that "
            "differ, executed as calls executed, files as reports, requests",
            "Nulls: fragments with a null ID after the call's ID was known. Same IDs: every call came "
            "back to the provider under the ID that it had streamed. Results by ID: so did every result, and "
            "both equal those of the scenario to repeat. Lines that differ: between the two reports.",
        )

    def negatives(self) -> Table:
        """Everything that must be refused."""
        note = "Two requests: by the host's policy the refused request was sent again, and refused again."
        own = self._of(["negative"])
        return self._refusals("What must be refused, and what came of it", own, "ended as refused as", note)

    def recoveries(self) -> Table:
        """Tasks that were refused on the way and tried again."""
        own = self._of(["recovery"])
        told = own.assign(refusals=own.refusals.map(lambda text: ", ".join(json.loads(text)) or "none"))
        judged = "refusals as refused on the way, ended as in the end"
        return self._refusals("Recovery: refused, then tried again from nothing", told, judged)

    def recorded(self) -> Table:
        """The captured pairs."""
        return pairs_table(self.pairs)

    def live_evidence(self) -> Callout:
        """What a real server did, or that none was asked."""
        live = self.live
        if live is None:
            headline = "No live server was given: nothing on this page is live evidence."
            return Callout("plain", headline, [_HOW_TO_ASK])
        if live.outcome is None or live.problem:
            return Callout("bad", f"The live server gave no evidence: {live.problem}.")
        outcome = live.outcome
        met = outcome.null_continuations
        ended = f"was refused as {outcome.category}" if outcome.category else f"ended {outcome.status}"
        done = f"{len(outcome.executed)} calls were executed, {outcome.effects} reports saved, "
        done += f"{outcome.requests} answers received, with {outcome.fragments:,} fragments."
        details = [
            "The server did send what the repair is about." if met else _NEVER_SENT,
            done,
            *([f"What went wrong: {outcome.problem}."] if outcome.problem else []),
        ]
        headline = f"Live evidence: the task {ended}; {met:,} null continuations were observed."
        return Callout("ok" if met and outcome.status == "done" else "plain", headline, details)

    def claims(self) -> Table:
        """The result, claim by claim, computed from the frames above."""
        claims = self.claims_df()
        told = claims.assign(result=badges(claims.holds, "holds", "does not hold"))
        return Table("The result, claim by claim", told, "claim, held, total as of, result")

    def result(self) -> Callout:
        """Whether the result holds, in a sentence."""
        if self.holds:
            return Callout("ok", f"Under {self.rules}, null changed nothing that a user can see.")
        return Callout("bad", f"The result does not hold under {self.rules}.", [f"{self.why()}."])

    def why(self) -> str:
        """What does not hold: scenarios by name and how, recorded pairs by number."""
        failed = self._failed
        told = [f"{len(failed)} of {len(self.played)} scenarios do not hold"] if len(failed) else []
        for how, names in failed.groupby("how", sort=False).scenario:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            told.append(f"{how}: {', '.join(names[:_NAMED])}{more}")
        different = self.pairs[~self.pairs.is_same]
        if ended := ", ".join(sorted(different.target_ended.unique())):
            unlike = f"{len(different)} of {len(self.pairs)} recorded targets, unlike their controls"
            told.append(f"{unlike}: {ended}")
        if self.live is not None and self.live.problem:
            told.append(f"live server: {self.live.problem}")
        return f"Under {self.rules}: {'; '.join(told)}"

    def close(self) -> Conclusion | None:
        """End the notebook; where the result does not hold, show the conclusion and then fail the run."""
        conclusion = conclude(shows=self._shows(), not_shown=self._not_shown())
        if self.holds:
            return conclusion
        display(conclusion)
        raise ResultDoesNotHold(self.why())

    @cached_property
    def _names(self) -> dict[str, str]:
        """Scenario -> its name as it is shown: the kit's own, or a number among someone's."""
        shipped = {path.stem for path in data_folder("scenarios").glob("*.json")}
        own = [name for name in self.played if name not in shipped]
        numbered = {name: f"your scenario {number}" for number, name in enumerate(own, 1)}
        return {name: numbered.get(name, name) for name in self.played}

    def _row(self, played: Played) -> dict[str, Any]:
        scenario, outcome = played.scenario, played.outcome
        other = self.played.get(scenario.same_as or "")
        differences = [] if other is None else played.differences(other)
        unmet = played.unmet(self.rule_set)
        return {
            "scenario": self._names[scenario.name],
            "kind": scenario.kind,
            "about": scenario.about if self.explained else None,
            "repeats": self._names.get(scenario.same_as or ""),
            "status": outcome.status,
            "category": outcome.category,
            "refusals": json.dumps(outcome.refusals),
            "null_continuations": outcome.null_continuations,
            "ids_kept": played.ids_kept and "identity" not in differences,
            "results_own": played.results_own and bool(played.results) and "tool results" not in differences,
            "report_sha256": played.report_sha256 if self.explained else None,
            "lines_that_differ": None if other is None else _differing_lines(played.report, other.report),
            "executed": len(outcome.executed),
            "files": len(played.files),
            "requests": outcome.requests,
            "unmet": unmet,
            "wrong": unmet or (f"differs in {', '.join(differences)}" if differences else None),
        }

    def _of(self, kinds: Sequence[str]) -> pd.DataFrame:
        """The scenarios of these kinds, in order."""
        return self.scenarios_df().query("kind in @kinds").reset_index(drop=True)

    @staticmethod
    def _endings(own: pd.DataFrame) -> list[Badge]:
        """How each task ended, or in what it differs though it ended as expected."""
        ended = own.category.fillna(own.status)
        return badges(own.wrong.isna(), ended, ended.where(own.unmet.notna(), own.wrong))

    @property
    def _failed(self) -> pd.DataFrame:
        """Scenarios that do not hold, and ``how``; a target that streamed no null proves nothing."""
        own = self.scenarios_df()
        refused = own.unmet.notna() & own.category.notna()
        how = own.wrong.mask(refused, "refused as " + own.category)
        no_null = own.wrong.isna() & (own.kind == "target") & (own.null_continuations == 0)
        return own.assign(how=how.mask(no_null, "streamed no null after an ID")).dropna(subset="how")

    def _refusals(self, caption: str, own: pd.DataFrame, judged: str, note: str = "") -> Table:
        about = "about as what is streamed, " if self.explained else ""
        columns = f"scenario, {about}{judged}, executed as calls executed, files, requests"
        return Table(caption, own.assign(ended=self._endings(own)), columns, note)

    def _shows(self) -> list[str]:
        targets, negatives, pairs = self._of(["target"]), self._of(["negative"]), self.pairs
        same, refused = (own.wrong.isna().sum() for own in (targets, negatives))
        null = (
            f"{same} of {len(targets)} target scenarios, with {targets.null_continuations.sum():,} null "
            "continuations over a socket, had their control's IDs, tool results, report bytes, effects and "
            "requests (controlled evidence)."
        )
        negative = (
            f"{refused} of {len(negatives)} scenarios that must be refused were refused for their reason, "
            "with no call executed and no file written (controlled evidence)."
        )
        recorded = (
            f"{pairs.is_same.sum()} of {len(pairs)} recorded pairs, with "
            f"{pairs.null_continuations.sum():,} null continuations, had the same outcome, tools and "
            f"arguments ({pairs.evidence[0]} evidence)."
        )
        return [null, negative, recorded, *([_RECONSTRUCTED] if self.rule_set.name == "reject-null" else [])]

    def _not_shown(self) -> list[str]:
        asked = "That a live server needs the repair: none was asked."
        if self.live and self.live.outcome and not self.live.problem:
            met = self.live.outcome.null_continuations
            asked = f"More of the live server than one task, in which it sent {met:,} null continuations."
            asked = asked if met else "That the live server needs the repair: it sent no null continuation."
        return [
            "How often providers send null: the kit made the scenarios, one small model the recordings.",
            "Anything of another gateway than the kit's own: test yours with fragmentlab qualify --exec.",
            asked,
        ]


def _differing_lines(mine: bytes | None, other: bytes | None) -> int | None:
    if mine is None or other is None:
        return None
    lines = (report.splitlines(keepends=True) for report in (mine, other))
    return sum(first != second for first, second in zip_longest(*lines))
