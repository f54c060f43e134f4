"""``fragmentlab assemble`` and ``explain``: exit statuses, the JSON contract, and one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fragmentlab.assembler import CATEGORIES
from fragmentlab.cli import main

CANARY = "kanarienvogel"
RAW = (CANARY + "-id", CANARY + "_tool", CANARY + " text")


def event(delta: dict[str, object] | None = None, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return f"data: {json.dumps({'id': CANARY, 'choices': [choice]})}\n\n"


def fragment(**fields: object) -> str:
    return event({"tool_calls": [{"index": 0, **fields}]})


FIRST = fragment(id=RAW[0], type="function", function={"name": RAW[1], "arguments": '{"a":'})
REST = fragment(id=None, function={"arguments": json.dumps(RAW[2]) + "}"})
END = event(finish="tool_calls") + "data: [DONE]\n\n"
ACCEPTED = FIRST + REST + END
REJECTED = FIRST + fragment(id=CANARY + "-other") + f": {CANARY}\n\n" + END


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    (tmp_path / "ok.sse").write_text(ACCEPTED)
    (tmp_path / "bad.sse").write_text(REJECTED)
    (tmp_path / "text.sse").write_text(event({"content": CANARY}) + event(finish="stop") + "data: [DONE]\n\n")
    (tmp_path / "ok.jsonl").write_text("\n".join(line[6:] for line in ACCEPTED.split("\n\n")[:-2]))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "options", "status", "outcome", "category"),
    [
        ("ok.sse", [], 0, "accepted", None),
        ("ok.jsonl", [], 0, "accepted", None),
        ("text.sse", [], 0, "no_calls", None),
        ("bad.sse", [], 1, "rejected", "identity.conflict"),
        ("ok.sse", ["--rules", "reject-null"], 1, "rejected", "TOOL_FRAGMENT_ID"),
        ("ok.sse", ["--tools", "a,b"], 1, "rejected", "proposal.name_unknown"),
        ("ok.sse", ["--tools", f"a, {RAW[1]}"], 0, "accepted", None),
    ],
)
def test_the_exit_status_and_the_json_say_the_outcome(
    recorded: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    options: list[str],
    status: int,
    outcome: str,
    category: str | None,
) -> None:
    """Exit 0 is accepted or no_calls, 1 rejected; the object holds exactly the documented fields."""
    assert main(["assemble", str(recorded / file), "--json", *options]) == status
    printed = json.loads(capsys.readouterr().out)
    fields = ["outcome", "category", "rules", "executable", "faults", "calls", "counts", "tolerances"]
    assert list(printed) == fields
    assert (printed["outcome"], printed["category"]) == (outcome, category)
    assert bool(printed["calls"]) == (outcome == "accepted")


def test_raw_values_appear_only_with_reveal(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Aliases and lengths by default; the raw call only where asked for, never of a refused response."""
    for file in ("ok.sse", "bad.sse", "text.sse"):
        for options in ([], ["--json"]):
            main(["assemble", str(recorded / file), *options])
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err
    main(["assemble", str(recorded / "ok.sse"), "--json", "--reveal"])
    raw = {"index": 0, "id": RAW[0], "name": RAW[1], "arguments": '{"a":"' + RAW[2] + '"}'}
    assert json.loads(capsys.readouterr().out)["calls"] == [raw]
    for options in (["--reveal"], ["--reveal", "--json"]):
        main(["assemble", str(recorded / "bad.sse"), *options])
        assert CANARY not in capsys.readouterr().out


