"""``fragmentlab vectors``: exit statuses, one line a disagreement, the JSON contract, and nothing raw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.cli import main

CANARY = "kanarienvogel"
RULES = "keep-established"
CALL = {"id": f"{CANARY}-id", "name": f"{CANARY}_tool", "arguments": f'{{"a":"{CANARY}"}}'}
NULLED = {"outcome": "rejected", "category": "TOOL_FRAGMENT_ID"}


def vector(vector_id: str, expect: dict[str, Any], **more: Any) -> dict[str, Any]:
    start = {"index": 0, "id": CALL["id"], "function": {"name": CALL["name"], "arguments": CALL["arguments"]}}
    fragments = [start, {"index": 0, "id": None}]
    choice = {"delta": {"tool_calls": fragments}, "finish_reason": "tool_calls"}
    return {"id": vector_id, "events": [{"choices": [choice]}], "expect": expect, **more}


GOOD = vector("t/good", {"outcome": "accepted", "calls": [CALL]}, expect_under={"reject-null": NULLED})
WRONG = vector("t/wrong", {"outcome": "accepted", "calls": [{**CALL, "arguments": "{}"}]})
REFUSED = vector("t/refused", {"outcome": "rejected", "category": "identity.missing"})


def write(path: Path, *vectors: dict[str, Any]) -> str:
    path.write_text(json.dumps({"schema": "fragmentlab-vectors-v1", "notes": {}, "vectors": vectors}))
    return str(path)


def test_agreement_is_a_line_a_file_a_total_and_exit_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file and a folder may be mixed; each file has its summary."""
    (tmp_path / "folder").mkdir()
    inside = write(tmp_path / "folder" / "b.json", GOOD)
    single = write(tmp_path / "a.json", GOOD, {**GOOD, "id": "t/again"})
    (tmp_path / "folder" / "notes.txt").write_text("not a vector file")
    assert main(["vectors", single, str(tmp_path / "folder")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{single}: all 2 agree",
        f"{inside}: all 1 agree",
        "total: all 3 agree in 2 files",
    ]


def test_each_disagreement_is_one_line_without_raw_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The vector, the rule set and the fact are named, raw values are not, and the exit is 1."""
    path = write(tmp_path / "v.json", GOOD, WRONG, REFUSED)
    assert main(["vectors", path]) == 1
    out = capsys.readouterr().out
    assert CANARY not in out
    assert out.splitlines() == [
        f"t/wrong under {RULES}: arguments of call 1 should be 2 characters, is 21 characters (every replay)",
        f"t/refused under {RULES}: outcome should be rejected identity.missing, is accepted (every replay)",
        f"{path}: 1 of 3 agree",
        "total: 1 of 3 agree in 1 file",
    ]


def test_raw_values_are_revealed_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --reveal the differing values are shown, quoted."""
    path = write(tmp_path / "v.json", WRONG)
    assert main(["vectors", path, "--reveal"]) == 1
    assert f"should be '{{}}', is '{CALL['arguments']}' (every replay)" in capsys.readouterr().out


def test_the_json_holds_files_counts_and_disagreements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object, the same facts, raw values only with --reveal."""
    paths = [write(tmp_path / "a.json", GOOD), write(tmp_path / "b.json", WRONG)]
    assert main(["vectors", *paths, "--json"]) == 1
    out = capsys.readouterr().out
    assert CANARY not in out
    report = json.loads(out)
    disagree = report.pop("disagree")
    assert report == {"files": paths, "vectors": 2, "agree": 1}
    replays = disagree[0].pop("replays")
    assert disagree == [
        {
            "file": paths[1],
            "id": "t/wrong",
            "rules": "keep-established",
            "fact": "arguments of call 1",
            "expected": "2 characters",
            "got": "21 characters",
        }
    ]
    assert {"whole", "byte by byte, diagnosing", "CRLF", "CR"} <= set(replays)
    main(["vectors", *paths, "--json", "--reveal"])
    revealed = json.loads(capsys.readouterr().out)["disagree"][0]
    assert (revealed["expected"], revealed["got"]) == ("{}", CALL["arguments"])


def test_rules_choose_the_one_rule_set_that_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An own expectation goes before the common one, and a rules file is taken like a name."""
    own = write(tmp_path / "own.json", GOOD)
    common = write(tmp_path / "common.json", vector("t/v", {"outcome": "accepted", "calls": [CALL]}))
    assert main(["vectors", own, "--rules", "reject-null"]) == 0
    assert main(["vectors", common, "--rules", "reject-null"]) == 1
    assert "t/v under reject-null: outcome should be accepted, is rejected TOOL_FRAGMENT_ID" in (
        capsys.readouterr().out
    )
    rules = SHIPPED["reject-null"]
    table = {
        "schema": "fragmentlab-rules-v1",
        "name": "mine",
        "note": "",
        "cells": {identity: dict(row) for identity, row in rules.cells.items()},
    }
    (tmp_path / "mine.rules").write_text(json.dumps(table))
    mine = write(tmp_path / "mine.json", {**GOOD, "expect_under": {"mine": NULLED}})
    assert main(["vectors", mine, "--rules", str(tmp_path / "mine.rules")]) == 0
    capsys.readouterr()
    assert main(["vectors", mine]) == 0
    assert "not checked: 1 under rule sets that are not shipped" in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["missing", "folder", "text", "endless", "rules", "category"])
def test_unusable_input_is_one_line_and_exit_2_before_any_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    """Nothing is printed on standard output, and the line quotes nothing of the file."""
    good = write(tmp_path / "good.json", GOOD)
    arguments = ["vectors", good]
    if broken == "missing":
        arguments.append(str(tmp_path / "missing.json"))
    elif broken == "folder":
        (tmp_path / "folder").mkdir()
        arguments.append(str(tmp_path / "folder"))
    elif broken == "text":
        (tmp_path / "text.json").write_text(CANARY)
        arguments.append(str(tmp_path / "text.json"))
    elif broken == "endless":
        with (tmp_path / "endless.json").open("wb") as file:
            file.truncate(1 << 30)
        arguments.append(str(tmp_path / "endless.json"))
    elif broken == "rules":
        arguments += ["--rules", "no-such-rules"]
    else:
        bad = vector("t/v", {"outcome": "rejected", "category": f"identity.{CANARY}"})
        arguments.append(write(tmp_path / "category.json", bad))
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fragmentlab vectors: ")
    assert captured.err.count("\n") == 1
    assert CANARY not in captured.err


def test_the_committed_vectors_agree_from_the_command_line(root: Path) -> None:
    """The command as a process: exit 0, no progress bar in a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "fragmentlab", "vectors", str(root / "data" / "vectors")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("total: all ")
