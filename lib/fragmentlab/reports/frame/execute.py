"""Run notebooks headlessly, each in a process of its own, and decide whether each reached its end.

A kernel that dies leaves a cell that says "completed", so a notebook has passed only when its process exited
with 0, no cell holds an error, and its closing cell left the footer.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fragmentlab.reports.frame.catalog import FOLDER_VARIABLE, Notebook, read_notebook
from fragmentlab.reports.frame.run_notebook import NOT_SAVED
from fragmentlab.reports.frame.sanitize import failures, reached_footer, sanitized, without_outputs

TIME_LIMIT_SECONDS = 1800.0
_POLL_SECONDS = 0.05
_STOP_SECONDS = 5.0
_FULL_BYTES = 1 << 20
"""With less left on the disk a kernel can hardly start or end."""


@dataclass(frozen=True)
class Job:
    """A notebook to run: ``parameters`` for papermill, ``shown`` what may be printed of each declared one."""

    notebook: Notebook
    parameters: Mapping[str, str | int | float | bool] = field(repr=False)
    shown: Mapping[str, str]


@dataclass(frozen=True)
class Execution:
    """A notebook that was run: ``reason`` is None when it passed, ``content`` is its sanitized JSON."""

    job: Job
    reason: str | None
    seconds: float
    content: dict[str, Any]

    @property
    def passed(self) -> bool:
        return self.reason is None


def execute(
    jobs: Sequence[Job],
    scratch: Path,
    done: Callable[[Execution], None],
    workers: int | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> list[Execution]:
    """Run all jobs, at most ``workers`` at once (default: one per core), and return them in their order.

    ``scratch`` is a private folder, in which the kernels keep their temporary files too; ``done`` is called
    as each job ends. Whatever ends this call, or this process, ends every process that it started.
    """
    waiting = list(enumerate(jobs))
    running: dict[int, _Process] = {}
    results: dict[int, Execution] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (workers or os.cpu_count() or 1):
                number, job = waiting.pop(0)
                running[number] = _Process(job, scratch / str(number), time_limit)
            for number in [number for number, process in running.items() if process.ended()]:
                results[number] = running.pop(number).result()
                done(results[number])
            time.sleep(_POLL_SECONDS)
    finally:
        for process in running.values():
            process.stop()
    return [results[number] for number in range(len(jobs))]


class _Process:
    def __init__(self, job: Job, folder: Path, time_limit: float) -> None:
        folder.mkdir(mode=0o700)
        self._job, self._folder, self._output = job, folder, folder / "out.ipynb"
        self._started, self._time_limit, self._timed_out = time.monotonic(), time_limit, False
        # Nothing that the kernel or a library prints is kept: it may quote data.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fragmentlab.reports.frame.run_notebook"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(job, folder),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        # The pipe stays open: its end tells the process that this one is gone.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(self._request()).encode() + b"\n")
            self._process.stdin.flush()

    def ended(self) -> bool:
        if self._process.poll() is None and time.monotonic() - self._started > self._time_limit:
            self._timed_out = True
            self.stop()
        return self._process.returncode is not None

    def stop(self) -> None:
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def result(self) -> Execution:
        seconds = time.monotonic() - self._started
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        content = self._content()
        reason = self._reason(content)
        content["metadata"]["fragmentlab"] = {
            "passed": reason is None,
            "reason": reason,
            "seconds": round(seconds, 1),
            "parameters": dict(self._job.shown),
        }
        return Execution(self._job, reason, seconds, content)

    def _request(self) -> dict[str, Any]:
        given, shown = self._job.parameters, self._job.shown
        return {
            "notebook": str(self._job.notebook.path),
            "output": str(self._output),
            "parameters": dict(given),
            "shown": {name: shown[name] for name in given},
        }

    def _content(self) -> dict[str, Any]:
        if self._output.is_file():
            return read_notebook(self._output)
        return sanitized(without_outputs(read_notebook(self._job.notebook.path)), {})

    def _reason(self, content: dict[str, Any]) -> str | None:
        status = self._process.returncode
        if self._timed_out:
            return f"stopped after {self._time_limit:.0f} s"
        if status > NOT_SAVED:
            return f"what it computed cannot be saved: {os.strerror(status - NOT_SAVED)}"
        if error := next(failures(content), None):
            return "; ".join(line.strip() for line in error["traceback"][:2])
        if status == 0:
            return None if reached_footer(content) else "it ended without its closing cell"
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < _FULL_BYTES:
            return "no space is left on the disk that holds temporary files"
        has_run = any(cell.get("execution_count") for cell in content["cells"])
        return "the kernel died" if has_run else "the kernel could not start"


def _environment(job: Job, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        FOLDER_VARIABLE: str(job.notebook.path.parent.resolve()),
        # Whatever a kernel leaves when it is killed lies where it is found and removed.
        "TMPDIR": str(folder),
        # A person's own IPython start-up files and kernels would make runs differ from machine to machine.
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "TQDM_DISABLE": "1",
    }
