"""What stands where a file is expected: every command says so in one line, at once, and writes nothing."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.corpus.conftest import Done


def bind(path: str) -> None:
    """Leave a socket at a path."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path)


KINDS: dict[str, Callable[[str], object]] = {
    "a pipe": os.mkfifo,
    "a socket": bind,
    "an endless device": lambda path: os.symlink("/dev/zero", path),
    "a directory": os.mkdir,
    "a link to itself": lambda path: os.symlink(path, path),
    "nothing": lambda path: None,
    "an empty file": lambda path: Path(path).touch(),
    "deep JSON": lambda path: Path(path).write_text("[" * 100_000),
    "no UTF-8": lambda path: Path(path).write_bytes(b'{"schema": "\xff"}'),
}
FILES = {
    "a recording": ("assemble", "bad.json"),
    "a rules file": ("assemble", "ok.sse", "--rules", "bad.json"),
    "a vector file": ("vectors", "bad.json"),
    "a folder with a vector file": ("vectors", "."),
    "a source of an import": ("import", "bad.json", "--out", "out"),
    "a stream to minimize": ("minimize", "bad.json", "--category", "identity.conflict"),
    "a shapes file": ("synth", "--streams", "1", "--seed", "1", "--out", "out", "--shapes", "bad.json"),
    "a vector file to qualify": ("qualify", "bad.json", "--revision", "x"),
    "rules to qualify": ("qualify", "captured-local", "--revision", "x", "--rules", "bad.json"),
    "expectations": ("compare", "keep-established", "keep-established", "--expectations", "bad.json"),
    "a log": ("runs", "import", "bad.json", "--revision", "x"),
    "a scenario": ("provider", "--scenario", "bad.json"),
}
"""What is expected at bad.json -> the command that reads it."""
FOLDERS = {
    "batch.json": ("scrub", ".", "--out", "out"),
    "ledger.jsonl": ("runs", "list", "--runs", "."),
    "01-bad.ipynb": ("report", "--notebooks", "."),
}
"""A file's name -> the command that expects it in a folder."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to be in, and an alarm for what would wait."""
    (tmp_path / "ok.sse").write_text("data: [DONE]\n\n")
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(30)
    yield tmp_path
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def ring(signum: int, frame: object) -> None:
    """End a test that waits; no command catches this."""
    raise SystemExit("it waited")


def refused(done: Done, statuses: tuple[int, ...]) -> None:
    """Nothing was done, and one line says why."""
    assert done.status in statuses, done
    assert "internal error" not in done.err
    # A runs folder's own key is no part of any run.
    left = {path for name in ("out", "runs", "reports") for path in Path(name).rglob("*")}
    assert not [path for path in left if ".private" not in path.parts]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FILES)
def test_a_bad_file_is_refused(command: Callable[..., Done], file: str, kind: str) -> None:
    """Its path is named, with what is wrong, in one line."""
    if (file, kind) in {("a folder with a vector file", "nothing"), ("an empty file", "a recording")}:
        pytest.skip("then there is no file to be bad")
    KINDS[kind]("bad.json")
    done = command(*FILES[file])
    if FILES[file][0] == "import":
        refused(done, (1, 2))
    else:
        refused(done, (2,))
        assert done.err.count("\n") == 1
        assert done.out == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FOLDERS)
def test_a_bad_file_in_a_folder_is_refused(command: Callable[..., Done], file: str, kind: str) -> None:
    """What a folder should hold is looked at like what a person names."""
    if (file, kind) in {("ledger.jsonl", "nothing"), ("ledger.jsonl", "an empty file")}:
        pytest.skip("a folder without runs is a list without lines")
    KINDS[kind](file)
    done = command(*FOLDERS[file])
    refused(done, (2,))
    assert done.err.count("\n") == 1
