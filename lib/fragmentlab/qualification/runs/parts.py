"""The Parquet parts of a run: written a bounded group of rows at a time, read back whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fragmentlab.files import open_file
from fragmentlab.qualification.runs.rows import DIAGNOSTICS, RESULTS, TIMINGS, Row

PARTS: dict[str, pa.Schema] = {
    "results.parquet": RESULTS,
    "diagnostics.parquet": DIAGNOSTICS,
    "timings.parquet": TIMINGS,
}
"""File name -> schema of the three parts that every run has."""
GROUP_ROWS = 2048


class PartWriter:
    """Writes rows of one part in order; no more than GROUP_ROWS are held."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._file = path.open("xb")
        self._writer = pq.ParquetWriter(self._file, schema)
        self._rows: list[Row] = []
        self._count = 0

    def add(self, row: Row) -> None:
        """Take one row."""
        self._rows.append(row)
        self._count += 1
        if len(self._rows) == GROUP_ROWS:
            self._flush()

    def finish(self) -> dict[str, Any]:
        """Write what is held, make it durable and return the part's entry for the footer."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {
            "file": self._path.name,
            "rows": self._count,
            "bytes": self._path.stat().st_size,
            "sha256": file_sha256(self._path),
        }

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self._abandon()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows = []

    def _abandon(self) -> None:
        # Its footer cannot be written on a full disk; the folder is about to be removed anyway.
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.close()
        with contextlib.suppress(OSError):
            self._file.close()


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_part(path: Path) -> pa.Table:
    """Read one part whole. Raises OSError, pyarrow.ArrowException or ValueError where it is no such part."""
    return pq.read_table(path, schema=PARTS[path.name])
