"""Notebook 02: what it concludes, when it fails, and what it says of a live server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fragmentlab.assembler import SHIPPED
from fragmentlab.corpus.batches import open_batch, write_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.reports import ResultDoesNotHold
from fragmentlab.reports.captured_pairs import load_pairs, pairs_table
from fragmentlab.reports.control_target import ControlTarget, control_against_target
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import find_scenario
from fragmentlab.runtime.task import Task

CANARY = "CANARY-91be"
TARGETS = {"target", "target-padded", "parallel-target"}
LIVE = ("FRAGMENTLAB_BASE_URL", "FRAGMENTLAB_MODEL", "FRAGMENTLAB_API_KEY")
CONTROL = str(data_folder("scenarios") / "control.json")


def _parameters(**given: object) -> SimpleNamespace:
    defaults = {"rules": "keep-established", "pages": 2, "kilobytes": 1, "parallel": 1, "seed": 1}
    defaults |= {"scenarios": "", "pairs": "captured-local", "live_seconds": 5}
    return SimpleNamespace(**(defaults | given))


@pytest.fixture(autouse=True)
def _no_live_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIVE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def kept() -> ControlTarget:
    return control_against_target(_parameters())


@pytest.fixture(scope="module")
def refused() -> ControlTarget:
    return control_against_target(_parameters(rules="reject-null"))


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


def _row(found: ControlTarget, name: str) -> list[str]:
    [row] = [row for row in found.comparison().rows if row[0] == name]
    return [str(cell) for cell in row]


def test_result_holds(kept: ControlTarget) -> None:
    """Under the repair every claim holds and the notebook closes."""
    assert [claim.text for claim in kept.judged.claims if not claim.holds] == []
    assert kept.result().kind == "ok"
    assert kept.close() is not None
    target, control = _row(kept, "target"), _row(kept, "control")
    assert target[6] == control[6] and target[7] == "0" and int(target[2]) > 0


def test_reject_null_refuses_exactly_the_targets(refused: ControlTarget) -> None:
    """Under reject-null exactly the targets, played and recorded, are refused, and the run fails."""
    judged = refused.judged
    assert {p.scenario.name for p in judged.played.values() if judged.wrong(p)} == TARGETS
    assert {judged.played[name].outcome.category for name in TARGETS} == {"TOOL_FRAGMENT_ID"}
    assert {pair.target.category for pair in judged.pairs} == {"TOOL_FRAGMENT_ID"}
    assert {pair.control.outcome for pair in judged.pairs} == {"accepted"}
    assert len(judged.pairs) == 13
    with pytest.raises(ResultDoesNotHold) as caught:
        refused.close()
    assert str(caught.value) == (
        "Under reject-null: 3 of 44 scenarios do not hold; refused as TOOL_FRAGMENT_ID: "
        "target, target-padded, parallel-target; "
        "13 of 13 recorded targets, unlike their controls: TOOL_FRAGMENT_ID"
    )


@pytest.mark.parametrize("part", ["overview", "figure", "comparison", "negatives", "recoveries", "recorded"])
def test_every_part_is_shown_either_way(kept: ControlTarget, refused: ControlTarget, part: str) -> None:
    """Each table and figure can be shown whether or not the result holds."""
    for found in (kept, refused):
        assert getattr(found, part)()._repr_mimebundle_()["text/html"]


def test_figure_tells_its_data(kept: ControlTarget) -> None:
    """The figure's text names what each target streamed and how it ended."""
    nulls = kept.judged.played["target"].outcome.null_continuations
    assert f"target: {nulls} null; done" in kept.figure().alt


def test_without_a_live_server_it_says_so(kept: ControlTarget) -> None:
    """Without an address no live evidence is claimed, by a claim or by a sentence."""
    assert "No live server was given" in kept.live_evidence().headline
    assert not any("live" in claim.text for claim in kept.judged.claims)


def _live(monkeypatch: pytest.MonkeyPatch, address: str, **given: object) -> ControlTarget:
    monkeypatch.setenv("FRAGMENTLAB_BASE_URL", address)
    monkeypatch.setenv("FRAGMENTLAB_MODEL", "any")
    return control_against_target(_parameters(scenarios=CONTROL, **given))


