"""The commands end to end, as a person or a CI job runs them."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from fragmentlab.cli import main
from fragmentlab.qualification.runs.verify import verify_runs

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that runs a command in an empty folder and gives status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def is_summary(err: str) -> bool:
    """Whether standard error holds the one line that counts outcomes, and nothing else."""
    return err.count("\n") == 1 and err.startswith("qualify: ") and " streams: " in err


def test_a_command_that_never_answers_is_said(call: Call, root: Path) -> None:
    """Where every stream failed, the summary says what to look at; the run is recorded all the same."""
    status, out, err = call(
        "qualify", root / "data/vectors/name.json", "--revision", "x", "--exec", "sh -c 'exit 3'"
    )
    assert status == 0 and Path(out.strip()).is_dir()
    assert err.splitlines()[0] == "qualify: 43 streams: 43 failed"
    assert "answered for no stream" in err.splitlines()[1]


def _data(root: Path) -> list[Path]:
    """The arguments of the issue's own example: every committed batch and vector file."""
    return [*sorted((root / "data/batches").iterdir()), *sorted((root / "data/vectors").glob("*.json"))]


@pytest.mark.parametrize(
    ("rules", "status", "verdict"),
    [
        ("accept-every-null", 1, "lost protection"),
        ("reject-null", 1, "lost compatibility"),
        ("keep-established", 0, "pass"),
    ],
)
def test_a_rule_set_is_judged_against_the_committed_run(
    call: Call, root: Path, rules: str, status: int, verdict: str
) -> None:
    """Qualified over all committed data and compared with ``keep-established``, each has its verdict and
    status."""
    qualified, out, err = call("qualify", *_data(root), "--revision", "X", "--rules", rules)
    assert qualified == 0 and is_summary(err)
    assert Path(out.splitlines()[-1]).is_dir()
    compared, out, _ = call(
        "compare", "keep-established", "X", "--runs", "runs", "--runs", root / "data/runs"
    )
    assert (compared, out.splitlines()[0]) == (status, f"verdict: {verdict}")


def test_compare_writes_what_ci_needs(call: Call, root: Path, tmp_path: Path) -> None:
    """Markdown, JUnit and a proposal are written, and a declared proposal passes."""
    identity = root / "data/vectors/identity.json"
    for rules in ("keep-established", "reject-null"):
        call("qualify", identity, "--revision", rules, "--rules", rules)
    arguments = ("compare", "keep-established", "reject-null", "--junit", "j.xml", "--markdown", "m.md")
    status, _, _ = call(*arguments, "--propose", "expectations.json")
    assert status == 1
    assert "lost compatibility" in Path("m.md").read_text()
    assert "<failure" in Path("j.xml").read_text()
    Path("expectations.json").write_text(Path("expectations.json").read_text().replace('""', '"x"'))
    status, out, err = call(*arguments)
    assert (status, "expectations.json" in err) == (0, True)
    assert "flipped as declared" in out


def test_runs_are_listed_verified_and_imported(call: Call, root: Path, tmp_path: Path) -> None:
    """What is recorded is listed and verifies, an import too; a flipped byte exits 1 and names the file."""
    call("qualify", root / "data/vectors/name.json", "--revision", "one")
    log = {"task": "t", "time": "2026-10-01T09:30:00Z", "outcome": "rejected", "category": "TOOL_FRAGMENT_ID"}
    Path("log.jsonl").write_text(json.dumps(log))
    status, out, _ = call("runs", "import", "log.jsonl", "--revision", "old")
    assert status == 0
    imported = Path(out.strip())
    assert [line.split()[0] for line in call("runs", "list")[1].splitlines()][1] == imported.name
    head = verify_runs(Path("runs")).head
    assert call("runs", "verify", "--head", head)[0] == 0
    assert call("runs", "verify", "--head", "0" * 64)[0] == 1
    part = imported / "results.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    status, out, _ = call("runs", "verify")
    assert (status, "results.parquet was altered" in out) == (1, True)


