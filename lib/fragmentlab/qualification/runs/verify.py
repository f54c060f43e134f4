"""``runs verify``: whether a runs folder is what its ledger recorded, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragmentlab.disclosure import PRIVATE_KEY, for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING
from fragmentlab.qualification.runs.ledger import LEDGER, Entry, scan_ledger
from fragmentlab.qualification.runs.opened import RUN_FILE, locate, parse_run_file
from fragmentlab.qualification.runs.parts import file_sha256

_BESIDE = frozenset({LEDGER, "expectations.json", PRIVATE_KEY})


@dataclass(frozen=True)
class Verification:
    """What was found: ``problems`` is empty where everything is as recorded; ``head`` is the last entry's
    hash."""

    entries: list[Entry]
    problems: list[str]
    notes: list[str]

    @property
    def head(self) -> str | None:
        return self.entries[-1].hash if self.entries else None


def verify_runs(runs: Path, head: str | None = None) -> Verification:
    """Check the chain, every run's folder and every file in it, and that nothing else is there.

    ``head`` is a hash that the ledger must end with: only it can show that the last runs were dropped
    together with their entries. Raises InputError where there is no folder.
    """
    try:
        # Names first: a run that another process finishes meanwhile is then in the ledger.
        present = sorted(path.name for path in runs.iterdir())
        entries, problems = scan_ledger(runs)
    except OSError as error:
        raise InputError(f"{for_terminal(str(runs))} cannot be read: {error.strerror}") from None
    notes: list[str] = []
    for entry in entries:
        folder = locate(runs, entry)
        if folder is None:
            problems.append(f"run {_shown(entry.run)} was dropped: entry {entry.number} has no folder")
            continue
        if folder.name != entry.run:
            notes.append(
                f"run {_shown(entry.run)} is recorded and whole, but still has its working name "
                f"{_shown(folder.name)}; the next `fragmentlab qualify` renames it"
            )
        problems += _folder_problems(folder, entry)
    recorded = {entry.run for entry in entries}
    problems += [
        f"{_shown(name)} was added: the ledger does not have it"
        for name in present
        if name not in recorded | _BESIDE and not name.startswith(WORKING)
    ]
    problems += _head_problems(entries, head)
    return Verification(entries, problems, notes)


def _head_problems(entries: list[Entry], head: str | None) -> Iterator[str]:
    if head is None or (entries and entries[-1].hash == head):
        return
    position = next((n for n, entry in enumerate(entries) if entry.hash == head), None)
    if position is None:
        yield "the ledger does not contain the given head: it was rewritten, or entries were dropped"
    for entry in entries[position + 1 :] if position is not None else []:
        yield f"run {_shown(entry.run)} was added after the given head"


def _folder_problems(folder: Path, entry: Entry) -> Iterator[str]:
    shown = f"run {_shown(entry.run)}"
    if folder.is_symlink():
        yield f"{shown} is a link, not the folder that was recorded"
        return
    try:
        # A link is no part of what was recorded, whatever it leads to.
        data = b"" if (folder / RUN_FILE).is_symlink() else (folder / RUN_FILE).read_bytes()
    except OSError:
        data = b""
    if not data:
        yield f"{shown}: {RUN_FILE} is missing"
        return
    try:
        content = parse_run_file(data, _shown(entry.run))
    except InputError:
        yield f"{shown}: {RUN_FILE} was altered"
        return
    parts = list(_part_problems(folder, content["footer"]["parts"], shown))
    if hashlib.sha256(data).hexdigest() != entry.run_sha256:
        recomputed = (
            "" if parts else ": its footer was recomputed, and fits parts that are not those recorded"
        )
        yield f"{shown}: {RUN_FILE} was altered{recomputed}"
    yield from parts
    known = {RUN_FILE, *(part["file"] for part in content["footer"]["parts"])}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            yield f"{shown}: {_shown(path.name)} was added"


def _part_problems(folder: Path, parts: list[dict[str, Any]], shown: str) -> Iterator[str]:
    for part in parts:
        path = folder / part["file"]
        if path.is_symlink() or not path.is_file():
            yield f"{shown}: {part['file']} is missing"
        elif (size := path.stat().st_size) != part["bytes"]:
            word = "bytes are missing" if size < part["bytes"] else "bytes were added"
            yield f"{shown}: {part['file']} was altered: {abs(size - part['bytes'])} {word}"
        elif file_sha256(path) != part["sha256"]:
            yield f"{shown}: {part['file']} was altered"


def _shown(name: str) -> str:
    return for_terminal(name)
