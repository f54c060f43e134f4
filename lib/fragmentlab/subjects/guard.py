"""Nothing that a subject started outlives the kit, even where the kit is killed without a chance to act.

Whoever runs a subject holds the lock of a file in the system's temporary folder. A watchdog waits for that
lock: it gets it when the kit ends, however it ends, and then ends what is left. Subjects carry the path of
that file in their environment, so what left its parent is found too. Where the watchdog was killed as well,
the next run finds the file unlocked.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from fragmentlab.files import is_locked

TOKEN = "FRAGMENTLAB_SUBJECT"
"""The environment variable that holds the path of the guard's file."""
_PREFIX = "fragmentlab-subject-"
_ROUNDS = 5


class Guard:
    """The lock of the file at ``path``, and the watchdog that waits for it."""

    def __init__(self) -> None:
        self._file, made = tempfile.mkstemp(prefix=f".{_PREFIX}")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        # It bears the name by which abandoned files are found only from now on.
        self.path = str(Path(made).with_name(Path(made).name[1:]))
        os.rename(made, self.path)
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", __name__, self.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Let the watchdog end what is left, if anything, and go."""
        os.close(self._file)
        self._watchdog.wait()


def end_abandoned() -> int:
    """End what the subjects of killed runs left running; return how many processes that were."""
    files = Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")
    return sum(_end_left(path) for path in files if not is_locked(path))


def kill_carriers(path: str, older: frozenset[int] = frozenset()) -> int:
    """Kill every process that carries the token and is none of the ``older`` ones, until none is found.

    Its process group goes with it: some there may have dropped the token with the rest of its environment.
    """
    killed = 0
    for _ in range(_ROUNDS):
        found = [pid for pid in psutil.pids() if pid not in older and _carries(pid, path)]
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(os.getpgid(pid), signal.SIGKILL)
                killed += 1
    return killed


def _carries(pid: int, path: str) -> bool:
    try:
        return bool(psutil.Process(pid).environ().get(TOKEN) == path)
    except (psutil.Error, OSError):
        return False


def _end_left(path: Path) -> int:
    killed = kill_carriers(str(path))
    path.unlink(missing_ok=True)
    return killed


def _watch(path: Path) -> None:
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _end_left(path)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
