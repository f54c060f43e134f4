"""Qualification runs on disk: found, opened with every hash checked, and listed.

Source: docs/design.md, section 7.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import UNSET, Meta, UnsetType

from fragmentlab.disclosure import shown_name
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING, data_folder, open_file, read_bytes
from fragmentlab.formats import SHA256, StrictStruct, decode
from fragmentlab.qualification.runs.ledger import LEDGER, Entry, read_ledger
from fragmentlab.qualification.runs.rows import PARTS
from fragmentlab.qualification.runs.sources import Count, SourceFacts

RUN_FILE = "run.json"
SCHEMA = "fragmentlab-run-v1"
CANDIDATE = "candidate"
"""Begins the recorded name of a rule set that the kit does not ship."""
_MAX_BYTES = 64 << 20


class SubjectFacts(StrictStruct, frozen=True):
    """What was put to the test; never a command line, a path or a private name."""

    kind: str
    name: str
    version: str | UnsetType = UNSET
    rules: str | UnsetType = UNSET
    rules_sha256: Annotated[str, SHA256] | UnsetType = UNSET
    executable: bool | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    limits: dict[str, float] | UnsetType = UNSET


class Header(StrictStruct, frozen=True):
    """What was run, over what, when, and how it came out."""

    revision: str
    subject: SubjectFacts
    reconstruction: Annotated[
        str | None, Meta(description="What must be said of a run under rules of the past, rebuilt.")
    ]
    sources: tuple[SourceFacts, ...]
    started: Annotated[str, Meta(min_length=10)]
    finished: str
    counts: dict[str, Count]
    evidence: dict[str, dict[str, Count]]
    versions: dict[str, str]


class Part(StrictStruct, frozen=True):
    """One Parquet file of the run."""

    file: str
    rows: Count
    bytes: Count
    sha256: Annotated[str, SHA256]


class Footer(StrictStruct, frozen=True):
    """What seals a run: a folder without it is none."""

    header_sha256: Annotated[str, SHA256]
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if [part.file for part in self.parts] != list(PARTS):
            raise ValueError(f"the parts must be {', '.join(PARTS)}")


class RunFile(StrictStruct, frozen=True, tag_field="schema", tag=SCHEMA):
    """A qualification run: ``run.json`` beside its parts."""

    header: Header
    footer: Footer


@dataclass(frozen=True)
class Run:
    """One whole run; its tables are read when asked for. ``recorded``: whether a ledger holds it."""

    id: str
    folder: Path
    header: Mapping[str, Any] = field(repr=False)
    recorded: bool = True

    @property
    def revision(self) -> str:
        return str(self.header["revision"])

    @property
    def subject(self) -> Mapping[str, Any]:
        return self.header["subject"]

    @property
    def is_reconstruction(self) -> bool:
        """Whether the rules of the past were rebuilt for it: such a run is never history."""
        return bool(self.header["reconstruction"])

    @property
    def rules(self) -> str | None:
        """The rule set's name as it may be shown: runs recorded by older versions hold any name."""
        name = self.subject.get("rules")
        if name is None or self.subject["kind"] == "counterfactual" or name.startswith(CANDIDATE):
            return name
        return shown_name(name, CANDIDATE)

    @property
    def title(self) -> str:
        """Revision and what was tested, with what a reader must know of it."""
        name = self.rules or self.subject["name"]
        facts = [name] if name != self.revision else []
        if self.is_reconstruction:
            facts.append(f"a reconstruction made {self.header['started'][:10]}")
        if not self.recorded:
            facts.append("in no ledger")
        return f"{self.revision} ({', '.join(facts)})" if facts else self.revision

    results = cached_property(lambda self: self._part("results.parquet"))
    diagnostics = cached_property(lambda self: self._part("diagnostics.parquet"))
    timings = cached_property(lambda self: self._part("timings.parquet"))

    def _part(self, name: str) -> pa.Table:
        try:
            return pq.read_table(self.folder / name, schema=PARTS[name])
        except (OSError, ValueError, pa.ArrowException):
            raise InputError(f"run {self.id}: {name} cannot be read as rows of a run") from None


