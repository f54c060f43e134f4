"""Live mode: the same task against a real OpenAI-compatible server that the environment names.

FRAGMENTLAB_BASE_URL and FRAGMENTLAB_MODEL, and FRAGMENTLAB_API_KEY where the server wants a key; no other
variable is read. What comes of it is evidence ``live``: of this one server, during this one run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fragmentlab.assembler import RuleSet
from fragmentlab.errors import InputError
from fragmentlab.runtime.agent import Agent, TaskResult
from fragmentlab.runtime.gateway import Gateway, Timeouts
from fragmentlab.runtime.journal import EffectJournal
from fragmentlab.runtime.policy import DEFAULT_POLICY
from fragmentlab.runtime.task import Task
from fragmentlab.runtime.workspace import Workspace

ADDRESS, MODEL, KEY = "FRAGMENTLAB_BASE_URL", "FRAGMENTLAB_MODEL", "FRAGMENTLAB_API_KEY"
_SPARE_TURNS = 10
"""A real model may list again, read twice or try another name."""


@dataclass(frozen=True)
class LiveRun:
    """One task on a live server: its outcome, or the line that says why there is none."""

    outcome: TaskResult | None
    problem: str | None


def live_gateway(environment: Mapping[str, str], rules: RuleSet, seconds: float) -> Gateway | None:
    """Return the gateway that the environment names, or None; InputError names an unusable variable.

    ``seconds`` bound one answer with its retries; half of them may pass without a byte, while a model reads
    its prompt.
    """
    address, model = environment.get(ADDRESS, ""), environment.get(MODEL, "")
    if not address:
        return None
    if not model:
        raise InputError(f"{ADDRESS} is set and {MODEL} is not; name the model to ask for")
    if seconds <= 0:
        raise InputError("the seconds for one live answer must be more than 0")
    timeouts = Timeouts(connect=min(10.0, seconds), idle=seconds / 2, total=seconds)
    return Gateway(address, model, environment.get(KEY) or None, rules, timeouts, live=True)


def run_live(environment: Mapping[str, str], task: Task, rules: RuleSet, seconds: float) -> LiveRun | None:
    """Run the task on the live server in a workspace that is then removed; None where no server is named.

    ::

        run_live(os.environ, Task(), load_rules("keep-established"), seconds=120)
    """
    try:
        gateway = live_gateway(environment, rules, seconds)
    except InputError as error:
        return LiveRun(None, str(error))
    if gateway is None:
        return None
    with tempfile.TemporaryDirectory(prefix="fragmentlab-live-") as folder:
        workspace = Workspace.create(Path(folder) / "workspace", task.sources())
        with EffectJournal(Path(folder) / "journal.jsonl") as journal:
            agent = Agent(gateway, workspace, DEFAULT_POLICY, journal, task.pages + _SPARE_TURNS)
            outcome = agent.run(task.prompt())
    # A failure among fragments has a category and is a finding; where the transport failed before any came,
    # a drip of bytes included, nothing was observed.
    return LiveRun(outcome, None if outcome.fragments else outcome.problem)
