"""Writing a run: beside its place, sealed by a footer, entered in the ledger, renamed into place.

The order is: parts and run.json durable, then the ledger's entry, then the rename. A process killed before
the entry leaves a folder under a working name that is no run; killed after it, one that is whole, proven by
the entry's hash, and only still has its working name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from fragmentlab import __version__
from fragmentlab.disclosure import slug
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING, locked, reason, remove_abandoned, sync_folder
from fragmentlab.qualification.runs.ledger import append_entry, now, read_ledger
from fragmentlab.qualification.runs.parts import PARTS, PartWriter
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import RUN_FILE, SCHEMA, header_sha256, locate

_PACKAGES = ("msgspec", "jsonschema", "pyarrow")


class RunWriter:
    """A run in the making; leaving the ``with`` block without ``complete`` removes it."""

    def __init__(self, runs: Path, header: Mapping[str, Any]) -> None:
        runs.mkdir(parents=True, exist_ok=True)
        self._runs, self._header, self._started = runs, dict(header), now()
        self.folder = runs / f"{WORKING}{uuid.uuid4().hex[:12]}"
        self.recorded = False
        self._stack = ExitStack()
        self._counts: Counter[str] = Counter()
        self._evidence: dict[str, Counter[str]] = {}
        try:
            with locked(runs):
                self.folder.mkdir()
                # Held as long as this process lives: so what a killed one left is told from it.
                self._stack.enter_context(locked(self.folder))
            self._parts = {
                name: self._stack.enter_context(PartWriter(self.folder / name, schema))
                for name, schema in PARTS.items()
            }
        except BaseException:
            self._abandon()
            raise

    def add(self, result: Row, diagnostics: Iterable[Row], timing: Row) -> None:
        """Take the rows of one stream."""
        self._parts["results.parquet"].add(result)
        for row in diagnostics:
            self._parts["diagnostics.parquet"].add(row)
        self._parts["timings.parquet"].add(timing)
        self._counts[result["outcome"]] += 1
        observed = self._evidence.setdefault(result["evidence"], Counter())
        observed["streams"] += 1
        observed["null_continuations"] += result["null_continuations"] or 0

    @property
    def streams(self) -> int:
        """How many streams were taken."""
        return self._counts.total()

    def complete(self) -> Path:
        """Seal the run, enter it in the ledger and return its folder."""
        footer_parts = [part.finish() for part in self._parts.values()]
        content = json.dumps(self._content(footer_parts), indent=1, sort_keys=True).encode() + b"\n"
        with (self.folder / RUN_FILE).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)
        sha256 = hashlib.sha256(content).hexdigest()
        revision = self._header["revision"]
        place = self._runs / f"{slug(revision)}-{sha256[:12]}"
        with locked(self._runs), _uninterrupted():
            # The same outcomes within the same second, without timings, are the same run.
            if any(entry.run_sha256 == sha256 for entry in read_ledger(self._runs)):
                return place
            append_entry(self._runs, place.name, sha256, revision)
            self.recorded = True
            os.rename(self.folder, place)
            sync_folder(self._runs)
        return place

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.recorded:
            self._stack.close()
        else:
            self._abandon()

    def _abandon(self) -> None:
        try:
            self._stack.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _content(self, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        header = {
            **self._header,
            "started": self._started,
            "finished": now(),
            "counts": {"streams": self._counts.total(), **self._counts},
            "evidence": {name: dict(counts) for name, counts in self._evidence.items()},
            "versions": {
                "fragmentlab": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in _PACKAGES},
            },
        }
        footer = {"header_sha256": header_sha256(header), "parts": list(parts)}
        return {"schema": SCHEMA, "header": header, "footer": footer}


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait: between entry and rename, a recorded run would look like an unfinished one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def tidy(runs: Path) -> list[str]:
    """Put right what killed processes left, and return what was done, a sentence each.

    A run that is recorded and whole gets its name; what is unfinished, and nobody is writing, is removed.
    """
    with locked(runs):
        unnamed = [(folder, entry.run) for entry in read_ledger(runs) if (folder := locate(runs, entry))]
        unnamed = [(folder, name) for folder, name in unnamed if folder.name != name]
        for folder, name in unnamed:
            os.rename(folder, runs / name)
        removed = remove_abandoned(runs)
        sync_folder(runs)
    return [
        *(f"run {name} was recorded by an interrupted process; it now has its name" for _, name in unnamed),
        *(f"removed what an interrupted run left: {path.name}" for path in removed),
    ]


def unwritable(error: OSError) -> InputError:
    """The one line for a run that could not be written; nothing of it is left."""
    return InputError(
        f"the run could not be written ({reason(error)}); nothing was recorded and its folder is removed"
    )
