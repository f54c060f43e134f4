"""The answers that pass a relay: each kept in a file, judged as it comes, and told in one line."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx

from fragmentlab.assembler import Assembler
from fragmentlab.assembler.assembler import End
from fragmentlab.runtime.relay import Listener
from fragmentlab.wire.recorder import Recording, is_streamed_chat, tool_names


class Recordings:
    """Recordings in a folder: ``listen`` is what a Relay is given, ``tell`` takes one line per answer."""

    def __init__(self, folder: str | Path, tell: Callable[[str], None]) -> None:
        self.folder = Path(folder)
        self._tell, self._lock = tell, threading.Lock()
        self._answers = 0
        self._outcomes: Counter[str] = Counter()

    def listen(self, asked: bytes, response: httpx.Response | None) -> Listener:
        """Return what keeps this answer, or what only counts it where it is no streamed Chat Completions."""
        if response is not None:
            request, headers = response.request, response.headers
            path = request.extensions["target"].decode("latin-1").partition("?")[0]
            if is_streamed_chat(request.method, path, response.status_code, headers):
                return _Recorded(self, tool_names(asked), headers.get("content-encoding", ""))
        return _PassedOn(self, response)

    def summary(self) -> str:
        """Return one line on all answers so far."""
        counts = [f"{count} {outcome}" for outcome, count in self._outcomes.most_common()]
        total = f"{self._answers} answers, {self._outcomes.total()} recorded"
        return f"{total}: {', '.join(counts)}" if counts else total

    def tell(self, line: str, outcome: str | None = None) -> None:
        """Number and tell one line on an answer, ``outcome`` where it was recorded."""
        with self._lock:
            self._answers += 1
            if outcome:
                self._outcomes[outcome] += 1
            self._tell(f"{self._answers}  {line}")


class _Recorded:
    """A streamed answer, kept and judged."""

    def __init__(self, recordings: Recordings, tools: list[str] | None, content_encoding: str) -> None:
        self._recordings = recordings
        self._assembler = Assembler(tools=tools, diagnose=True)
        self._recording = Recording(recordings.folder, tools, content_encoding, self._assembler.feed)

    def take(self, read: bytes) -> None:
        self._recording.take(read)

    def finish(self, end: End, note: str) -> None:
        self._recording.finish(end)
        result = self._assembler.finish(end)
        path, problem = self._recording.path, self._recording.problem
        notes = "".join(f"; {text}" for text in (note, problem) if text)
        if path is None:
            self._recordings.tell(("not kept" if problem else "nothing came") + notes)
            return
        outcome = f"{result.outcome} {result.category}" if result.category else result.outcome
        nulls = result.counts["null_continuations"]
        self._recordings.tell(f"{outcome}  nulls {nulls}  {path.name}{notes}", outcome)


class _PassedOn:
    """An answer of which only the status is told, or none at all."""

    def __init__(self, recordings: Recordings, response: httpx.Response | None) -> None:
        self._recordings = recordings
        self._what = "no answer"
        if response is not None:
            self._what = f"status {response.status_code}, passed on: not a streamed Chat Completions answer"

    def take(self, read: bytes) -> None:
        pass

    def finish(self, end: End, note: str) -> None:
        self._recordings.tell(self._what + (f"; {note}" if note else ""))
