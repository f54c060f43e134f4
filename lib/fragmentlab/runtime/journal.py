"""The effect journal: what was executed, in order, on disk before and after each effect.

One JSON object a line, appended and synchronised: ``start`` (a run opens the journal), ``read`` (a tool
that changes nothing), ``intent`` then ``done`` (an effect), ``skipped`` (an effect proposed again that was
already done). A line holds the tool, turn and call ordinals, a closed outcome and SHA-256 digests; never an
argument, ID or result.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import msgspec

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import sync_folder

SCHEMA = "fragmentlab-journal-v1"


class JournalLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line; ``of`` is the number of the intent that a ``done`` or ``skipped`` belongs to."""

    n: int
    event: Literal["start", "read", "intent", "done", "skipped"]
    run: int
    tool: str | None = None
    turn: int | None = None
    call: int | None = None
    arguments_sha256: str | None = None
    outcome: str | None = None
    result_sha256: str | None = None
    of: int | None = None
    recovered: bool | None = None


class EffectJournal:
    """An open journal, held by one run at a time. Use as a context manager.

    Raises InputError where another run holds it, where it cannot be written or where a line is damaged.
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
            self.lines = self._read(path)
        except OSError:
            os.close(self._file)
            raise InputError(f"the journal {shown} is held by another run; wait for it to end") from None
        except InputError:
            os.close(self._file)
            raise
        sync_folder(path.parent)
        self._run = sum(line.event == "start" for line in self.lines) + 1
        self._append(event="start")

    def __enter__(self) -> EffectJournal:
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
        done = {line.of for line in self.lines if line.event == "done" and line.outcome == "ok"}
        return next((line.n for line in self._intents(digest) if line.n in done), None)

    def find_open(self, digest: str) -> int | None:
        """The intent of this digest whose end is not known: the run was killed in between."""
        ended = {line.of for line in self.lines if line.event == "done"}
        return next((line.n for line in self._intents(digest) if line.n not in ended), None)

    def _intents(self, digest: str) -> list[JournalLine]:
        return [line for line in self.lines if line.event == "intent" and line.arguments_sha256 == digest]

    def _append(self, **facts: Any) -> JournalLine:
        line = JournalLine(n=len(self.lines) + 1, run=self._run, **facts)
        data = msgspec.json.encode(line) + b"\n"
        try:
            if os.write(self._file, data) != len(data):
                raise OSError
            os.fsync(self._file)
        except OSError:
            raise InputError("the journal cannot be written; nothing more is executed without it") from None
        self.lines.append(line)
        return line

    def _read(self, path: Path) -> list[JournalLine]:
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            # A line half written when the run was killed: its effect had not begun, or its intent is known.
            os.ftruncate(self._file, whole)
        return [line_of(line, number) for number, line in enumerate(data[:whole].splitlines(), 1)]


def line_of(text: bytes, number: int) -> JournalLine:
    """One line of a journal; InputError where it is not one."""
    try:
        line = msgspec.json.decode(text, type=JournalLine)
    except (ValueError, RecursionError):
        line = None
    if line is None or line.n != number:
        raise InputError(f"the journal is damaged at line {number}; keep it and start in a new folder")
    return line
