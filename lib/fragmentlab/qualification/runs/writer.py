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
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import asdict

from fragmentlab import __version__
from fragmentlab.disclosure import slug
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING, locked, reason, remove_abandoned, sync_folder
from fragmentlab.qualification.runs.ledger import append_entry, now, read_ledger
from fragmentlab.qualification.runs.rows import PARTS, Row
from fragmentlab.qualification.runs.run_files import (
    RUN_FILE,
    SCHEMA,
    Part,
    file_sha256,
    header_sha256,
    locate,
)
from fragmentlab.qualification.runs.sources import SourceFacts

GROUP_ROWS = 2048
_PACKAGES = ("msgspec", "jsonschema", "pyarrow")


@contextlib.contextmanager
def new_run(
    runs: Path,
    revision: str,
    subject: Mapping[str, Any],
    sources: Iterable[SourceFacts],
    *,
    reconstruction: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[RunWriter]:
    """Begin a run, once what killed processes left is put right; leaving without ``complete`` removes it.

    Raises InputError where it cannot be written; nothing of it is left then.
    """
    header = {
        "revision": revision,
        "subject": dict(subject),
        "reconstruction": reconstruction,
        "sources": [asdict(source) for source in sources],
    }
    try:
        runs.mkdir(parents=True, exist_ok=True)
        for line in tidy(runs):
            say(line)
        folder = runs / f"{WORKING}{uuid.uuid4().hex[:12]}"
        with contextlib.ExitStack() as stack:
            with locked(runs):
                folder.mkdir()
                # Held as long as this process lives: so what a killed one left is told from it.
                stack.enter_context(locked(folder))
            yield RunWriter(folder, header, stack)
    except OSError as error:
        raise InputError(
            f"the run could not be written ({reason(error)}); nothing was recorded and its folder is removed"
        ) from None


class RunWriter:
    """A run in the making, in a working folder that goes with the stack unless the run was recorded."""

    def __init__(self, folder: Path, header: Mapping[str, Any], stack: contextlib.ExitStack) -> None:
        self.folder, self._runs, self._header, self._started = folder, folder.parent, header, now()
        self.recorded = False
        self._counts: Counter[str] = Counter()
        self._evidence: dict[str, Counter[str]] = {}
        stack.callback(self._remove_unrecorded)
        self._parts: dict[str, _PartWriter] = {}
        for name in PARTS:
            self._parts[name] = _PartWriter(folder / name)
            stack.callback(self._parts[name].close)

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
        parts = [asdict(part.finish()) for part in self._parts.values()]
        content = json.dumps(self._content(parts), indent=1, sort_keys=True).encode() + b"\n"
        with (self.folder / RUN_FILE).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)
        sha256, revision = hashlib.sha256(content).hexdigest(), self._header["revision"]
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

    def _remove_unrecorded(self) -> None:
        if not self.recorded:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _content(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
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
        footer = {"header_sha256": header_sha256(header), "parts": parts}
        return {"schema": SCHEMA, "header": header, "footer": footer}


class _PartWriter:
    """Writes rows of one part in order; no more than GROUP_ROWS are held."""

    def __init__(self, path: Path) -> None:
        self._path, self._schema = path, PARTS[path.name]
        self._file = path.open("xb")
        self._writer = pq.ParquetWriter(self._file, self._schema)
        self._rows: list[Row] = []
        self._count = 0

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self._count += 1
        if len(self._rows) == GROUP_ROWS:
            self._flush()

    def finish(self) -> Part:
        """Write what is held, make it durable and return the part's entry for the footer."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return Part(self._path.name, self._count, self._path.stat().st_size, file_sha256(self._path))

    def close(self) -> None:
        """Let go of a part that may be unfinished: its folder is then about to be removed."""
        # On a full disk its own end cannot be written.
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        with contextlib.suppress(OSError):
            self._file.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows = []


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
        done = []
        for entry in read_ledger(runs):
            folder = locate(runs, entry)
            if folder and folder.name != entry.run:
                os.rename(folder, runs / entry.run)
                done.append(f"run {entry.run} was recorded by an interrupted process; it now has its name")
        done += [f"removed what an interrupted run left: {path.name}" for path in remove_abandoned(runs)]
        sync_folder(runs)
    return done
