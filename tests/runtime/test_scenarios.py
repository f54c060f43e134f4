"""Every scenario over a real socket, and scenario files as input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fragmentlab.assembler import assemble
from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.runtime import agent
from fragmentlab.runtime.play import Played, play, play_all
from fragmentlab.runtime.policy import DEFAULT_POLICY, NEVER_RETRIED, Allow
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import (
    Change,
    Scenario,
    Style,
    find_scenario,
    load_scenario,
    load_scenarios,
)
from fragmentlab.runtime.sending import send_text
from fragmentlab.runtime.task import Task
from tests.runtime.conftest import SMALL

KEEP = SHIPPED["keep-established"]
REJECT = SHIPPED["reject-null"]
NAMES = sorted(path.stem for path in data_folder("scenarios").glob("*.json"))
PROMISED = """
control target repeated-id late-id parallel-target split-characters initial-null null-on-new-index changed-id
emptied-id id-number id-boolean id-array id-object malformed-arguments duplicate-ids unknown-tool denied-tool
denied-source length content-filter error-event cut-mid-arguments cut-complete-arguments reset-after-finish
legacy-function-call cut-then-clean refused-then-clean
""".split()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play_all(load_scenarios(""), SMALL, tmp_path_factory.mktemp("played"))


@pytest.fixture(scope="module")
def played_before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play_all(load_scenarios(""), SMALL, tmp_path_factory.mktemp("before"), REJECT)


@pytest.mark.parametrize("name", NAMES)
def test_scenario_ends_as_it_says(played: dict[str, Played], name: str) -> None:
    """Each shipped scenario ends as its file expects, and repeats the one that it names."""
    result = played[name]
    assert result.unmet(KEEP) is None
    if result.scenario.same_as:
        assert result.differences(played[result.scenario.same_as]) == []


@pytest.mark.parametrize("name", NAMES)
def test_before_the_repair_only_targets_fail(played_before: dict[str, Played], name: str) -> None:
    """Under reject-null exactly the targets are refused, as TOOL_FRAGMENT_ID and without an effect."""
    result = played_before[name]
    if result.scenario.kind == "target":
        assert result.outcome.category == "TOOL_FRAGMENT_ID"
        assert (result.outcome.executed, result.files) == ([], ())
    else:
        assert result.unmet(REJECT) is None


@pytest.mark.parametrize("name", PROMISED)
def test_promised_scenario_ships(name: str) -> None:
    """Every scenario that the kit promises is there, and its file is named for it."""
    assert find_scenario(name).name == name


def test_refusals_have_no_effect(played: dict[str, Played]) -> None:
    """No negative executes a call or leaves a file, not even a hidden part of one."""
    negatives = [p for p in played.values() if p.scenario.kind == "negative"]
    assert len(negatives) >= 20
    assert [p.scenario.name for p in negatives if p.outcome.executed or p.files] == []


def test_target_streams_null_and_control_does_not(played: dict[str, Played]) -> None:
    """The pair differs on the wire in nothing but null IDs of later fragments."""
    control, target = played["control"], played["target"]
    assert control.outcome.null_continuations == 0 < target.outcome.null_continuations
    assert [body.replace(b'"id":null,', b"") for body in target.bodies] == list(control.bodies)


def test_variants_stream_what_they_say(played: dict[str, Played]) -> None:
    """Repeated IDs are repeated on every later fragment, and a late ID is on the second
    fragment, not the first."""
    for name, kinds in (("repeated-id", ["string"] * 3), ("late-id", ["omitted", "string", "omitted"])):
        saving = max(played[name].bodies, key=len)
        assert [row.incoming_kind for row in assemble(saving, diagnose=True).timeline][:3] == kinds


@pytest.mark.parametrize("swapped", [False, True])
def test_result_under_another_call_is_noticed(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool
) -> None:
    """An agent that gives one call another call's result fails the scenario, not only the comparison."""
    if swapped:
        original = agent._answered
        monkeypatch.setattr(agent, "_answered", lambda asked, given: original(asked, list(reversed(given))))
    result = play(find_scenario("parallel-control"), SMALL, provider, tmp_path)
    assert (result.unmet(KEEP) is None) == (not swapped)


