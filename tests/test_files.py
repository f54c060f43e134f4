"""Reads are bounded and never wait, writes are whole or absent, the kit's own data is found from anywhere."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fragmentlab import files
from fragmentlab.errors import InputError
from fragmentlab.files import (
    data_folder,
    find_path,
    new_folder,
    read_bytes,
    shipped_names,
    write_whole,
)

HELD = """
import sys
from fragmentlab.files import new_folder
with new_folder(sys.argv[1]) as folder:
    (folder / "raw").write_text("raw")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A path of a file that is not there yet."""
    return tmp_path / "file"


def bind(path: Path) -> None:
    """Leave a socket at a path."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def test_a_file_is_read_up_to_its_limit(beside: Path) -> None:
    """A file of just the limit is read whole; one byte more is refused with what to do."""
    beside.write_bytes(b"x" * 1025)
    assert read_bytes(beside, 1025) == b"x" * 1025
    with pytest.raises(InputError, match=r"file is larger than 1 KiB; cut it$"):
        read_bytes(beside, 1024, "cut it")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "it is a pipe"),
        (os.mkdir, "it is a directory; name a file"),
        (bind, "it is a socket"),
        (lambda path: os.symlink("/dev/zero", path), "it is a device"),
        (lambda path: os.symlink(path, path), "Too many levels"),
        (lambda path: None, "No such file"),
    ],
    ids=["pipe", "directory", "socket", "device", "link to itself", "nothing"],
)
def test_only_regular_files_are_read(beside: Path, make: object, words: str) -> None:
    """Anything else is refused by what it is, at once: nobody ever writes into the pipe."""
    make(beside)  # type: ignore[operator]
    with pytest.raises(InputError, match=words) as refused:
        read_bytes(beside, 10)
    assert str(refused.value).count("\n") == 0


def test_a_pipe_that_takes_a_files_place_is_refused(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the opening a path may change; then too nothing waits."""
    os.mkfifo(beside)
    looks = iter([os.stat(__file__)])
    monkeypatch.setattr(os, "stat", lambda path: next(looks))
    with pytest.raises(InputError, match="it is a pipe"):
        read_bytes(beside, 10)


def test_a_path_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """What is invisible in a path is written out in the error that names it."""
    with pytest.raises(InputError, match=r"\\x1b\[31m\\x0a cannot be read"):
        read_bytes(f"{tmp_path}/\x1b[31m\n", 10)
    with pytest.raises(InputError, match="the path is not valid"):
        read_bytes("a\0b", 10)


def test_a_written_file_replaces_the_old_one_whole(beside: Path) -> None:
    """Text and bytes are written, and a link stays a link to what is written."""
    write_whole(beside, "old")
    link = beside.with_name("link")
    link.symlink_to(beside)
    write_whole(link, "né")
    assert (beside.read_bytes(), link.is_symlink()) == ("né".encode(), True)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(beside: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A full disk is named, wherever it is met, and what stood there before still does."""
    write_whole(beside, "old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(InputError, match="file cannot be written: No space left on device"):
        write_whole(beside, "new")
    assert beside.read_text() == "old"
    assert os.listdir(beside.parent) == ["file"]


def test_a_stream_of_the_system_is_written_to_as_it_is() -> None:
    """A device is never replaced by a file."""
    write_whole("/dev/null", "text")
    assert not Path("/dev/null").is_file()


def test_a_new_folder_appears_when_it_is_complete(beside: Path) -> None:
    """While it is filled it has another name; a failure removes it; an existing one is never touched."""
    with new_folder(beside) as folder:
        (folder / "part").write_text("x")
        assert not beside.exists()
    assert (beside / "part").read_text() == "x"
    with pytest.raises(InputError, match="exists; choose another"), new_folder(beside):
        pass
    with pytest.raises(KeyError), new_folder(beside.with_name("other")):
        raise KeyError
    with (
        pytest.raises(InputError, match="other cannot be written: No space"),
        new_folder(folder.parent / "other"),
    ):
        raise OSError(errno.ENOSPC, "")
    assert os.listdir(beside.parent) == ["file"]


def test_what_a_killed_process_left_is_removed_and_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What another process is filling stays; once it is killed, the next writer removes it and says so."""
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(tmp_path / "theirs")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout
        raw = Path(other.stdout.readline().strip())
        with new_folder(tmp_path / "first"):
            pass
        assert (raw / "raw").exists()
        other.send_signal(signal.SIGKILL)
        other.wait()
    with new_folder(tmp_path / "second"):
        pass
    assert not raw.exists()
    assert capsys.readouterr().err == f"removed what an interrupted process left: {raw}\n"
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]


def test_the_kits_data_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped name means the kit's, unless something of that name is here."""
    monkeypatch.chdir(tmp_path)
    assert find_path("data/vectors", "vectors") == data_folder("vectors")
    assert find_path("captured-local", "batches") == data_folder("batches/captured-local")
    assert find_path("README.md", "batches") == Path("README.md")
    (tmp_path / "captured-local").mkdir()
    assert find_path("captured-local", "batches") == Path("captured-local")


def test_shipped_names_are_those_of_the_data_folder() -> None:
    """They are what anyone may read in the project; nothing else is among them."""
    assert {"captured-local", "identity", "empty-clears", "data/vectors/identity"} <= shipped_names()
    assert "schemas" not in shipped_names()
    assert all(name == name.strip() and name for name in shipped_names())


def test_an_installed_kit_has_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no checkout is around the package, the data is inside it."""
    monkeypatch.setattr(files, "__file__", str(tmp_path / "site-packages/fragmentlab/files.py"))
    assert data_folder("runs") == tmp_path / "site-packages/fragmentlab/kit/data/runs"
