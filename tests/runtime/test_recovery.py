"""The effect journal, and what a killed run leaves to the next."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from fragmentlab.errors import InputError
from fragmentlab.runtime.agent import Agent, TaskResult
from fragmentlab.runtime.gateway import Gateway
from fragmentlab.runtime.journal import EffectJournal, JournalLine, line_of
from fragmentlab.runtime.policy import DEFAULT_POLICY, Allow
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import Scenario
from fragmentlab.runtime.workspace import Workspace
from tests.runtime.conftest import SMALL

POLICY = replace(DEFAULT_POLICY, allow=Allow(True, ("page-*",), ("*.md",)))
REPORTS = {"first.md": "one 1", "second.md": "two 2"}
TURNS = [
    {"step": "read"},
    {
        "calls": [
            {"tool": "save_report", "arguments": {"target": t, "content": c}} for t, c in REPORTS.items()
        ]
    },
    {"step": "finish"},
]


def read_journal(path: Path) -> list[JournalLine]:
    """The whole lines of a journal that no run holds."""
    *lines, _ = path.read_bytes().split(b"\n")
    return [line_of(line, number) for number, line in enumerate(lines, 1)]


CHILD = """
import signal, sys
from pathlib import Path
from fragmentlab.runtime.agent import Agent
from fragmentlab.runtime.gateway import Gateway
from fragmentlab.runtime.journal import EffectJournal
from fragmentlab.runtime.workspace import Workspace
from tests.runtime.test_recovery import POLICY, SMALL

folder, address, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
owner, name = (Workspace, "save_report") if place == "before the effect" else (EffectJournal, "did")
original = getattr(owner, name)

def stop(*given, **more):
    if place == "between two effects":
        original(*given, **more)
    print("here", flush=True)
    signal.pause()

setattr(owner, name, stop)
with EffectJournal(folder / "journal.jsonl") as journal:
    Agent(Gateway(address, "m"), Workspace(folder / "w"), POLICY, journal, 9).run(SMALL.prompt())
"""


def _run(folder: Path, provider: Provider) -> TaskResult:
    with EffectJournal(folder / "journal.jsonl") as journal:
        agent = Agent(Gateway(provider.address, "m"), Workspace(folder / "w"), POLICY, journal, 9)
        return agent.run(SMALL.prompt())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Workspace.create(tmp_path / "w", SMALL.sources())
    return tmp_path


@pytest.mark.parametrize(
    ("place", "outcomes", "recovered"),
    [
        ("before the effect", ["ok", "ok"], 0),
        ("between effect and journal", ["recovered", "ok"], 1),
        ("between two effects", ["skipped", "ok"], 0),
    ],
)
def test_killed_run_resumes_without_repeating(
    provider: Provider,
    folder: Path,
    root: Path,
    scenario_of: Callable[..., Scenario],
    place: str,
    outcomes: list[str],
    recovered: int,
) -> None:
    """After kill -9 at any point around an effect, a resumed run does each effect exactly once in all."""
    provider.play(scenario_of(TURNS), SMALL)
    arguments = [sys.executable, "-c", CHILD, str(folder), provider.address, place]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=root) as child:
        watchdog = threading.Timer(60, child.kill)
        watchdog.start()
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        watchdog.cancel()
    reports = folder / "w" / "reports"
    before = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in reports.iterdir()}

    outcome = _run(folder, provider)

    assert outcome.status == "done"
    assert [e.outcome for e in outcome.executed if e.tool == "save_report"] == outcomes
    assert {path.name: path.read_text(encoding="utf-8") for path in reports.iterdir()} == REPORTS
    after = {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in reports.iterdir()}
    assert {name: after[name] for name in before} == before
    entries = read_journal(folder / "journal.jsonl")
    done = Counter(_digest_of(entries, entry) for entry in entries if entry.event == "done")
    assert sorted(done.values()) == [1, 1]
    assert sum(entry.recovered or False for entry in entries) == recovered
    assert [entry.run for entry in entries if entry.event == "start"] == [1, 2]


def test_finished_run_repeats_nothing(
    provider: Provider, folder: Path, scenario_of: Callable[..., Scenario]
) -> None:
    """A run that is started again after its end gives the same results and changes nothing."""
    provider.play(scenario_of(TURNS), SMALL)
    first, second = _run(folder, provider), _run(folder, provider)
    assert (first.effects, second.effects) == (2, 0)
    assert (first.status, second.status) == ("done", "done")
    assert [e.digest for e in first.executed] == [e.digest for e in second.executed]


def test_effect_proposed_twice_happens_once(
    provider: Provider, folder: Path, scenario_of: Callable[..., Scenario]
) -> None:
    """Within one run too, the same target and content is one effect; another content does not overwrite."""
    again = {"calls": [{"tool": "save_report", "arguments": {"target": "first.md", "content": "one 1"}}]}
    other = {"calls": [{"tool": "save_report", "arguments": {"target": "first.md", "content": "other"}}]}
    provider.play(scenario_of([again, again, other, {"step": "finish"}]), SMALL)
    outcome = _run(folder, provider)
    assert [e.outcome for e in outcome.executed] == ["ok", "skipped", "exists"]
    assert (folder / "w" / "reports" / "first.md").read_text(encoding="utf-8") == "one 1"


def test_journal_lists_what_was_executed_in_order(
    provider: Provider, folder: Path, scenario_of: Callable[..., Scenario]
) -> None:
    """Each line names a step's tool, turn and call, in order; none holds an argument, ID or result."""
    session = provider.play(scenario_of(TURNS), SMALL)
    _run(folder, provider)
    entries = read_journal(folder / "journal.jsonl")
    steps = [(e.event, e.tool, e.turn, e.call) for e in entries]
    assert steps == [
        ("start", None, None, None),
        ("read", "read_source", 1, 1),
        ("read", "read_source", 2, 1),
        ("intent", "save_report", 3, 1),
        ("done", None, None, None),
        ("intent", "save_report", 3, 2),
        ("done", None, None, None),
    ]
    text = (folder / "journal.jsonl").read_text(encoding="utf-8")
    raw = [call.id for sent in session.sent for call in sent.calls] + [*REPORTS, *REPORTS.values(), "page-"]
    assert [value for value in raw if value in text] == []