def open_run(folder: Path, entry: Entry | None = None) -> Run:
    """Open a run's folder.

    Raises InputError for one without a valid footer, with a part that is not what the footer says, from a
    newer version, or other than the ledger's ``entry``.
    """
    if not (folder / RUN_FILE).is_file():
        raise InputError(
            f"{folder.name} has no {RUN_FILE}, so it is not a run; an interrupted one can be removed"
        )
    data = read_bytes(folder / RUN_FILE, _MAX_BYTES)
    if entry is not None and hashlib.sha256(data).hexdigest() != entry.run_sha256:
        raise InputError(f"run {folder.name} is not what the ledger recorded; see `fragmentlab runs verify`")
    header, footer = parse_run_file(data, folder.name)
    for part in footer.parts:
        path = folder / part.file
        if not path.is_file() or file_sha256(path) != part.sha256:
            raise InputError(
                f"run {folder.name}: {part.file} is not what its footer says; restore it or record it again"
            )
    return Run(entry.run if entry else folder.name, folder, header, recorded=entry is not None)


def parse_run_file(data: bytes, name: str) -> tuple[Mapping[str, Any], Footer]:
    """Return the header and the footer of a run.json; raise InputError where it is not whole."""
    footer = decode(data, RunFile, f"run {name}: {RUN_FILE}").footer
    header: Mapping[str, Any] = json.loads(data)["header"]
    if header_sha256(header) != footer.header_sha256:
        raise InputError(f"run {name} has no valid footer, so it is not a run; it was cut off or altered")
    return header, footer


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def header_sha256(header: Mapping[str, Any]) -> str:
    """The hash by which the footer holds the header."""
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()


def locate(runs: Path, entry: Entry) -> Path | None:
    """The folder of a recorded run, or None where it is gone.

    It is under the run's name or, complete and recorded but not yet renamed, under a working name.
    """
    if (runs / entry.run).is_dir():
        return runs / entry.run
    unnamed = sorted(path.parent for path in runs.glob(f"{WORKING}*/{RUN_FILE}") if path.is_file())
    return next((path for path in unnamed if file_sha256(path / RUN_FILE) == entry.run_sha256), None)


def list_runs(runs: Path) -> list[Run]:
    """Return every recorded run of a folder in the ledger's order.

    Raises InputError where there is none or one is not whole.
    """
    entries = read_ledger(runs)
    if not entries:
        raise InputError(f"no runs at {runs}; record one with `fragmentlab qualify`")
    return [_recorded(runs, entry) for entry in entries]


def find_run(name: str, folders: Sequence[Path], *, unrecorded: bool = False) -> Run:
    """Find a run by its id or revision label in a ledger, or else by the path of its folder.

    The first folder whose ledger has the name decides; of several runs with one label, the last recorded.
    Only what contains a separator is a path. With ``unrecorded``, a path may lead to a run that no ledger
    holds. Raises InputError where none is found, or it is not whole.
    """
    for runs in folders:
        entries = read_ledger(runs)
        named = [entry for entry in entries if entry.run == name]
        if named := named or [entry for entry in entries if entry.revision == name]:
            return _recorded(runs, named[-1])
    if "/" in name and Path(name).is_dir():
        path = Path(name).resolve()
        entry = next((entry for entry in read_ledger(path.parent) if entry.run == path.name), None)
        run = open_run(path, entry)
        if entry is None and not unrecorded:
            raise InputError(
                f"run {path.name} is in no ledger, so nothing shows that it was not altered; to use it all "
                "the same, add --unrecorded"
            )
        return run
    searched = ", ".join(map(str, folders)) or "no folder"
    beside = f"; for the folder of that name, write ./{name}" if Path(name).is_dir() else ""
    raise InputError(f"no run is named {name} (searched: {searched}); see `fragmentlab runs list`{beside}")


def runs_folders(option: Sequence[str] | None) -> list[Path]:
    """The folders asked for; otherwise ``runs``, where it exists, and the kit's own runs."""
    if option:
        return [Path(folder) for folder in option]
    return [folder for folder in (Path("runs"), data_folder("runs")) if folder.is_dir()]


def known_runs(option: Sequence[str] | None) -> list[Run]:
    """Every recorded run of the folders asked for; otherwise of ``runs`` and the kit's own."""
    folders = [folder for folder in runs_folders(option) if option or (folder / LEDGER).exists()]
    return [run for folder in folders for run in list_runs(folder)]


def _recorded(runs: Path, entry: Entry) -> Run:
    folder = locate(runs, entry)
    if folder is None:
        raise InputError(f"the folder of run {entry.run} is gone; see `fragmentlab runs verify`")
    return open_run(folder, entry)
