"""Run notebooks headlessly, each in a process of its own, and judge whether each reached its end.

A kernel that dies leaves a cell that says "completed", so a notebook has passed only when its process exited
with 0, no cell holds an error, and its closing cell left the footer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fragmentlab.reports.frame.catalog import FOLDER_VARIABLE, Notebook, read_notebook
from fragmentlab.reports.frame.parameters import NOT_SHOWN
from fragmentlab.reports.frame.sanitize import failures, reached_footer, sanitized, without_outputs

TIME_LIMIT_SECONDS = 1800.0
_POLL_SECONDS = 0.05
_STOP_SECONDS = 5.0


@dataclass(frozen=True)
class Job:
    """A notebook to run: ``parameters`` for papermill, ``shown`` what may be printed of every declared
    one."""

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
    """Run all jobs, at most ``workers`` at once (default: one a core), and return them in their order.

    ``scratch`` is a private folder; ``done`` is called as each ends. Whatever ends this call ends every
    process that it started.
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
        self._job, self._output = job, folder / "out.ipynb"
        self._started, self._time_limit, self._timed_out = time.monotonic(), time_limit, False
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(self._request()).encode())
            request.seek(0)
            # Nothing that the kernel or a library prints is kept: it may quote data.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fragmentlab.reports.frame.worker"],
                stdin=request,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(job, folder),
                start_new_session=True,
            )

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
        return {
            "notebook": str(self._job.notebook.path),
            "output": str(self._output),
            "parameters": dict(self._job.parameters),
            "shown": {name: self._job.shown[name] for name in self._job.parameters},
            "hidden": [
                value for name, value in self._job.parameters.items() if self._job.shown[name] == NOT_SHOWN
            ],
        }

    def _content(self) -> dict[str, Any]:
        if self._output.is_file():
            return read_notebook(self._output)
        return sanitized(without_outputs(read_notebook(self._job.notebook.path)), {})

    def _reason(self, content: dict[str, Any]) -> str | None:
        if self._timed_out:
            return f"stopped after {self._time_limit:.0f} s"
        if error := next(failures(content), None):
            return "; ".join(line.strip() for line in error["traceback"][:2])
        if self._process.returncode != 0:
            return "the kernel died" if _has_run(content) else "the kernel could not start"
        return None if reached_footer(content) else "it ended without its closing cell"


def _has_run(content: Mapping[str, Any]) -> bool:
    return any(cell.get("execution_count") for cell in content["cells"])


def _environment(job: Job, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        FOLDER_VARIABLE: str(job.notebook.path.parent.resolve()),
        # A person's own IPython start-up files and kernels would make runs differ from machine to machine.
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "TQDM_DISABLE": "1",
    }