def test_interleaved_target_streams_in_turn(played: dict[str, Played]) -> None:
    """The parallel target really interleaves its calls' fragments."""
    results = (assemble(body, diagnose=True) for body in played["parallel-target"].bodies)
    [orders] = [[row.index for row in result.timeline] for result in results if result.counts["calls"] > 1]
    assert orders[:4] == [0, 1, 0, 1]


def test_characters_are_really_split(provider: Provider, tmp_path: Path) -> None:
    """The split scenarios do cut characters: fragments between halves, reads between bytes."""
    halves = play(find_scenario("split-surrogates"), Task(), provider, tmp_path).bodies
    assert re.search(rb'ud83[cde]"', b"".join(halves))
    assert find_scenario("split-characters").stream == Style(reads="mid-character")
    text = send_text("é", Change(stream=Style(reads="mid-character")), False, "")
    assert [read[-1:] for read in text.reads[:-1]] == ["é".encode()[:1]]


@pytest.mark.parametrize("task", [Task(1, 1, 1, 0), Task(5, 64, 3, 99), Task(4, 2, 64, 7)])
def test_other_sizes_repeat_the_control(tmp_path: Path, task: Task) -> None:
    """Pages, report size, parallel calls and seed are free: the target still repeats the control."""
    names = ("control", "target", "parallel-control", "parallel-target")
    results = play_all([find_scenario(name) for name in names], task, tmp_path)
    for name in ("target", "parallel-target"):
        assert results[name].differences(results[results[name].scenario.same_as or ""]) == []
        assert results[name].unmet(KEEP) is None


def test_one_byte_is_noticed(
    provider: Provider, tmp_path: Path, scenario_of: Callable[..., Scenario]
) -> None:
    """A report that differs in one byte differs, also where it has the same length."""
    reports = ["same text", "same tExt"]
    turns = [
        [
            {"calls": [{"tool": "save_report", "arguments": {"target": "{target}", "content": text}}]},
            {"step": "finish"},
        ]
        for text in reports
    ]
    first, other = (
        play(scenario_of(turn, name=name), SMALL, provider, tmp_path / name)
        for name, turn in zip(("first", "other"), turns, strict=True)
    )
    assert other.differences(first) == ["report content", "effects", "tool results"]


def test_removed_policy_makes_denied_scenarios_fail(provider: Provider, tmp_path: Path) -> None:
    """With a policy that allows everything each denied scenario has an effect and no longer holds."""
    everything = replace(DEFAULT_POLICY, allow=Allow(True, ("*",), ("*",)))
    for name in ("denied-tool", "denied-source", "denied-target", "one-of-two-denied", "null-then-denied"):
        result = play(find_scenario(name), SMALL, provider, tmp_path, policy=everything)
        assert result.unmet(KEEP) is not None, name
        assert result.outcome.executed, name


def test_denied_proposal_executes_nothing_of_it(played: dict[str, Played]) -> None:
    """Where one of two calls is denied the other is not executed either, and nothing is asked again."""
    outcome = played["one-of-two-denied"].outcome
    assert (outcome.executed, outcome.denied_call, outcome.requests) == ([], 2, 1)
    assert {"authorization.denied"} == NEVER_RETRIED


def test_retries_follow_the_policy(provider: Provider, tmp_path: Path) -> None:
    """A policy without retries gives up at the first refusal, one with two asks three times."""
    cut = find_scenario("cut-mid-arguments")
    for times in (0, 2):
        policy = replace(DEFAULT_POLICY, retry=replace(DEFAULT_POLICY.retry, times=times))
        result = play(cut, SMALL, provider, tmp_path / str(times), policy=policy)
        assert result.outcome.requests == times + 1
        assert result.outcome.refusals == ["completion.transport_error"] * (times + 1)