@pytest.mark.parametrize("name", ["target", "control", "length"])
def test_live_server_is_reported_as_observed(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The number of null continuations is the one observed, and zero of them is said to prove nothing."""
    provider.play(find_scenario(name), Task(2, 1))
    found = _live(monkeypatch, provider.address)
    said = "\n".join([found.live_evidence().headline, *found.live_evidence().details])
    assert found.judged.live is not None and found.judged.live.outcome is not None
    met = found.judged.live.outcome.null_continuations
    assert f"{met} null continuations were observed" in said
    assert ("proves nothing of it" in said) == (met == 0) == (name != "target")
    assert ("refused as completion.length" in said) == (name == "length")
    assert found.close() is not None


def test_dead_live_server_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live server that was named and gave nothing fails the run in one line without its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    found = _live(monkeypatch, f"http://127.0.0.1:{port}/v1")
    assert found.live_evidence().kind == "bad"
    with pytest.raises(ResultDoesNotHold, match="live server: no server accepts connections") as caught:
        found.close()
    assert str(port) not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"FRAGMENTLAB_BASE_URL": "http://CANARY.example/v1", "FRAGMENTLAB_MODEL": "m"},
            "must begin with https",
        ),
        ({"FRAGMENTLAB_BASE_URL": "https://CANARY.example/v1"}, "FRAGMENTLAB_MODEL is not"),
        ({"FRAGMENTLAB_BASE_URL": "https://a.example", "FRAGMENTLAB_MODEL": "CANARY\udcff"}, "model's name"),
        (
            {
                "FRAGMENTLAB_BASE_URL": "https://a.example",
                "FRAGMENTLAB_MODEL": "m",
                "FRAGMENTLAB_API_KEY": "CANARY\n",
            },
            "the key is empty",
        ),
    ],
)
def test_unusable_environment_is_said(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    """An environment that cannot be used is one line on the page, without its values, and fails the run."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = control_against_target(_parameters(scenarios=CONTROL))
    assert said in found.live_evidence().headline and "CANARY" not in found.live_evidence().headline
    with pytest.raises(ResultDoesNotHold):
        found.close()


def test_own_negative_that_is_not_refused_fails(tmp_path: Path) -> None:
    """A negative that has an effect fails the run, and its own sentence is not printed."""
    data = json.loads((data_folder("scenarios") / "denied-tool.json").read_bytes())
    del data["allow"]
    (tmp_path / "mine.json").write_text(
        json.dumps({**data, "name": "mine", "about": CANARY}), encoding="utf-8"
    )
    found = control_against_target(_parameters(scenarios=str(tmp_path)))
    assert CANARY not in found.negatives().to_text()
    with pytest.raises(ResultDoesNotHold, match="mine"):
        found.close()


def test_target_without_null_fails(tmp_path: Path) -> None:
    """A target that in fact streams no null proves nothing and fails the run."""
    data = json.loads((data_folder("scenarios") / "target.json").read_bytes())
    (tmp_path / "target.json").write_text(json.dumps({**data, "stream": {}}), encoding="utf-8")
    with pytest.raises(ResultDoesNotHold, match="streamed no null after an ID: target"):
        control_against_target(_parameters(scenarios=str(tmp_path))).close()


def test_unsafe_rules_are_refused(tmp_path: Path) -> None:
    """A rules file that breaks an invariant is refused by name before anything is played."""
    from fragmentlab.assembler import SHIPPED

    cells = {identity: dict(row) for identity, row in SHIPPED["keep-established"].cells.items()}
    cells["established"]["null"] = "set"
    rules = tmp_path / "rules.json"
    rules.write_text(
        json.dumps({"schema": "fragmentlab-rules-v1", "name": "clears", "note": "", "cells": cells}),
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="refuses rule set clears, it breaks established_cleared"):
        control_against_target(_parameters(rules=str(rules)))


def test_pairs_must_be_pairs(tmp_path: Path) -> None:
    """A missing batch, one without pairs, and a pair of two controls are one line each."""
    bodies = [b"data: [DONE]\n\n", b": other\n\ndata: [DONE]\n\n"]
    for name, pair in (("none", None), ("controls", "1")):
        write_batch(
            tmp_path / name,
            [Stream(stream_id(body), body, pair=pair) for body in bodies],
            name=name,
            evidence="controlled",
            provenance="a test",
            licence="MIT",
            scrubbed=True,
        )
    said = {"nope": "is no batch", "none": "holds none", "controls": "pair 1 of the batch has no null"}
    for batch, line in said.items():
        with pytest.raises(InputError, match=line):
            control_against_target(_parameters(pairs=str(tmp_path / batch), scenarios=CONTROL))


def test_recorded_pairs_of_ones_own_are_shown_without_their_names(tmp_path: Path) -> None:
    """Ids and pair names of someone's batch stand nowhere in the table of pairs."""
    own = [
        replace(stream, id=f"{CANARY}-{stream.id}", pair=f"{CANARY}-{stream.pair}")
        for stream in open_batch("captured-local").streams()
        if stream.pair
    ]
    facts = {"evidence": "captured", "provenance": "", "licence": "", "scrubbed": True}
    folder = write_batch(tmp_path / "own", own, name=CANARY, **facts)  # type: ignore[arg-type]
    pairs, evidence = load_pairs(str(folder), SHIPPED["keep-established"])
    shown = pairs_table(pairs, evidence)._repr_mimebundle_()
    assert len(pairs) == 13
    assert CANARY not in str(shown)


def test_one_byte_fails_the_notebook_and_nothing_leaks(provider: Provider, tmp_path: Path) -> None:
    """A target that differs in one byte of its report fails the report run, and no secret is written."""
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    for name, text in (("control", f"{CANARY}-report"), ("target", f"{CANARY}-rePort")):
        data = json.loads((data_folder("scenarios") / f"{name}.json").read_bytes())
        save = {"tool": "save_report", "arguments": {"target": "{target}", "content": text}}
        data["turns"] = [{"step": "read"}, {"calls": [save]}, {"step": "finish"}]
        (scenarios / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    provider.play(find_scenario("target"), Task(1, 1))
    live = dict(zip(LIVE, (provider.address, f"{CANARY}-model", f"{CANARY}-key"), strict=True))
    command = [sys.executable, "-m", "fragmentlab", "report", "--only", "02", "--out", str(tmp_path / "out")]
    for parameter in (f"scenarios={scenarios}", "pages=1", "kilobytes=1", "live_seconds=5"):
        command += ["-p", parameter]
    done = subprocess.run(
        command, env=os.environ | live, capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path
    )
    written = {
        path.name: path.read_text(encoding="utf-8")
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    page = written["02-control-vs-target.html"]
    assert done.returncode == 1
    assert "differs in report content, effects" in done.stderr and "differs in report content" in page
    assert "Live evidence" in page and "This shows" in page
    for text in (done.stdout.replace(str(tmp_path), ""), done.stderr, *written.values()):
        for secret in (CANARY, f":{provider.port}", str(tmp_path)):
            assert secret not in text