def test_a_person_reads_the_outcome_the_fault_and_what_to_do(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The outcome comes first, then the meaning and next steps from the category file, then the timeline."""
    main(["assemble", str(recorded / "bad.sse")])
    out = capsys.readouterr().out
    assert out.startswith("rejected: identity.conflict   rules keep-established\n")
    entry = CATEGORIES["identity.conflict"]
    assert entry.meaning in out
    assert all(step in out for step in entry.next_steps)
    assert "string B" in out and "established A" in out and "tools unknown" in out
    assert "\x1b" not in out


def test_a_text_without_an_event_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error page is refused as cut off, and the person is told what it may be."""
    (tmp_path / "page").write_text("<html>502 Bad Gateway</html>")
    assert main(["assemble", str(tmp_path / "page")]) == 1
    out = capsys.readouterr().out
    assert "completion.truncated" in out and "is it a recorded stream, or an error page?" in out


def test_an_endless_timeline_is_cut_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person gets a bounded number of lines, and the number of those left out."""
    monkeypatch.setattr("fragmentlab.commands.assemble._LISTED_LINES", 20)
    (tmp_path / "long.sse").write_text("".join(fragment(id=f"{n}") for n in range(50)))
    main(["assemble", str(tmp_path / "long.sse")])
    out = capsys.readouterr().out
    assert out.count("reject identity.conflict") == 18  # besides the header and the first fragment
    assert "  ... and 31 more lines\n" in out


def run(*args: str, stdin: bytes | int = subprocess.DEVNULL) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fragmentlab", *args]
    source = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **source)  # type: ignore[arg-type]


def test_standard_input_is_a_file_too() -> None:
    """``-`` reads the stream from standard input, in a process of its own."""
    done = run("assemble", "-", "--json", stdin=ACCEPTED.encode())
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcome"] == "accepted"
    assert done.stderr == b""


def bad_inputs(folder: Path) -> dict[str, list[str]]:
    rules = json.loads(
        Path(__file__)
        .parents[2]
        .joinpath("lib/fragmentlab/assembler/rules/keep-established.json")
        .read_text()
    )
    del rules["cells"]["established"]["null"]
    (folder / "rules.json").write_text(json.dumps(rules))
    (folder / "empty").write_bytes(b"")
    (folder / "binary").write_bytes(bytes(range(256)))
    with (folder / "huge").open("wb") as file:
        file.truncate(200_000_000)
    ok = str(folder / "ok.sse")
    return {
        "No such file": ["assemble", str(folder / "missing")],
        "it is a directory": ["assemble", str(folder)],
        "is empty": ["assemble", str(folder / "empty")],
        "is binary": ["assemble", str(folder / "binary")],
        "larger than 64 MiB": ["assemble", str(folder / "huge")],
        "unrecognized arguments": ["assemble", ok, "--jsn"],
        "unknown rule set": ["assemble", ok, "--rules", "keep"],
        "cell established / null is missing": ["assemble", ok, "--rules", str(folder / "rules.json")],
        "--tools needs names": ["assemble", ok, "--tools", "a,,b"],
        "unknown category": ["explain", "identity.confict"],
        "invalid choice": ["asemble"],
    }


def test_bad_input_is_one_line_and_exit_2(recorded: Path) -> None:
    """Each unusable input is one line on standard error, exit 2, nothing on standard output, no traceback."""
    for words, args in bad_inputs(recorded).items():
        done = run(*args)
        error = done.stderr.decode()
        assert (done.returncode, done.stdout) == (2, b""), args
        assert words in error and error.count("\n") == 1, error


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_one_line(recorded: Path) -> None:
    """A file without read permission is one clear line."""
    (recorded / "ok.sse").chmod(0)
    assert b"Permission denied" in run("assemble", str(recorded / "ok.sse")).stderr


def test_a_closed_pipe_is_no_traceback(recorded: Path) -> None:
    """A reader that goes away ends the command quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "fragmentlab", "assemble", str(recorded / "bad.sse")],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert done.stderr == b""


def test_every_category_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """Meaning, causes and next steps are printed for every category there is."""
    for name, entry in CATEGORIES.items():
        assert main(["explain", name]) == 0
        out = capsys.readouterr().out
        assert entry.meaning in out
        assert all(text in out for text in entry.causes + entry.next_steps)
        assert entry.causes and entry.next_steps
