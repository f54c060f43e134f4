"""Run one notebook through papermill: ``python -m fragmentlab.reports.frame.run_notebook``.

The first line of standard input is the job: ``{"notebook", "output", "parameters", "shown"}``, two paths, the
typed values for papermill, and what may be printed of them. Standard input stays open as long as the process
lives that asked; when it ends, so do this one and its kernel.

Exit status 0 when every cell ran, 1 when one failed, NOT_SAVED and the system's error number where the result
cannot be saved; anything else means that the kernel or this process died. Every save passes ``sanitize``, so
that the raw notebook never reaches a disk.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from fragmentlab.reports.frame.sanitize import sanitized

NOT_SAVED = 64
_SCHEME = "fragmentlab://"
_LONGEST_JOB = 64 << 20


class SanitizedFiles:
    """Papermill's reader and writer for one job: reads the notebook, writes it sanitized and whole."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job

    def read(self, path: str) -> str:
        return Path(self._job["notebook"]).read_text(encoding="utf-8")

    def write(self, text: str, path: str) -> None:
        clean = sanitized(json.loads(text), self._job["shown"])
        output = Path(self._job["output"])
        beside = output.with_suffix(".part")
        beside.write_text(json.dumps(clean, indent=1), encoding="utf-8")
        os.replace(beside, output)

    def listdir(self, path: str) -> list[str]:
        return []

    def pretty_path(self, path: str) -> str:
        return path


def main() -> int:
    """Run the job on standard input and return the exit status."""
    import papermill
    from papermill.exceptions import PapermillExecutionError
    from papermill.iorw import papermill_io

    signal.signal(signal.SIGTERM, _stop)
    with open(0, "rb", buffering=0, closefd=False) as requests:
        job = json.loads(requests.readline(_LONGEST_JOB))
    threading.Thread(target=_watch, args=(Path(job["output"]).parent,), daemon=True).start()
    papermill_io.register(_SCHEME, SanitizedFiles(job))
    try:
        papermill.execute_notebook(
            f"{_SCHEME}in.ipynb",
            f"{_SCHEME}out.ipynb",
            parameters=job["parameters"],
            kernel_name="python3",
            progress_bar=False,
        )
    except PapermillExecutionError:
        return 1
    except OSError as error:
        return NOT_SAVED + (error.errno or 0)
    return 0


def _watch(folder: Path) -> None:
    """Wait for the end of the process that asked; then nobody else would remove the folder."""
    os.read(0, 1)
    _orphaned.append(folder)
    os.kill(os.getpid(), signal.SIGTERM)


_orphaned: list[Path] = []


def _stop(signum: int, frame: object) -> NoReturn:
    # As an exception it passes papermill's clean-up, which ends the kernel.
    raise SystemExit(3)


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        for left in _orphaned:
            shutil.rmtree(left, ignore_errors=True)
