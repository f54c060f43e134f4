"""Play a scenario end to end: provider, gateway, agent and workspace together, and what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.errors import InputError
from fragmentlab.runtime.agent import Agent, TaskResult
from fragmentlab.runtime.gateway import Gateway, Timeouts
from fragmentlab.runtime.journal import EffectJournal
from fragmentlab.runtime.policy import DEFAULT_POLICY, Policy
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import Scenario
from fragmentlab.runtime.session import Session
from fragmentlab.runtime.task import REPORT_NAME, Task
from fragmentlab.runtime.workspace import Workspace
from fragmentlab.wire.fragments import WireCall

TIMEOUTS = Timeouts(connect=5.0, idle=10.0, total=60.0)
"""Loopback answers at once; these only bound a scenario that holds the connection."""
_SPARE_TURNS = 4


@dataclass(frozen=True)
class Played:
    """One scenario, played: facts only.

    ``ids_kept``: every call came back under the ID that was streamed for it; ``results_own``: under that ID
    came what this very call asked for. ``results``: digests of ID and result by turn and call. ``report`` is
    kept for comparing bytes and is never shown.
    """

    scenario: Scenario
    outcome: TaskResult
    ids_kept: bool
    results_own: bool
    results: tuple[tuple[tuple[int, int], tuple[str, str]], ...]
    files: tuple[str, ...]
    report: bytes | None = field(repr=False)
    bodies: tuple[bytes, ...] = field(repr=False)

    @property
    def report_sha256(self) -> str | None:
        return None if self.report is None else hashlib.sha256(self.report).hexdigest()

    @property
    def streams_null(self) -> bool:
        """Whether null after an established ID was really met."""
        return self.outcome.null_continuations > 0

    def unmet(self, rules: RuleSet) -> str | None:
        """What differs from the scenario's expectation, or None.

        Under another rule set than the default an identity category may be the compound one, and a null
        stream may be refused for its null before anything else.
        """
        expect, outcome = self.scenario.expect, self.outcome
        if self.scenario.kind == "negative" and outcome.executed:
            return "executed a call that must be refused"
        if outcome.status != expect.status:
            return f"ended {outcome.status}, not {expect.status}"
        if outcome.status == "done" and not (self.ids_kept and self.results_own):
            return "gave a call another ID or another call's result"
        if not self._matches(outcome.category, expect.category, rules):
            return f"was refused as {outcome.category}, not {expect.category}"
        if expect.refusals is not None and not self._match_all(outcome.refusals, expect.refusals, rules):
            return "was refused on the way otherwise than expected"
        if outcome.status == "refused" and (outcome.effects or self.files):
            return "had an effect"
        return None

    def differences(self, other: Played) -> list[str]:
        """In what this one differs from the one that it must repeat; empty where nothing does.

        A recovery takes more requests and so gets other IDs; all else must be the same.
        """
        facts: dict[str, tuple[object, object]] = {
            "how it ended": (self.outcome.status, other.outcome.status),
            "report content": (self.report, other.report),
            "effects": (self.outcome.executed, other.outcome.executed),
            "files": (self.files, other.files),
        }
        if self.scenario.kind != "recovery":
            facts["identity"] = ((self.ids_kept, self._ids()), (other.ids_kept, other._ids()))
            facts["tool results"] = (self.results, other.results)
            facts["requests"] = (self.outcome.requests, other.outcome.requests)
        return [name for name, (mine, theirs) in facts.items() if mine != theirs]

    def _matches(self, category: str | None, expected: str | None, rules: RuleSet) -> bool:
        if category == expected:
            return True
        if category is None or expected is None or rules.name == DEFAULT_RULES:
            return False
        compounded = category == COMPOUND and expected.startswith("identity.")
        return compounded or (
            self.streams_null and f"reject:{category}" == rules.action("established", "null")
        )

    def _match_all(self, refusals: Sequence[str], expected: Sequence[str], rules: RuleSet) -> bool:
        return len(refusals) == len(expected) and all(
            self._matches(refusal, wanted, rules) for refusal, wanted in zip(refusals, expected, strict=True)
        )

    def _ids(self) -> list[tuple[tuple[int, int], str]]:
        return [(place, call_id) for place, (call_id, _) in self.results]


def play(
    scenario: Scenario,
    task: Task,
    provider: Provider,
    folder: Path,
    rules: str | RuleSet = DEFAULT_RULES,
    policy: Policy | None = None,
    timeouts: Timeouts = TIMEOUTS,
) -> Played:
    """Run the task against the scenario over a socket, in a workspace of its own under ``folder``.

    ``policy`` takes the place of the default one and of the scenario's own table. Raises InputError for
    rules that may not serve execution and for a scenario that cannot be streamed.
    """
    if policy is None:
        policy = DEFAULT_POLICY if scenario.allow is None else replace(DEFAULT_POLICY, allow=scenario.allow)
    session = provider.play(scenario, task)
    workspace = Workspace.create(folder / scenario.name, session.task.sources())
    gateway = Gateway(provider.address, "scenario", rules=rules, timeouts=timeouts)
    with EffectJournal(folder / f"{scenario.name}.jsonl") as journal:
        agent = Agent(
            gateway, workspace, policy, journal, session.task.pages + len(scenario.turns) + _SPARE_TURNS
        )
        outcome = agent.run(session.task.prompt())
    if session.problem:
        raise InputError(session.problem)
    return _facts(scenario, session, outcome, workspace)


def play_all(
    scenarios: Sequence[Scenario], task: Task, folder: Path, rules: str | RuleSet = DEFAULT_RULES
) -> dict[str, Played]:
    """Play scenarios one after the other on one server; by name, in their order."""
    with Provider() as provider:
        return {scenario.name: play(scenario, task, provider, folder, rules) for scenario in scenarios}


def _facts(scenario: Scenario, session: Session, outcome: TaskResult, workspace: Workspace) -> Played:
    files, sources = tuple(workspace.reports()), session.task.sources()
    return Played(
        scenario=scenario,
        outcome=outcome,
        ids_kept=not session.mismatches and session.arguments_kept and bool(session.results),
        results_own=all(_is_own(call, result, sources) for call, result in session.results.values()),
        results=tuple(
            (place, (_digest(call.id), _digest(result)))
            for place, (call, result) in sorted(session.results.items())
        ),
        files=files,
        report=workspace.read_report(REPORT_NAME) if REPORT_NAME in files else None,
        bodies=tuple(sent.sending.body for sent in session.sent),
    )


def _is_own(call: WireCall, result: str, sources: Mapping[str, str]) -> bool:
    """Whether a tool result is what this call asked for, seen from the server that streamed the call.

    An error names nothing that could be compared.
    """
    asked, given = json.loads(call.arguments), json.loads(result)
    if "error" in given:
        return True
    match call.name:
        case "read_source":
            return bool(given == {"source": asked["source"], "text": sources.get(asked["source"])})
        case "save_report":
            return bool(given["sha256"] == _digest(asked["content"]))
    return set(given["sources"]) <= sources.keys()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