def test_torn_line_is_dropped(tmp_path: Path) -> None:
    """A last line half written at the kill is dropped, and the next run appends after the whole ones."""
    path = tmp_path / "j.jsonl"
    with EffectJournal(path) as journal:
        journal.intend("save_report", 1, 1, "d")
    with path.open("ab") as file:
        file.write(b'{"n":3,"event":"do')
    with EffectJournal(path) as journal:
        assert journal.find_open("d") == 2
        assert journal.find_done("d") is None
    assert [entry.event for entry in read_journal(path)] == ["start", "intent", "start"]


@pytest.mark.parametrize(
    "line", [b"CANARY", b"{}", b"[]", b'{"n":9,"event":"start","run":1}', b'{"n":2,"event":"CANARY","run":1}']
)
def test_damaged_line_is_said(tmp_path: Path, line: bytes) -> None:
    """A damaged, missing or foreign line stops the run before anything is executed, without being quoted."""
    path = tmp_path / "j.jsonl"
    with EffectJournal(path):
        pass
    with path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(InputError, match="damaged at line 2") as caught:
        EffectJournal(path)
    assert "CANARY" not in str(caught.value)


def test_journal_is_held_by_one_run(tmp_path: Path) -> None:
    """A second run on the same journal is refused while the first holds it, and a link is no journal."""
    path = tmp_path / "j.jsonl"
    with EffectJournal(path), pytest.raises(InputError, match="held by another run"):
        EffectJournal(path)
    (tmp_path / "link.jsonl").symlink_to(path)
    with pytest.raises(InputError, match="cannot be opened"):
        EffectJournal(tmp_path / "link.jsonl")


def test_entries_are_bounded() -> None:
    """A journal line can hold the listed facts only."""
    facts = {
        "n",
        "event",
        "run",
        "tool",
        "turn",
        "call",
        "arguments_sha256",
        "outcome",
        "result_sha256",
        "of",
    }
    assert msgspec.json.encode(JournalLine(1, "start", 1)) == b'{"n":1,"event":"start","run":1}'
    assert set(JournalLine.__struct_fields__) == facts | {"recovered"}
    with pytest.raises(InputError, match="damaged at line 1"):
        line_of(b'{"n":1,"event":"start","run":1,"id":"CANARY"}', 1)


def _digest_of(entries: list[JournalLine], done: JournalLine) -> str | None:
    return next(entry.arguments_sha256 for entry in entries if entry.n == done.of)
