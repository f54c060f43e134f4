"""``fragmentlab assemble`` and ``explain``: exit statuses, the JSON contract, and one line for bad input."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fragmentlab.assembler import CATEGORIES, explain
from fragmentlab.cli import main
from fragmentlab.corpus.streams import plain_stream

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
    """Aliases and lengths by default; raw calls and a refused stream's fragments only where asked for."""
    for file in ("ok.sse", "bad.sse", "text.sse", "."):
        for options in ([], ["--json"]):
            main(["assemble", str(recorded / file), *options])
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err
    main(["assemble", str(recorded / "ok.sse"), "--json", "--reveal"])
    raw = {"index": 0, "id": RAW[0], "name": RAW[1], "arguments": '{"a":"' + RAW[2] + '"}'}
    assert json.loads(capsys.readouterr().out)["calls"] == [raw]
    main(["assemble", str(recorded / "bad.sse"), "--json", "--reveal"])
    assert CANARY not in capsys.readouterr().out  # the calls of a refused response are never put together
    main(["assemble", str(recorded / "bad.sse"), "--reveal"])
    fragments = capsys.readouterr().out.splitlines()[-2:]
    assert fragments[0].startswith("  event 1, fragment 1: {") and RAW[1] in fragments[0]
    assert fragments[1] == f'  event 2, fragment 2: {{"index": 0, "id": "{CANARY}-other"}}'


def test_what_is_revealed_cannot_steer_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters and reordering marks are shown as escapes."""
    (tmp_path / "bad.sse").write_text(fragment(id=5, function={"name": "\x1b[31m\u202e"}))
    main(["assemble", str(tmp_path / "bad.sse"), "--reveal"])
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


def test_a_person_reads_the_point_the_place_and_what_to_do(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The point and its place come first, then the fault with its next steps, then the timeline."""
    main(["assemble", str(recorded / "bad.sse")])
    out = capsys.readouterr().out
    result = plain_stream(REJECTED.encode()).assemble(diagnose=True)  # type: ignore[union-attr]
    told = explain(result.faults[0], result)
    assert out.startswith(f"rejected: identity.conflict: {told.headline}\nat event 2, fragment 2")
    assert told.next_steps and all(f"-> {step}" in out for step in told.next_steps)
    assert "string B" in out and "established A" in out and "tools unknown" in out
    assert "\x1b" not in out


