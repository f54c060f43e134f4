"""``runs verify``: whether a runs folder is what its ledger recorded, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fragmentlab.disclosure import PRIVATE_KEY
from fragmentlab.errors import InputError
from fragmentlab.files import WORKING, reason
from fragmentlab.qualification.runs.ledger import LEDGER, Entry, scan_ledger
from fragmentlab.qualification.runs.run_files import RUN_FILE, Part, file_sha256, locate, parse_run_file

_BESIDE = frozenset({LEDGER, PRIVATE_KEY, "expectations.json"})


@dataclass(frozen=True)
class Verification:
    """What was found: ``problems`` is empty where all is as recorded; ``head`` is the last entry's hash."""

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
        raise InputError(f"{runs} cannot be read: {reason(error)}") from None
    if not entries and not problems:
        problems.append(f"{LEDGER} is missing or empty: no run is recorded here, so none can be verified")
    notes = {
        name: f"{name} is being written, or was left by an interrupted run and is removed by the next one"
        for name in present
        if name.startswith(WORKING)
    }
    for entry in entries:
        folder = locate(runs, entry)
        if folder is None:
            problems.append(f"run {entry.run} was dropped: entry {entry.number} has no folder")
            continue
        problems += _folder_problems(folder, entry)
        if folder.name != entry.run:
            notes[folder.name] = (
                f"run {entry.run} is recorded and whole, but still has its working name {folder.name}; "
                "the next `fragmentlab qualify` renames it"
            )
    known = {entry.run for entry in entries} | _BESIDE | notes.keys()
    problems += [f"{name} was added: the ledger does not have it" for name in present if name not in known]
    hashes = [entry.hash for entry in entries]
    if head in hashes:
        after = entries[hashes.index(head) + 1 :]
        problems += [f"run {entry.run} was added after the given head" for entry in after]
    elif head is not None:
        problems.append(
            "the ledger does not contain the given head: it was rewritten, or entries were dropped"
        )
    return Verification(entries, problems, list(notes.values()))


def _folder_problems(folder: Path, entry: Entry) -> Iterator[str]:
    run = f"run {entry.run}"
    path = folder / RUN_FILE
    if folder.is_symlink():
        yield f"{run} is a link, not the folder that was recorded"
        return
    # A link is no part of what was recorded, whatever it leads to.
    if path.is_symlink() or not path.is_file():
        yield f"{run}: {RUN_FILE} is missing"
        return
    data = path.read_bytes()
    try:
        _, footer = parse_run_file(data, entry.run)
    except InputError:
        yield f"{run}: {RUN_FILE} was altered"
        return
    parts = list(filter(None, (_part_problem(folder, part) for part in footer.parts)))
    if hashlib.sha256(data).hexdigest() != entry.run_sha256:
        recomputed = "" if parts else ": its footer was recomputed to fit parts other than those recorded"
        yield f"{run}: {RUN_FILE} was altered{recomputed}"
    yield from (f"{run}: {problem}" for problem in parts)
    known = {RUN_FILE, *(part.file for part in footer.parts)}
    yield from (
        f"{run}: {name} was added" for name in sorted(p.name for p in folder.iterdir()) if name not in known
    )


def _part_problem(folder: Path, part: Part) -> str | None:
    path = folder / part.file
    if path.is_symlink() or not path.is_file():
        return f"{part.file} is missing"
    if (size := path.stat().st_size) != part.bytes:
        word = "bytes are missing" if size < part.bytes else "bytes were added"
        return f"{part.file} was altered: {abs(size - part.bytes)} {word}"
    return None if file_sha256(path) == part.sha256 else f"{part.file} was altered"
