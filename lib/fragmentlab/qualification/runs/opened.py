"""Qualification runs on disk: found, opened with every hash checked, and listed.

Source: docs/design.md, section 7.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING, find_path
from fragmentlab.qualification.runs.ledger import LEDGER, Entry, read_ledger
from fragmentlab.qualification.runs.parts import PARTS, file_sha256, read_part

RUN_FILE = "run.json"
SCHEMA_PREFIX = "fragmentlab-run-v"
SCHEMA = f"{SCHEMA_PREFIX}1"
_SOURCE_TEXTS = ("name", "sha256")
DEFAULT_FOLDERS = ("runs", "data/runs")
"""Where runs are looked for: what people record, then the kit's own history."""


@dataclass(frozen=True)
class Run:
    """One whole run; its tables are read when asked for."""

    id: str
    folder: Path
    header: Mapping[str, Any] = field(repr=False)

    @property
    def revision(self) -> str:
        return str(self.header["revision"])

    @property
    def subject(self) -> Mapping[str, Any]:
        return self.header["subject"]

    @property
    def is_reconstruction(self) -> bool:
        """Whether the rules of the past were rebuilt for it: such a run is never history."""
        return bool(self.header.get("reconstruction"))

    @property
    def title(self) -> str:
        """Revision and what was tested, with what a reader must know of it."""
        name = self.subject.get("rules") or self.subject["name"]
        made = f"a reconstruction made {self.header['started'][:10]}" if self.is_reconstruction else ""
        facts = ", ".join(filter(None, ("" if name == self.revision else name, made)))
        return f"{self.revision} ({facts})" if facts else self.revision

    @cached_property
    def results(self) -> pa.Table:
        return self._part("results.parquet")

    @cached_property
    def diagnostics(self) -> pa.Table:
        return self._part("diagnostics.parquet")

    @cached_property
    def timings(self) -> pa.Table:
        return self._part("timings.parquet")

    def _part(self, name: str) -> pa.Table:
        try:
            return read_part(self.folder / name)
        except (OSError, ValueError, pa.ArrowException):
            raise InputError(f"run {for_terminal(self.id)}: {name} cannot be read as rows of a run") from None


def open_run(folder: Path, entry: Entry | None = None) -> Run:
    """Open a run's folder. Raises InputError for one without a valid footer, with a part that is not what
    the footer says, from a newer version, or other than the ledger's ``entry``."""
    shown = for_terminal(folder.name)
    data = _run_file(folder, shown)
    if entry is not None and hashlib.sha256(data).hexdigest() != entry.run_sha256:
        raise InputError(f"run {shown} is not what the ledger recorded; see `fragmentlab runs verify`")
    content = parse_run_file(data, shown)
    for part in content["footer"]["parts"]:
        path = folder / part["file"]
        if not path.is_file() or file_sha256(path) != part["sha256"]:
            raise InputError(
                f"run {shown}: {part['file']} is not what its footer says; restore it or record anew"
            )
    return Run(entry.run if entry else folder.name, folder, content["header"])


def parse_run_file(data: bytes, shown: str) -> dict[str, Any]:
    """Return the header and footer of a run.json; raise InputError where it is none of this version."""
    try:
        content = json.loads(data)
        schema = content["schema"]
        if isinstance(schema, str) and schema.startswith(SCHEMA_PREFIX) and schema != SCHEMA:
            raise InputError(
                f"run {shown} was written by another version of the kit ({SCHEMA} is known); update"
            )
        header, parts = content["header"], content["footer"]["parts"]
        whole = (
            schema == SCHEMA
            and [part["file"] for part in parts] == list(PARTS)
            and all(isinstance(part["sha256"], str) and type(part["bytes"]) is int for part in parts)
            and all(isinstance(header[name], str) for name in ("revision", "started"))
            and isinstance(header["subject"]["name"], str)
            and all(isinstance(header[name], dict) for name in ("counts", "evidence"))
            and all(isinstance(source[name], str) for source in header["sources"] for name in _SOURCE_TEXTS)
            and content["footer"]["header_sha256"] == header_sha256(header)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise InputError(f"run {shown} has no valid footer, so it is not a run; it was cut off or altered")
    return content


def header_sha256(header: Mapping[str, Any]) -> str:
    """The hash by which the footer holds the header."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def locate(runs: Path, entry: Entry) -> Path | None:
    """The folder of a recorded run: under its name, or complete and recorded but not yet renamed. None if
    dropped."""
    if (runs / entry.run).is_dir():
        return runs / entry.run
    return next(
        (
            path
            for path in sorted(runs.glob(f"{WORKING}*"))
            if (path / RUN_FILE).is_file() and file_sha256(path / RUN_FILE) == entry.run_sha256
        ),
        None,
    )


def list_runs(runs: Path) -> list[Run]:
    """Every recorded run of a folder in the ledger's order; InputError where there is none or one is not
    whole."""
    entries = read_ledger(runs) if (runs / LEDGER).exists() else []
    if not entries:
        raise InputError(f"no runs at {for_terminal(str(runs))}; record one with `fragmentlab qualify`")
    return [_recorded(runs, entry) for entry in entries]


def find_run(name: str, folders: Sequence[Path]) -> Run:
    """Find a run by folder, id or revision label (then the last recorded of the first folder that has one).

    Raises InputError where none is found, or it is not whole.
    """
    path = Path(name)
    if (path / RUN_FILE).is_file():
        return _by_folder(path)
    for runs in folders:
        entries = read_ledger(runs) if (runs / LEDGER).exists() else []
        for matches in (lambda e: e.run == name, lambda e: e.revision == name):
            if found := [entry for entry in entries if matches(entry)]:
                return _recorded(runs, found[-1])
    # Only now: any folder here may happen to be named like a revision.
    if path.is_dir():
        return _by_folder(path)
    searched = ", ".join(for_terminal(str(runs)) for runs in folders) or "no folder"
    raise InputError(
        f"no run is named {for_terminal(name)} (searched: {searched}); see `fragmentlab runs list`"
    )


def runs_folders(option: Sequence[str] | None, here: bool = False) -> list[Path]:
    """The folders asked for, or the default ones that exist: ``here``, or else the kit's own too."""
    if option:
        return [Path(folder) for folder in option]
    find = Path if here else partial(find_path, kind="runs")
    return [path for folder in DEFAULT_FOLDERS if (path := find(folder)).is_dir()]


def _by_folder(path: Path) -> Run:
    path = path.resolve()
    entries = read_ledger(path.parent) if (path.parent / LEDGER).exists() else []
    entry = next((entry for entry in entries if entry.run == path.name), None)
    if entries and entry is None:
        raise InputError(
            f"run {for_terminal(path.name)} is not in the ledger beside it; see `fragmentlab runs verify`"
        )
    return open_run(path, entry)


def _recorded(runs: Path, entry: Entry) -> Run:
    folder = locate(runs, entry)
    if folder is None:
        raise InputError(
            f"the folder of run {for_terminal(entry.run)} is gone; see `fragmentlab runs verify`"
        )
    return open_run(folder, entry)


def _run_file(folder: Path, shown: str) -> bytes:
    try:
        return (folder / RUN_FILE).read_bytes()
    except OSError:
        raise InputError(
            f"{shown} has no {RUN_FILE}, so it is not a run; an interrupted one can be removed"
        ) from None
