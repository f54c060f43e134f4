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

from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.corpus.batches import open_batch, write_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.reports import ResultDoesNotHold
from fragmentlab.reports.control_target import ControlTarget, control_against_target
from fragmentlab.reports.show.pairs import pairs_df, pairs_table
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


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kit's provider stand for somebody's server: it no longer says what it is."""
    monkeypatch.setattr("fragmentlab.runtime.provider.PROVIDER_HEADER", "x-another-server")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


def _row(found: ControlTarget, name: str) -> dict[str, str]:
    [row] = found.comparison().frame.query("scenario == @name").to_dict("records")
    return {column: str(cell) for column, cell in row.items()}


def test_result_holds(kept: ControlTarget) -> None:
    """Under the repair every claim holds and the notebook closes."""
    assert kept.claims_df().holds.all() and len(kept.claims_df()) == 6
    assert kept.result().kind == "ok"
    assert kept.close() is not None
    target, control = _row(kept, "target"), _row(kept, "control")
    assert target["report SHA-256"] == control["report SHA-256"]
    assert target["lines that differ"] == "0" and int(target["nulls"]) > 0


def test_reject_null_refuses_exactly_the_targets(refused: ControlTarget) -> None:
    """Under reject-null exactly the targets, played and recorded, are refused, and the run fails."""
    wrong = refused.scenarios_df().dropna(subset="wrong")
    assert set(wrong.scenario) == TARGETS and set(wrong.category) == {"TOOL_FRAGMENT_ID"}
    pairs = refused.pairs_df()
    assert set(pairs.target_ended) == {"TOOL_FRAGMENT_ID"} and set(pairs.control_ended) == {"accepted"}
    assert len(pairs) == 13 and not pairs.is_same.any()
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
    nulls = kept.scenarios_df().set_index("scenario").null_continuations["target"]
    assert kept.continuations_df().loc["target", "null"] == nulls
    assert f"target: null {nulls}; done" in kept.figure().alt


def test_without_a_live_server_it_says_so(kept: ControlTarget) -> None:
    """Without an address no live evidence is claimed, by a claim or by a sentence."""
    assert "No live server was given" in kept.live_evidence().headline
    assert not kept.claims_df().claim.str.contains("live").any()


def _live(monkeypatch: pytest.MonkeyPatch, address: str, **given: object) -> ControlTarget:
    monkeypatch.setenv("FRAGMENTLAB_BASE_URL", address)
    monkeypatch.setenv("FRAGMENTLAB_MODEL", "any")
    return control_against_target(_parameters(scenarios=CONTROL, **given))


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("name", ["target", "control", "length"])
def test_live_server_is_reported_as_observed(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The number of null continuations is the one observed, and zero of them is said to prove nothing."""
    provider.play(find_scenario(name), Task(2, 1))
    found = _live(monkeypatch, provider.address)
    said = "\n".join([found.live_evidence().headline, *found.live_evidence().details])
    assert found.live is not None and found.live.outcome is not None
    met = found.live.outcome.null_continuations
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
    """A negative that has an effect fails the run; neither its name nor its sentence is printed."""
    data = json.loads((data_folder("scenarios") / "denied-tool.json").read_bytes())
    del data["allow"]
    (tmp_path / "mine.json").write_text(
        json.dumps({**data, "name": "mine", "about": CANARY}), encoding="utf-8"
    )
    found = control_against_target(_parameters(scenarios=str(tmp_path)))
    shown = found.negatives().to_text() + found.comparison().to_text() + found.scenarios_df().to_csv()
    assert CANARY not in shown and "mine" not in shown and "SHA-256" not in shown
    with pytest.raises(ResultDoesNotHold, match="executed a call that must be refused: your scenario 1"):
        found.close()


def test_target_without_null_fails(tmp_path: Path) -> None:
    """A target that in fact streams no null proves nothing and fails the run."""
    data = json.loads((data_folder("scenarios") / "target.json").read_bytes())
    (tmp_path / "target.json").write_text(json.dumps({**data, "stream": {}}), encoding="utf-8")
    with pytest.raises(ResultDoesNotHold, match="streamed no null after an ID: target"):
        control_against_target(_parameters(scenarios=str(tmp_path))).close()


def test_unsafe_rules_are_refused(tmp_path: Path) -> None:
    """A rules file that breaks an invariant is refused by name before anything is played."""
    from fragmentlab.assembler.rules import SHIPPED

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
    pairs = pairs_df(str(folder), SHIPPED["keep-established"])
    assert len(pairs) == 13 and pairs.is_same.all()
    assert CANARY not in str(pairs_table(pairs)._repr_mimebundle_()) + pairs.to_csv()


@pytest.mark.usefixtures("foreign")
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
