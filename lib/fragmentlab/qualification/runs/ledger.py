"""The ledger of a runs folder: one line per run, each holding the hash of the line before it.

It only ever grows. A new line is written into a copy beside it that is renamed over it, so that no kill and
no full disk can leave half a line; the folder itself is the lock between writers.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict, replace

from fragmentlab.errors import InputError
from fragmentlab.files import open_file, reason, write_whole
from fragmentlab.formats import SHA256, StrictStruct, canonical, decode

LEDGER = "ledger.jsonl"
FIRST = "0" * 64
"""What the first entry names as the hash before it."""


class Entry(StrictStruct, frozen=True):
    """One line of a ledger. Its hash covers its other fields, as compact JSON with sorted keys."""

    number: Annotated[int, Meta(ge=1, description="Counts from 1.")]
    previous: Annotated[str, SHA256]
    recorded: Annotated[str, Meta(description="When, in UTC.")]
    # A run's name is joined to the folder: it must not lead out of it.
    run: Annotated[
        str,
        Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,119}(?![\s\S])", description="The name of its folder."),
    ]
    run_sha256: Annotated[str, SHA256]
    revision: str
    hash: Annotated[str, SHA256]

    def line(self) -> bytes:
        """The entry as it stands in the file."""
        return canonical(asdict(self)).encode() + b"\n"

    def hashed(self) -> Entry:
        """The same entry with the hash that it must have."""
        facts = asdict(self)
        del facts["hash"]
        return replace(self, hash=hashlib.sha256(canonical(facts).encode()).hexdigest())


def scan_ledger(folder: Path) -> tuple[list[Entry], list[str]]:
    """Return the entries up to the first broken line, and what is wrong, if anything."""
    entries: list[Entry] = []
    if not (folder / LEDGER).exists():
        return entries, []
    with open_file(folder / LEDGER) as file:
        lines = file.read().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            entry = decode(line, Entry, LEDGER)
        except InputError:
            entry = None
        if entry is None or entry.hashed() != entry or entry.line() != line:
            return entries, [f"{LEDGER}, line {number} was altered: it is not the line that was written"]
        if (entry.number, entry.previous) != (number, _last(entries)):
            return entries, [
                f"{LEDGER}, line {number} does not follow the line before it: a line was dropped or added"
            ]
        entries.append(entry)
    return entries, []


def read_ledger(folder: Path) -> list[Entry]:
    """Return all entries, none where there is no ledger; raise InputError where it is broken."""
    try:
        entries, problems = scan_ledger(folder)
    except OSError as error:
        raise InputError(f"{folder / LEDGER} cannot be read: {reason(error)}") from None
    if problems:
        raise InputError(f"{folder}: {problems[0]}; see `fragmentlab runs verify`")
    return entries


def append_entry(folder: Path, run: str, run_sha256: str, revision: str) -> None:
    """Add a run under the lock, which the caller holds.

    Raises InputError where it cannot be written; the ledger is then as it was.
    """
    entries = read_ledger(folder)
    entry = Entry(len(entries) + 1, _last(entries), now(), run, run_sha256, revision, hash="").hashed()
    write_whole(folder / LEDGER, b"".join(known.line() for known in [*entries, entry]))


def now() -> str:
    """The present in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _last(entries: list[Entry]) -> str:
    return entries[-1].hash if entries else FIRST
