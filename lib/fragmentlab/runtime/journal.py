"""The effect journal: what was executed, in order, on disk before and after each effect.

One JSON object a line, appended and synchronised: ``start`` (a run opens the journal), ``read`` (a tool
that changes nothing), ``intent`` then ``done`` (an effect), ``skipped`` (an effect proposed again that was
already done). A line holds the tool, turn and call ordinals, a closed outcome and SHA-256 digests; never an
argument, ID or result.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError

SCHEMA = "fragmentlab-journal-v1"
EVENTS = ("start", "read", "intent", "done", "skipped")
_OUTCOME_OK = "ok"


@dataclass(frozen=True)
class Entry:
    """One line; ``of`` is the number of the intent that a ``done`` or ``skipped`` belongs to."""

    n: int
    event: str
    run: int
    tool: str | None = None
    turn: int | None = None
    call: int | None = None
    arguments_sha256: str | None = None
    outcome: str | None = None
    result_sha256: str | None = None
    of: int | None = None
    recovered: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


class Journal:
    """An open journal, held by one run at a time. Use as a context manager.

    Raises InputError where another run holds it, where it cannot be written or where a
    line before the last is damaged.
    """

    def __init__(self, path: Path) -> None:
        shown = for_terminal(path.name)
        try:
            self._file = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
            )
        except OSError:
            raise InputError(f"the journal {shown} cannot be opened") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.entries = self._read(path)
        except OSError:
            os.close(self._file)
            raise InputError(f"the journal {shown} is held by another run; wait for it to end") from None
        except InputError:
            os.close(self._file)
            raise
        _synchronise(path.parent)
        self._run = sum(entry.event == "start" for entry in self.entries) + 1
        self._append(event="start")

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def read(self, tool: str, turn: int, call: int, digest: str, outcome: str, result: str) -> None:
        """Note a tool that changes nothing."""
        self._append(
            event="read",
            tool=tool,
            turn=turn,
            call=call,
            arguments_sha256=digest,
            outcome=outcome,
            result_sha256=result,
        )

    def intend(self, tool: str, turn: int, call: int, digest: str) -> int:
        """Note that an effect is about to happen; return its number."""
        return self._append(event="intent", tool=tool, turn=turn, call=call, arguments_sha256=digest).n

    def did(self, intent: int, outcome: str, result: str, *, recovered: bool = False) -> None:
        """Note how an effect ended; ``recovered`` where a resumed run found it already there."""
        self._append(
            event="done", of=intent, outcome=outcome, result_sha256=result, recovered=recovered or None
        )

    def skip(self, intent: int, tool: str, turn: int, call: int) -> None:
        """Note that an effect was proposed again and not repeated."""
        self._append(event="skipped", of=intent, tool=tool, turn=turn, call=call)

    def find_done(self, digest: str) -> int | None:
        """The intent of this digest that is known to have succeeded."""
        done = {e.of for e in self.entries if e.event == "done" and e.outcome == _OUTCOME_OK}
        return next((e.n for e in self._intents(digest) if e.n in done), None)

    def find_open(self, digest: str) -> int | None:
        """The intent of this digest whose end is not known: the run was killed in between."""
        ended = {e.of for e in self.entries if e.event == "done"}
        return next((e.n for e in self._intents(digest) if e.n not in ended), None)

    def _intents(self, digest: str) -> list[Entry]:
        return [e for e in self.entries if e.event == "intent" and e.arguments_sha256 == digest]

    def _append(self, event: str, **facts: Any) -> Entry:
        entry = Entry(n=len(self.entries) + 1, event=event, run=self._run, **facts)
        line = json.dumps(entry.to_json(), separators=(",", ":")).encode() + b"\n"
        try:
            if os.write(self._file, line) != len(line):
                raise OSError
            os.fsync(self._file)
        except OSError:
            raise InputError("the journal cannot be written; nothing more is executed without it") from None
        self.entries.append(entry)
        return entry

    def _read(self, path: Path) -> list[Entry]:
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            # A line half written when the run was killed: its effect had not begun, or its intent is known.
            os.ftruncate(self._file, whole)
        return [entry_of(line, number) for number, line in enumerate(data[:whole].splitlines(), 1)]


def read_journal(path: Path) -> list[Entry]:
    """The entries of a journal that no run holds, a torn last line left out."""
    data = path.read_bytes()
    return [
        entry_of(line, number) for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1)
    ]


def entry_of(line: bytes, number: int) -> Entry:
    """One line as an entry; InputError where it is not one."""
    try:
        entry = Entry(**json.loads(line))
        if entry.n != number or entry.event not in EVENTS:
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise InputError(
            f"the journal is damaged at line {number}; keep it and start in a new folder"
        ) from None
    return entry


def _synchronise(folder: Path) -> None:
    """Make the journal's own name durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
