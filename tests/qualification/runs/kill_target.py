"""A process that records runs and is killed: at random times, or at every durable step. Prints what it did
as JSON.

kill_target.py random  VECTORS RUNS KILLS SEED
kill_target.py steps   VECTORS RUNS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.record import record_run

STEPS = ("mkdir", "fsync", "replace", "rename")


def record(vectors: Path, runs: Path) -> None:
    record_run([vectors], "killed", Choice(rules="keep-established"), runs)


def forked(work: object) -> int:
    """Run ``work`` in a child that never returns; give its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            work()  # type: ignore[operator]
        except BaseException:
            os._exit(3)
        os._exit(0)
    return pid


def kill_randomly(vectors: Path, runs: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill that many children at random times in the span that one needs; count how each ended."""
    draw = random.Random(seed)
    started = time.monotonic()
    os.waitpid(forked(lambda: record(vectors, runs)), 0)
    span = time.monotonic() - started
    ends = {"killed": 0, "completed": 0, "failed": 0}
    while ends["killed"] < kills:
        pid = forked(lambda: record(vectors, runs))
        time.sleep(draw.uniform(0, span))
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        ends["killed" if status == -signal.SIGKILL else "completed" if status == 0 else "failed"] += 1
    return ends


def kill_at_steps(vectors: Path, runs: Path) -> dict[str, int]:
    """Kill a child before and after each of its durable steps, until one passes them all."""
    ends = {"killed": 0, "completed": 0, "failed": 0}
    for step in range(1, 200):
        for after in (False, True):
            pid = forked(lambda step=step, after=after: _with_kill(step, after, vectors, runs))
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            ends["killed" if status == -signal.SIGKILL else "completed" if status == 0 else "failed"] += 1
        if status == 0:
            return ends
    raise SystemExit("never completed")


def _with_kill(step: int, after: bool, vectors: Path, runs: Path) -> None:
    taken = 0
    for name in STEPS:
        original = getattr(os, name)

        def dying(*args: object, original: object = original, **options: object) -> object:
            nonlocal taken
            taken += 1
            if taken == step and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            number = taken
            try:
                return original(*args, **options)  # type: ignore[operator]
            finally:
                if number == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, name, dying)
    record(vectors, runs)


if __name__ == "__main__":
    mode, vectors, runs, *rest = sys.argv[1:]
    if mode == "random":
        print(json.dumps(kill_randomly(Path(vectors), Path(runs), *map(int, rest))))
    else:
        print(json.dumps(kill_at_steps(Path(vectors), Path(runs))))
