"""Kills, full disks and several writers: the ledger never holds anything but whole runs."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fragmentlab.files import WORKING, locked
from fragmentlab.qualification.runs.ledger import read_ledger
from fragmentlab.qualification.runs.run_files import list_runs
from fragmentlab.qualification.runs.verify import verify_runs
from fragmentlab.qualification.runs.writer import tidy

TARGET = Path(__file__).with_name("kill_target.py")
QUALIFY = [sys.executable, "-m", "fragmentlab", "qualify"]


def _target(*arguments: object) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(TARGET), *map(str, arguments)], capture_output=True, timeout=300, check=True
    )
    return json.loads(done.stdout)


def _assert_only_whole_runs(runs: Path, at_least: int) -> None:
    found = verify_runs(runs)
    assert found.problems == []
    assert len(list_runs(runs)) == len(found.entries) >= at_least
    stray = {p.name for p in runs.iterdir()} - {e.run for e in found.entries} - {"ledger.jsonl"}
    assert all(name.startswith(WORKING) for name in stray)


def test_kills_at_random_times_leave_only_whole_runs(tmp_path: Path, identity: Path) -> None:
    """After 60 kills the ledger verifies, every run in it is whole, and what is left over goes."""
    runs = tmp_path / "runs"
    ends = _target("random", identity.with_name("index.json"), runs, 60, 20261201)
    assert ends["killed"] == 60
    assert ends["failed"] == 0
    _assert_only_whole_runs(runs, at_least=1 + ends["completed"])
    assert tidy(runs)
    assert not list(runs.glob(f"{WORKING}*"))
    _assert_only_whole_runs(runs, at_least=1 + ends["completed"])


def test_a_kill_before_or_after_each_durable_step_leaves_only_whole_runs(
    tmp_path: Path, identity: Path
) -> None:
    """Every step that makes something durable may be the last one."""
    runs = tmp_path / "runs"
    ends = _target("steps", identity.with_name("index.json"), runs)
    assert ends["killed"] > 20
    assert ends["failed"] == 0
    _assert_only_whole_runs(runs, at_least=2)


def test_a_recorded_run_gets_its_name_later(runs: Path) -> None:
    """A run whose process was killed between the entry and the rename is whole, verifies, and is named by
    the next."""
    entry = read_ledger(runs)[0]
    os.rename(runs / entry.run, runs / f"{WORKING}0123")
    found = verify_runs(runs)
    assert found.problems == []
    assert [entry.run in note for note in found.notes] == [True]
    assert [entry.run in line for line in tidy(runs)] == [True]
    assert verify_runs(runs).notes == tidy(runs) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, identity: Path) -> None:
    """The next qualify removes the folder and says so; one that is being written stays."""
    left = tmp_path / "runs" / f"{WORKING}dead"
    left.mkdir(parents=True)
    written = left.with_name(f"{WORKING}live")
    written.mkdir()
    with locked(written):
        done = _qualify(identity, tmp_path / "runs")
    assert done.returncode == 0
    assert left.name in done.stderr
    assert (left.exists(), written.exists()) == (False, True)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_leaves_nothing(tmp_path: Path, root: Path, workers: str) -> None:
    """Ctrl-C ends a run with status 130, says that nothing is left, and leaves neither files nor
    processes."""
    runs, token = tmp_path / "runs", tmp_path / "subject"
    waiting = f"import pathlib, time; pathlib.Path({str(token)!r}).touch(); time.sleep(61)"
    command = shlex.join([sys.executable, "-c", waiting])
    hanging = ["--exec", command, "--time-limit", "60", "--workers", workers]
    child = subprocess.Popen(
        [*QUALIFY, str(root / "data/vectors/name.json"), "--revision", "x", "--runs", str(runs), *hanging],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not token.exists() and child.poll() is None:
        os.sched_yield()
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "nothing is left" in stderr
    assert "Traceback" not in stderr
    assert list(runs.iterdir()) == []
    assert not _running(str(token))


def test_two_writers_both_get_their_runs(tmp_path: Path, identity: Path) -> None:
    """Processes that qualify at once into one folder each end in the ledger."""
    runs = tmp_path / "runs"
    command = [*QUALIFY, str(identity), "--runs", str(runs), "--revision"]
    writers = [
        subprocess.Popen([*command, f"w{n}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(4)
    ]
    for writer in writers:
        _, stderr = writer.communicate(timeout=120)
        assert writer.returncode == 0, stderr
    assert sorted(run.revision for run in list_runs(runs)) == ["w0", "w1", "w2", "w3"]
    _assert_only_whole_runs(runs, at_least=4)


def test_a_file_size_limit_is_one_line_and_leaves_nothing(tmp_path: Path, identity: Path) -> None:
    """Where a part cannot be written whole, nothing is recorded and nothing is left."""
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
    run = "from fragmentlab.cli import main; raise SystemExit(main(sys.argv[1:]))"
    arguments = ["qualify", str(identity), "--revision", "x", "--runs", str(tmp_path / "runs")]
    done = subprocess.run(
        [sys.executable, "-c", limit + run, *arguments], capture_output=True, text=True, timeout=60
    )
    _assert_refused_whole(done, tmp_path / "runs")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a mounted file system of 64 KiB; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("a small file system cannot be mounted here: it needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_keeps_the_ledger_as_it_was(small_disk: Path, identity: Path) -> None:
    """Runs are recorded until the disk is full; the one that does not fit leaves no trace."""
    runs = small_disk / "runs"
    for _ in range(10):
        done = _qualify(identity, runs)
        if done.returncode:
            break
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert len(done.stderr.splitlines()) == 1
    _assert_only_whole_runs(runs, at_least=1)
    assert not list(runs.glob(f"{WORKING}*"))


def _running(word: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes() and path.parent.name != str(os.getpid()):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _qualify(vectors: Path, runs: Path) -> subprocess.CompletedProcess[str]:
    arguments = [str(vectors), "--revision", "x", "--runs", str(runs)]
    return subprocess.run([*QUALIFY, *arguments], capture_output=True, text=True, timeout=60, check=False)


def _assert_refused_whole(done: subprocess.CompletedProcess[str], runs: Path) -> None:
    assert done.returncode == 2
    assert "nothing was recorded" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(runs.iterdir()) == []


LEAVE_EARLY = """
from dataclasses import replace
import sys
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.pool import observed
from fragmentlab.qualification.runs.sources import open_sources
if __name__ == "__main__":
    item = next(open_sources(sys.argv[1:])[0].items())
    large = replace(item, stream=replace(item.stream, body=b": " + b"x" * 70_000 + b"\\n" + item.stream.body))
    rows = observed([large] * 400, Choice(rules="keep-established"), 2)
    next(rows)
    rows.close()
"""


def test_workers_with_a_full_pipe_are_left_at_once(identity: Path) -> None:
    """Whatever interrupts a run with workers ends it, also while cases wait in a full pipe to them."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVE_EARLY, str(identity)], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