def test_several_streams_are_listed_and_one_is_picked(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder or a glob is one row per stream and a count; --stream explains a row."""
    monkeypatch.chdir(recorded)
    assert main(["assemble", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines[1:-1]]
    assert rows == [
        ["1", "bad.sse", "rejected", "identity.conflict", "1", "0"],
        ["2", "ok.jsonl", "accepted", "1", "1"],
        ["3", "ok.sse", "accepted", "1", "1"],
        ["4", "text.sse", "no_calls", "0", "0"],
    ]
    assert lines[-1] == (
        "4 streams: 2 accepted, 1 rejected identity.conflict, 1 no_calls. --stream N explains one."
    )
    assert main(["assemble", "*ok*", "text.sse"]) == 0
    capsys.readouterr()
    assert main(["assemble", ".", "--stream", "1"]) == 1
    picked = capsys.readouterr().out
    assert main(["assemble", "bad.sse"]) == 1
    assert picked == capsys.readouterr().out
    for number in ("0", "5"):
        assert main(["assemble", ".", "--stream", number]) == 2
        assert f"there is no stream {number}" in capsys.readouterr().err


def test_several_streams_are_json_lines(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line has the stream's file, place and notes before what one stream alone prints."""
    files = [str(recorded / name) for name in ("ok.sse", "bad.sse")]
    assert main(["assemble", *files, "--json"]) == 1
    for file, line in zip(files, capsys.readouterr().out.splitlines(), strict=True):
        listed = json.loads(line)
        assert listed.pop("file") == file
        del listed["place"], listed["notes"]
        main(["assemble", file, "--json"])
        assert listed == json.loads(capsys.readouterr().out)


def test_good_files_are_shown_where_others_are_not(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read is named on standard error; exit 1 where a stream was found, 2 where none was."""
    ok, missing = str(recorded / "ok.sse"), str(recorded / "missing")
    (recorded / "empty").write_bytes(b"")
    assert main(["assemble", ok, missing, str(recorded / "empty")]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("accepted") and captured.err.count("skipped: ") == 2
    assert main(["assemble", missing, str(recorded / "empty")]) == 2
    captured = capsys.readouterr()
    assert not captured.out and captured.err.endswith("fragmentlab assemble: no stream was found\n")
    (recorded / "list.json").write_text('[1, {"a": 2}]')
    assert main(["assemble", str(recorded / "list.json"), str(recorded / "empty")]) == 2
    assert "list.json: is JSON without chunks of a streamed response; " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "seems"),
    [
        (
            {"model": CANARY, "stream": True, "messages": [{"role": "user", "content": CANARY}]},
            "is a request, ",
        ),
        ({"log": {"entries": [{"response": {"content": {"text": "{}"}}}]}}, "is JSON without chunks "),
    ],
)
def test_what_is_no_answer_is_not_judged_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: dict[str, object], seems: str
) -> None:
    """A request, or a session without a streamed answer, is no event of another protocol."""
    (tmp_path / "one.json").write_text(json.dumps(content))
    assert main(["assemble", str(tmp_path / "one.json")]) == 2
    captured = capsys.readouterr()
    assert not captured.out and f"one.json: {seems}" in captured.err and CANARY not in captured.err


def test_one_of_several_streams_is_minimized(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FILE:N names the stream that assemble lists under N."""
    (recorded / "two.json").write_text(json.dumps([{"body": ACCEPTED}, {"body": REJECTED}]))
    assert main(["minimize", f"{recorded / 'two.json'}:2"]) == 0
    assert json.loads(capsys.readouterr().out)["vectors"][0]["expect"]["category"] == "identity.conflict"


def test_a_folder_of_mixed_files_is_triaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two hundred files of ten kinds: each stream is listed, the rest named or counted, nothing stops it."""
    har = {"log": {"entries": [{"response": {"content": {"text": ACCEPTED}}}]}}
    kinds: dict[str, bytes] = {
        "ok.sse": ACCEPTED.encode(),
        "bad.sse": REJECTED.encode(),
        "ok.har": json.dumps(har).encode(),
        "two.json": json.dumps([{"body": ACCEPTED}, {"body": REJECTED}]).encode(),
        "ok.sse.gz": gzip.compress(ACCEPTED.encode()),
        "page.html": b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
        "notes.md": b"# Notes\n\nnothing of the kind\n",
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "empty.log": b"",
        "broken.har": b'{"log": {"entries": [{"response"',
    }
    for number in range(20):
        for name, data in kinds.items():
            (tmp_path / f"{number:02}-{name}").write_bytes(data)
    os.mkfifo(tmp_path / "pipe.sse")
    assert main(["assemble", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    summary = captured.out.splitlines()[-1]
    assert summary.startswith("120 streams: 80 accepted, 40 rejected identity.conflict.")
    assert captured.err.count("broken.har") == 20 and captured.err.count("pipe.sse") == 1
    assert "ok.sse:" not in captured.err and CANARY not in captured.out + captured.err


def test_the_end_and_limits_can_be_said(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person may know what the recording does not say."""
    (recorded / "cut.sse").write_text(FIRST + REST + event(finish="tool_calls"))
    for options, category in (
        ([], None),
        (["--end", "aborted"], "completion.transport_error"),
        (["--limit", "events=2"], "limit.events"),
        (["--limit", "events=9", "--limit", "calls=1"], None),
    ):
        main(["assemble", str(recorded / "cut.sse"), "--json", *options])
        assert json.loads(capsys.readouterr().out)["category"] == category


def test_a_text_without_an_event_is_no_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error page is none, and nothing is judged."""
    (tmp_path / "page").write_text("<html>502 Bad Gateway</html>")
    assert main(["assemble", str(tmp_path / "page")]) == 2
    captured = capsys.readouterr()
    assert not captured.out and captured.err.count("\n") == 1


def test_an_endless_timeline_is_cut_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person gets a bounded number of lines, and the number of those left out."""
    monkeypatch.setattr("fragmentlab.commands.result_text._LISTED_LINES", 20)
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
    """``-`` takes from standard input whatever a file may hold, and leaves no copy of it."""
    for text in (ACCEPTED, json.dumps([{"response": {"body": ACCEPTED}}])):
        done = run("assemble", "-", "--json", stdin=text.encode())
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["outcome"] == "accepted"
    done = run("assemble", "-", stdin=b"nothing of the kind")
    assert (done.returncode, done.stdout) == (2, b"")
    assert not list(Path(tempfile.gettempdir()).glob("fragmentlab-standard-input-*"))


def bad_inputs(folder: Path) -> dict[str, list[str]]:
    rules = json.loads(
        Path(__file__)
        .parents[2]
        .joinpath("lib/fragmentlab/assembler/rules/keep-established.json")
        .read_text()
    )
    del rules["cells"]["established"]["null"]
    (folder / "two.json").write_text(json.dumps([{"body": ACCEPTED}, {"body": REJECTED}]))
    (folder / "rules.json").write_text(json.dumps(rules))
    (folder / "empty").write_bytes(b"")
    (folder / "binary").write_bytes(bytes(range(256)))
    ok = str(folder / "ok.sse")
    return {
        "is not there": ["assemble", str(folder / "missing")],
        "is empty": ["assemble", str(folder / "empty")],
        "is binary": ["assemble", str(folder / "binary")],
        "--limit needs NAME=N": ["assemble", ok, "--limit", "evnts=3"],
        "above 0; the names are": ["assemble", ok, "--limit", "events=many"],
        "invalid choice: 'soon'": ["assemble", ok, "--end", "soon"],
        "unrecognized arguments": ["assemble", ok, "--jsn"],
        "unknown rule set": ["assemble", ok, "--rules", "keep"],
        "cells.established: object missing required field null": [
            "assemble",
            ok,
            "--rules",
            str(folder / "rules.json"),
        ],
        "--tools needs names": ["assemble", ok, "--tools", "a,,b"],
        "unknown category; did you mean identity.conflict": ["explain", "identity.confict"],
        "unknown category; `fragmentlab explain` lists them": ["explain", "nope"],
        "name one as FILE:2 to minimize it": ["minimize", str(folder / "two.json")],
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
