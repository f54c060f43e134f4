"""The command line itself: output that cannot be written, and faults of ours, end in one line and exit 2."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fragmentlab.cli import COMMANDS, EXAMPLES, HIDDEN, _parser, main

FRAGMENT = b'{"index":0,"id":"a","function":{"name":"f\xc3\xa9","arguments":"{}"}}'
STREAM = (
    b'data: {"choices":[{"delta":{"tool_calls":[' + FRAGMENT + b"]}}]}\n\n"
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
ECHO = """
import sys
from fragmentlab.cli import main
from fragmentlab.commands import explain
explain.run = lambda args: print(args.category) or 0
main(["explain", sys.argv[1]])
"""
"""A command that prints its argument, as commands print the path that they wrote."""
PRINTING = (["assemble", "-"], ["assemble", "-", "--json"], ["explain", "identity.conflict"], ["--help"])


def run(shell: str, *args: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line with the shell's redirections, a stream on standard input."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m fragmentlab "$@" {shell}', sys.executable, *args],
        input=STREAM,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_a_full_disk_is_one_line(args: list[str]) -> None:
    """Output that cannot be written is one line and exit 2, never the exit status of an outcome."""
    done = run(">/dev/full", *args)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1 and b"No space left" in done.stderr
    assert run(">/dev/full 2>/dev/full", *args).returncode == 2


@pytest.mark.parametrize(
    ("shell", "args", "status", "error"),
    [
        (">&-", ["assemble", "-"], 0, b""),
        ("2>&-", ["assemble", "missing"], 2, b""),
        (">&- 2>&-", ["assemble", "missing"], 2, b""),
        (
            "<&-",
            ["assemble", "-"],
            2,
            b"fragmentlab assemble: standard input is closed; name a file or pipe a stream in\n",
        ),
    ],
)
def test_a_closed_stream_is_no_traceback(shell: str, args: list[str], status: int, error: bytes) -> None:
    """A missing standard stream changes no exit status and provokes nothing."""
    done = run(shell, *args)
    assert (done.returncode, done.stderr) == (status, error)


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_character_that_the_terminal_lacks_is_escaped(environment: dict[str, str]) -> None:
    """A revealed name is shown whatever the locale, as an escape where it must be."""
    done = run("", "assemble", "-", "--reveal", **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"name f\xe9" in done.stdout


def test_a_path_is_printed_as_its_own_bytes(tmp_path: Path, root: Path) -> None:
    """A file name that is not UTF-8 can be found again from what a command prints."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    command = [sys.executable, "-c", ECHO, str(folder)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert done.stdout == os.fsencode(folder) + b"\n"


def test_an_abbreviated_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Options are exact, so that a later option cannot change what a script's abbreviation means."""
    with pytest.raises(SystemExit) as ended:
        main(["assemble", "x", "--js"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --js" in capsys.readouterr().err


def test_many_unknown_arguments_are_one_line_of_bounded_length(capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern that the shell expanded to hundreds of files is no screenful."""
    with pytest.raises(SystemExit):
        main(["minimize", *[f"folder/recording-{number}.sse" for number in range(500)], "--category", "c"])
    error = capsys.readouterr().err
    assert "unrecognized arguments: folder/recording-1.sse" in error
    assert error.count("\n") == 1 and len(error) < 400


@pytest.mark.parametrize("fault", [ValueError("CANARY"), KeyError("CANARY"), MemoryError("CANARY")])
def test_a_fault_of_ours_is_one_line_without_its_message(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An unforeseen exception is exit 2, its place and type in one line; its message might quote a value."""

    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("fragmentlab.corpus.streams.Stream.assemble", fail)
    (tmp_path / "ok.sse").write_bytes(STREAM)
    assert main(["assemble", str(tmp_path / "ok.sse")]) == 2
    error = capsys.readouterr().err
    assert "CANARY" not in error and error.count("\n") == 1
    assert "out of memory" in error if isinstance(fault, MemoryError) else "at assemble.py:" in error


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - HIDDEN))
def test_help_shows_examples_that_parse(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command that is listed shows command lines which its own options accept, one on each line."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out.splitlines()
    for line in EXAMPLES[command]:
        assert f"  fragmentlab {line}" in shown
        words = shlex.split(line, comments=False)
        end = next((at for at, word in enumerate(words) if word in "<>"), len(words))
        _parser(command).parse_args(words[:end])