def test_a_note_is_written_twice(call: Call, root: Path) -> None:
    """The note of a revision comes as Markdown and HTML, the latter's path last."""
    call("qualify", root / "data/vectors/name.json", "--revision", "v/1")
    status, out, err = call("note", "--revision", "v/1")
    assert status == 0
    assert Path(out.strip()).read_text().startswith("<!DOCTYPE html>")
    assert Path(out.strip()).with_suffix(".md").exists()
    assert "note-v-1.md" in err


def test_subjects_lists_how_to_name_each(call: Call) -> None:
    """Shipped rules, counterfactuals and commands are listed."""
    status, out, _ = call("subjects", "list")
    assert status == 0
    assert all(name in out for name in ("keep-established", "inherit-response", "--exec CMD"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("qualify", "no-such-batch", "--revision", "x"),
        ("qualify", "missing.json", "--revision", "x"),
        ("qualify", "IDENTITY", "--revision", "../x"),
        ("qualify", "IDENTITY", "--revision", "x", "--rules", "no-such-rules"),
        ("qualify", "IDENTITY", "--revision", "x", "--subject", "no-such-subject"),
        ("qualify", "IDENTITY", "--revision", "x", "--exec", "no-such-program"),
        ("qualify", "IDENTITY", "--revision", "x", "--long-lived"),
        ("qualify", "IDENTITY", "--revision", "x", "--runs", "/dev/null/runs"),
        ("compare", "a", "b"),
        ("compare", "a", "b", "--runs", "missing"),
        ("runs", "verify"),
        ("runs", "verify", "--runs", "missing"),
        ("runs", "import", "missing", "--revision", "x"),
        ("note", "--revision", "x"),
    ],
)
def test_bad_input_is_one_line_and_status_2(call: Call, root: Path, arguments: tuple[str, ...]) -> None:
    """What cannot be used is said in one line, without a traceback, and nothing is recorded."""
    given = [str(root / "data/vectors/identity.json") if a == "IDENTITY" else a for a in arguments]
    status, out, err = call(*given)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not Path("runs").exists() or not list(Path("runs").iterdir())


def test_progress_is_shown_on_a_terminal_only(root: Path, tmp_path: Path) -> None:
    """A bar on a terminal; in a pipe nothing but the summary line."""
    vectors = str(root / "data/vectors/name.json")
    command = [
        sys.executable,
        "-m",
        "fragmentlab",
        "qualify",
        vectors,
        "--revision",
        "x",
        "--runs",
        str(tmp_path),
    ]
    piped = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert piped.stderr == b"qualify: 43 streams: 15 accepted, 28 rejected\n"
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=True)
    os.set_blocking(ours, False)
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    os.close(theirs)
    assert b"streams" in shown


@pytest.mark.parametrize("extra", [[], ["--long-lived"]], ids=["one process a stream", "long-lived"])
def test_the_documented_strict_gateway_passes(call: Call, root: Path, extra: list[str]) -> None:
    """The example of the five-minute page, run as the page says, equals the kit's own run."""
    example = shlex.join([sys.executable, str(root / "docs/examples/gateway_strict.py"), *extra])
    vectors = root / "data/vectors" if extra else root / "data/vectors/name.json"
    status, _, err = call("qualify", vectors, "--revision", "mine", "--exec", example, *extra)
    assert status == 0 and is_summary(err)
    call("qualify", vectors, "--revision", "kit")
    assert call("compare", "kit", "mine")[0] == 0


def test_the_documented_client_is_found_to_be_less_strict(call: Call, root: Path) -> None:
    """The official Python client behind ``--exec`` is called lost protection on changed IDs."""
    example = shlex.join([sys.executable, str(root / "docs/examples/gateway_openai.py"), "--long-lived"])
    identity = root / "data/vectors/identity.json"
    options = ("--long-lived", "--categories", "client_error", "--exec", example)
    call("qualify", identity, "--revision", "kit")
    assert call("qualify", identity, "--revision", "client", *options)[0] == 0
    status, out, _ = call("compare", "kit", "client")
    assert (status, out.splitlines()[0]) == (1, "verdict: lost protection")
    assert "rejected:identity.conflict -> accepted" in out
