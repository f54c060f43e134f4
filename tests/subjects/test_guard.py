"""Nothing that a subject started outlives the kit, whoever is killed and in whatever order."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fragmentlab.subjects.guard import TOKEN, Guard, end_abandoned

SUBJECT = """
import os, time
told = os.open({fifo!r}, os.O_WRONLY)
for part in ("in its session", "in a session of its own", "without its environment"):
    if os.fork() == 0:
        if part == "in a session of its own":
            os.setsid()
        os.set_inheritable(told, True)
        command = f"import os, time; os.write({{told}}, b'x'); time.sleep(600)"
        gone = {{}} if part == "without its environment" else os.environ
        os.execve({python!r}, [{python!r}, "-S", "-c", command], gone)
time.sleep(600)
"""
"""A gateway that starts three processes and hangs. All hold the pipe, which ends with the last of them."""

KIT = """
import sys
from fragmentlab.corpus.streams import Stream
from fragmentlab.subjects.command import CommandSubject
from fragmentlab.subjects.guard import Guard
from fragmentlab.subjects.process import Bounds
subject = CommandSubject((sys.executable, "-S", "-c", sys.argv[1]), bounds=Bounds(600))
subject._guard = Guard()
print(subject._guard._watchdog.pid, flush=True)
subject.observe(Stream("s-1", b"data: [DONE]\\n\\n"))
"""


class Kit:
    """A kit in a process of its own, whose gateway is in the middle of a stream."""

    def __init__(self, folder: Path) -> None:
        fifo = str(folder / "fifo")
        os.mkfifo(fifo)
        subject = SUBJECT.format(fifo=fifo, python=sys.executable)
        environment = {**os.environ, "TMPDIR": str(folder)}
        command = [sys.executable, "-c", KIT, subject]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout
        self.watchdog = int(self.process.stdout.readline())
        self.held = os.open(fifo, os.O_RDONLY)
        for _ in range(3):
            assert os.read(self.held, 1) == b"x"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def is_everything_gone(self, seconds: float) -> bool:
        return bool(select.select([self.held], [], [], seconds)[0]) and os.read(self.held, 1) == b""


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    """A kit with a temporary folder of its own, which this process looks into too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started = Kit(tmp_path)
    yield started
    started.kill()
    started.process.stdout.close()
    end_abandoned()
    os.close(started.held)


def test_a_killed_kit_leaves_no_subject_running(kit: Kit, tmp_path: Path) -> None:
    """Its watchdog ends the gateway and all that it started, and takes the file away."""
    kit.kill()
    assert kit.is_everything_gone(30)
    assert end_abandoned() == 0


def test_the_next_run_ends_what_a_killed_watchdog_left(kit: Kit, tmp_path: Path) -> None:
    """With the watchdog killed as well, the gateway runs on until another run looks for it."""
    assert end_abandoned() == 0
    os.kill(kit.watchdog, signal.SIGKILL)
    kit.kill()
    assert not kit.is_everything_gone(0)
    assert end_abandoned() >= 3
    assert kit.is_everything_gone(30)
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


def test_a_closed_guard_leaves_no_file_and_no_watchdog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a run ends by itself, its watchdog ends too; what is not its own is never touched."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    guard = Guard()
    other = {**os.environ, TOKEN: f"{guard.path}-other"}
    with subprocess.Popen(["sleep", "600"], env=other) as bystander:
        guard.close()
        assert bystander.poll() is None
        bystander.kill()
    assert not list(tmp_path.iterdir())
    assert guard._watchdog.returncode == 0
