"""The agent loop: ask, accept or refuse the whole response, authorize the whole proposal, then execute.

Recovery: a refused response executes nothing and, where the policy says so, the same request is sent again;
the new response is assembled from nothing. A resumed run starts the conversation over: reads happen again,
an effect that the journal knows is not repeated and its result is given again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fragmentlab.assembler import Result
from fragmentlab.assembler.categories import HOST_CATEGORY
from fragmentlab.errors import InputError
from fragmentlab.runtime.gateway import Gateway, Reply
from fragmentlab.runtime.journal import EffectJournal
from fragmentlab.runtime.policy import Policy
from fragmentlab.runtime.tools import EFFECTS, Request, digest_of, effect_result, perform, report_bytes
from fragmentlab.runtime.workspace import ToolError, Workspace


@dataclass(frozen=True)
class Executed:
    """One executed call as bounded facts.

    ``outcome`` is ``ok``, ``recovered`` (a killed run had done it), ``skipped`` (done before, not repeated)
    or the kind of a ToolError.
    """

    tool: str
    turn: int
    call: int
    digest: str
    outcome: str

    @property
    def is_effect(self) -> bool:
        """Whether it changed the workspace in this run."""
        return self.tool in EFFECTS and self.outcome == "ok"


@dataclass
class TaskResult:
    """How a task went.

    ``status`` is ``done`` (a report is saved and the model ended), ``incomplete`` (it ended without),
    ``refused`` (a response or proposal was refused) or ``failed`` (no usable answer, or too many turns).
    """

    status: str = "failed"
    category: str | None = None
    problem: str | None = None
    requests: int = 0
    refusals: list[str] = field(default_factory=list)
    executed: list[Executed] = field(default_factory=list)
    null_continuations: int = 0
    fragments: int = 0
    denied_call: int | None = None

    @property
    def effects(self) -> int:
        return sum(executed.is_effect for executed in self.executed)


class Agent:
    """Runs one task for a model behind a gateway on a workspace, under the host's policy."""

    def __init__(
        self, gateway: Gateway, workspace: Workspace, policy: Policy, journal: EffectJournal, max_turns: int
    ) -> None:
        self._gateway, self._workspace, self._policy = gateway, workspace, policy
        self._journal, self._max_turns = journal, max_turns

    def run(self, prompt: Sequence[dict[str, Any]]) -> TaskResult:
        """Work until the model ends, something is refused for good, or ``max_turns`` are used up."""
        outcome = TaskResult()
        self._workspace.remove_leftovers()
        messages: list[dict[str, Any]] = list(prompt)
        for turn in range(1, self._max_turns + 1):
            result = self._ask(messages, outcome)
            if result is None:
                return outcome
            if result.outcome == "no_calls":
                saved = any(
                    e.tool in EFFECTS and e.outcome in ("ok", "recovered", "skipped")
                    for e in outcome.executed
                )
                outcome.status = "done" if saved else "incomplete"
                return outcome
            requests = [Request.of(call) for call in result.calls]
            outcome.denied_call = self._policy.first_denied(requests)
            if outcome.denied_call is not None:
                outcome.refusals.append(HOST_CATEGORY)
                outcome.status, outcome.category = "refused", HOST_CATEGORY
                return outcome
            messages += _answered(
                requests, [self._execute(r, turn, n, outcome) for n, r in enumerate(requests, 1)]
            )
        outcome.problem = f"the model did not end within {self._max_turns} turns"
        return outcome

    def _ask(self, messages: Sequence[dict[str, Any]], outcome: TaskResult) -> Result | None:
        """The first usable result of this request; None where no other attempt is allowed or in time."""
        sent, ends = 0, time.monotonic() + self._gateway.timeouts.total
        while True:
            sent += 1
            reply = self._gateway.ask(messages, max(ends - time.monotonic(), 0.0))
            _count(reply, outcome)
            if reply.refusal is None and reply.result is not None:
                if reply.result.calls and not reply.result.executable:
                    raise InputError("the runtime executes nothing that these rules accepted")
                return reply.result
            refusal = reply.refusal or "gateway.closed"
            outcome.refusals.append(refusal)
            if not self._policy.retries(refusal, sent) or time.monotonic() >= ends:
                outcome.status = "failed" if reply.result is None else "refused"
                outcome.category = reply.result.category if reply.result else None
                outcome.problem = reply.problem.line if reply.problem else None
                return None

    def _execute(self, request: Request, turn: int, call: int, outcome: TaskResult) -> dict[str, Any]:
        act = self._affect if request.tool in EFFECTS else self._look
        done, result = act(request, turn, call)
        outcome.executed.append(Executed(request.tool, turn, call, request.digest, done))
        return result

    def _look(self, request: Request, turn: int, call: int) -> tuple[str, dict[str, Any]]:
        done, result = self._perform(request)
        self._journal.read(request.tool, turn, call, request.digest, done, digest_of(result))
        return done, result

    def _affect(self, request: Request, turn: int, call: int) -> tuple[str, dict[str, Any]]:
        journal, digest = self._journal, request.digest
        if (before := journal.find_done(digest)) is not None:
            journal.skip(before, request.tool, turn, call)
            return "skipped", effect_result(request)
        intent = journal.find_open(digest)
        if intent is not None and self._workspace.holds_report(
            request.arguments["target"], report_bytes(request)
        ):
            result = effect_result(request)
            journal.did(intent, "ok", digest_of(result), recovered=True)
            return "recovered", result
        if intent is None:
            intent = journal.intend(request.tool, turn, call, digest)
        done, result = self._perform(request)
        journal.did(intent, done, digest_of(result))
        return done, result

    def _perform(self, request: Request) -> tuple[str, dict[str, Any]]:
        try:
            return "ok", perform(
                request, self._workspace, lambda name: self._policy.allows_name("read_source", name)
            )
        except ToolError as error:
            return error.kind, {"error": error.kind}


def _count(reply: Reply, outcome: TaskResult) -> None:
    outcome.requests += 1
    if reply.result is not None:
        outcome.null_continuations += reply.result.counts["null_continuations"]
        outcome.fragments += reply.result.counts["fragments"]


def _answered(requests: Sequence[Request], results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that say what was called and what came of it, each result under the ID of its call."""
    calls = [
        {"id": request.id, "type": "function", "function": {"name": request.tool, "arguments": request.text}}
        for request in requests
    ]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": request.id, "content": json.dumps(result, ensure_ascii=False)}
            for request, result in zip(requests, results, strict=True)
        ),
    ]
