"""Secrets put everywhere that a run touches, and looked for everywhere that a run writes or says."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from fragmentlab.runtime.agent import Agent
from fragmentlab.runtime.gateway import Gateway
from fragmentlab.runtime.journal import EffectJournal
from fragmentlab.runtime.policy import DEFAULT_POLICY
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import Scenario
from fragmentlab.runtime.workspace import Workspace
from tests.runtime.conftest import SMALL

CANARY = "CANARY-5c1d"
SAVE = {
    "tool": "save_report",
    "id": f"{CANARY}-id",
    "arguments": {"target": "{target}", "content": f"{CANARY}-report"},
}
READ = {"tool": "read_source", "arguments": {"source": "{page}"}}
DENIED = {"tool": "read_source", "arguments": {"source": f"{CANARY}-source"}}


@pytest.mark.parametrize(
    "turns",
    [
        [{"calls": [READ]}, {"calls": [SAVE]}, {"text": f"{CANARY}-text"}],
        [{"calls": [READ, DENIED]}],
        [{"calls": [SAVE], "edit": [{"call": 1, "piece": -1, "set": {"id": f"{CANARY}-other"}}]}],
        [{"calls": [SAVE], "cut": {"at": "event"}}],
        [{"sse": f"data: {CANARY}\n\n"}],
        [{"calls": [{"tool": CANARY, "arguments_text": CANARY}]}],
    ],
    ids=["done", "denied", "changed", "cut", "not JSON", "unknown tool"],
)
def test_nothing_raw_is_kept_or_said(
    provider: Provider,
    scenario_of: Callable[..., Scenario],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    turns: list[dict[str, object]],
) -> None:
    """Keys, IDs, sources, arguments and reports are in no journal, outcome, representation, log or output."""
    caplog.set_level(logging.DEBUG)
    workspace = Workspace.create(tmp_path / "w", {"page-01.txt": f"{CANARY}-page"})
    provider.play(scenario_of(turns), SMALL)
    gateway = Gateway(provider.address, f"{CANARY}-model", f"{CANARY}-key")
    with EffectJournal(tmp_path / "journal.jsonl") as journal:
        outcome = Agent(gateway, workspace, DEFAULT_POLICY, journal, 9).run(
            [{"role": "user", "content": f"{CANARY}-prompt"}]
        )
    assert outcome.requests
    printed = capfd.readouterr()
    said = [repr(gateway), repr(outcome), repr(journal.lines), caplog.text, printed.out, printed.err]
    said.append((tmp_path / "journal.jsonl").read_text(encoding="utf-8"))
    said += [path.name for path in tmp_path.rglob("*")]
    for text in said:
        assert CANARY not in text
        assert f":{provider.port}" not in text


def test_report_is_where_it_belongs(
    provider: Provider, scenario_of: Callable[..., Scenario], tmp_path: Path
) -> None:
    """The search above can find: the report itself does hold the canary."""
    workspace = Workspace.create(tmp_path / "w", {})
    provider.play(scenario_of([{"calls": [SAVE]}, {"text": "x"}]), SMALL)
    with EffectJournal(tmp_path / "journal.jsonl") as journal:
        Agent(Gateway(provider.address, "m"), workspace, DEFAULT_POLICY, journal, 9).run([])
    assert CANARY in workspace.read_report("report.md").decode()
