"""The ledger of a runs folder: one line a run, each holding the hash of the line before it.

It only ever grows. A new line is written into a copy beside it that is renamed over it, so that no kill and
no full disk can leave half a line; the folder itself is the lock between writers.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fragmentlab.disclosure import for_terminal, is_label
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING, sync_folder

LEDGER = "ledger.jsonl"
FIRST = "0" * 64
"""What the first entry names as the hash before it."""


@dataclass(frozen=True)
class Entry:
    """One line: ``number`` counts from 1, ``run`` is the folder's name, ``run_sha256`` the hash of its
    run.json."""

    number: int
    previous: str
    recorded: str
    run: str
    run_sha256: str
    revision: str
    hash: str

    def line(self) -> bytes:
        """The entry as it stands in the file."""
        return _canonical(asdict(self)) + b"\n"


def scan_ledger(folder: Path) -> tuple[list[Entry], list[str]]:
    """Return the entries up to the first broken line, and what is wrong, if anything."""
    path = folder / LEDGER
    if not path.exists():
        return [], []
    data = path.read_bytes()
    entries: list[Entry] = []
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        entry = _entry(line)
        if entry is None:
            return entries, [f"{LEDGER}, line {number} was altered: it is not the line that was written"]
        if entry.number != number or entry.previous != (entries[-1].hash if entries else FIRST):
            return entries, [
                f"{LEDGER}, line {number} does not follow the line before it: a line was dropped or added"
            ]
        entries.append(entry)
    return entries, []


def read_ledger(folder: Path) -> list[Entry]:
    """Return all entries; raise InputError where the ledger is broken."""
    try:
        entries, problems = scan_ledger(folder)
    except OSError as error:
        raise InputError(f"{for_terminal(str(folder / LEDGER))} cannot be read: {error.strerror}") from None
    if problems:
        raise InputError(f"{for_terminal(str(folder))}: {problems[0]}; see `fragmentlab runs verify`")
    return entries


def append_entry(folder: Path, run: str, run_sha256: str, revision: str) -> Entry:
    """Add a run under the lock, which the caller holds. Raises OSError, the ledger then being as it was."""
    entries = read_ledger(folder)
    facts = {
        "number": len(entries) + 1,
        "previous": entries[-1].hash if entries else FIRST,
        "recorded": now(),
        "run": run,
        "run_sha256": run_sha256,
        "revision": revision,
    }
    entry = Entry(**facts, hash=_hash(facts))  # type: ignore[arg-type]
    beside = folder / f"{WORKING}ledger-{uuid.uuid4().hex[:12]}"
    try:
        with beside.open("xb") as file:
            file.writelines(known.line() for known in [*entries, entry])
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, folder / LEDGER)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return entry


def now() -> str:
    """The present in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _entry(line: bytes) -> Entry | None:
    try:
        facts = json.loads(line)
        entry = Entry(**facts)
        stated = facts.pop("hash")
        whole = entry.line() == line and _hash(facts) == stated and _is_well_formed(entry)
        return entry if whole else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _is_well_formed(entry: Entry) -> bool:
    # A run's name is joined to the folder: it must not lead out of it.
    texts = (entry.previous, entry.recorded, entry.run, entry.run_sha256, entry.revision)
    return (
        type(entry.number) is int
        and all(isinstance(text, str) for text in texts)
        and is_label(entry.run)
        and "/" not in entry.run
    )


def _canonical(facts: object) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def _hash(facts: object) -> str:
    return hashlib.sha256(_canonical(facts)).hexdigest()
