"""Run one notebook through papermill: ``python -m fragmentlab.reports.frame.worker < job.json``.

A job is ``{"notebook", "output", "parameters", "shown", "hidden"}``: two paths, the typed values for
papermill, what may be printed of them, and those that may not be. Exit status 0 when every cell ran, 1 when
one failed; anything else means that the kernel or this process died. Every save passes ``sanitize``, so that
the raw notebook never reaches a disk.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from fragmentlab.reports.frame.sanitize import sanitized

_SCHEME = "fragmentlab://"


class SanitizedFiles:
    """Papermill's reader and writer for one job: reads the notebook, writes it sanitized and whole."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job

    def read(self, path: str) -> str:
        return Path(self._job["notebook"]).read_text(encoding="utf-8")

    def write(self, text: str, path: str) -> None:
        clean = sanitized(json.loads(text), self._job["shown"], self._job["hidden"])
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

    job = json.load(sys.stdin)
    signal.signal(signal.SIGTERM, _stop)
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
    return 0


def _stop(signum: int, frame: object) -> NoReturn:
    # As an exception it passes papermill's clean-up, which ends the kernel.
    raise SystemExit(3)


if __name__ == "__main__":
    sys.exit(main())