GOOD: dict[str, Any] = {
    "schema": "fragmentlab-scenario-v1",
    "name": "a",
    "kind": "variant",
    "about": "A.",
    "turns": [{"step": "finish"}],
    "expect": {"status": "incomplete"},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "CANARY"}, 'needs "schema": "fragmentlab-scenario-v1"'),
        ({"kind": "CANARY"}, "kind: not one of the known values"),
        ({"CANARY": 1}, "unknown field"),
        ({"turns": []}, "turns: expected array of length >= 1"),
        ({"turns": [{"step": "finish", "text": "CANARY"}]}, "exactly one of step, calls"),
        (
            {"turns": [{"calls": [{"tool": "CANARY"}]}]},
            "turns[0].calls[0]: a call needs exactly one",
        ),
        ({"turns": [{}]}, "turns[0]: a turn needs exactly one of step, calls"),
        ({"turns": [{"step": "save", "CANARY": 1}]}, "turns[0]: unknown field"),
        (
            {"turns": [{"step": "save", "stream": {"ids": "CANARY"}}]},
            "turns[0].stream.ids: not one of",
        ),
        ({"expect": {"status": "refused", "category": "CANARY"}}, "a category that does not exist"),
        ({"kind": "negative", "same_as": "control"}, "a negative is not compared"),
        ({"kind": "target"}, "a target needs same_as"),
        ({"same_as": "a"}, "same_as must name another scenario"),
        ({"name": "CANARY/../x"}, "name: not of the known form"),
        ({"name": "canary\n"}, "name: not of the known form"),
    ],
)
def test_bad_file_is_one_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """A file that is no scenario is refused in one line that names the place and quotes no value."""
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**GOOD, **change}), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    assert said in str(caught.value)
    assert "CANARY" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"null", b'{"a":1e999}'])
def test_no_json_object_is_one_line(tmp_path: Path, content: bytes) -> None:
    """Empty, cut, deep and binary files are refused in one line."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^scenario bad\.json"):
        load_scenario(path)


def test_missing_sources_are_named(tmp_path: Path) -> None:
    """A missing file, a folder without scenarios, an unknown name and a clash are told apart."""
    for given, said in (
        ("nope.json", "No such file"),
        (str(tmp_path), "no scenario file"),
        (str(tmp_path / "x"), "No such"),
    ):
        with pytest.raises(InputError, match=said):
            load_scenarios(given)
    for name in ("nope", "..", "../scenarios/control"):
        with pytest.raises(InputError):
            find_scenario(name)
    for stem in ("one", "two"):
        (tmp_path / f"{stem}.json").write_text(json.dumps(GOOD), encoding="utf-8")
    with pytest.raises(InputError, match="two scenarios are named a"):
        load_scenarios(str(tmp_path))


def test_comparison_brings_its_control_along(tmp_path: Path) -> None:
    """A single file that is compared with a shipped scenario is played beside it."""
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps({**GOOD, "name": "mine", "kind": "target", "same_as": "control"}), encoding="utf-8"
    )
    assert [scenario.name for scenario in load_scenarios(str(path))] == ["control", "mine"]


def test_unplayable_edit_is_said(
    provider: Provider, tmp_path: Path, scenario_of: Callable[..., Scenario]
) -> None:
    """An edit of a fragment that is not streamed is the scenario's fault and named as such."""
    scenario = scenario_of([{"step": "list", "edit": [{"call": 2, "piece": 1, "set": {"id": None}}]}])
    with pytest.raises(InputError, match="scenario made, turn 1: edit 1 names a call or piece"):
        play(scenario, SMALL, provider, tmp_path / "w")


def test_task_sizes_are_bounded() -> None:
    """A size outside of its bounds is one line that names both."""
    for sizes in ({"pages": 0}, {"kilobytes": 901}, {"parallel": 65}, {"seed": -1}):
        with pytest.raises(InputError, match="must be from"):
            Task(**sizes)
