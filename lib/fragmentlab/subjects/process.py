"""One child process under limits: a session of its own, bounded in time, memory and output, ended as a whole.

This keeps a broken subject from taking the run down with it; it is no sandbox against a hostile one.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import psutil

from fragmentlab.subjects.guard import TOKEN, kill_carriers

_READ = 1 << 16
_POLL_SECONDS = 0.02
_LAST_POLL_SECONDS = 0.001
_LOOK_SECONDS = 0.05
_STDERR_TAIL = 4096
_STDERR_FACTOR = 64
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
_OUT_OF_MEMORY = (b"MemoryError", b"out of memory", b"OutOfMemory", b"bad_alloc", b"Cannot allocate memory")


@dataclass(frozen=True)
class Bounds:
    """What one stream may cost: wall seconds, resident bytes of all processes, bytes of output."""

    seconds: float = 10.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 4 << 20


class Ended(Exception):
    """The child gave no answer; ``category`` is one of FAILURES."""

    def __init__(self, category: str) -> None:
        super().__init__(category)
        self.category = category


class Child:
    """A started process, which carries the token of a guard. Raises OSError where it cannot start."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], bounds: Bounds, token: str
    ) -> None:
        self._bounds, self._token = bounds, token
        self._older = frozenset(psutil.pids())
        self._popen = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **environment, TOKEN: token},
            # A session of its own has no terminal to write to, and one signal reaches all of it.
            start_new_session=True,
        )
        self._process = psutil.Process(self._popen.pid)
        self._peak_bytes = 0
        self._stderr_tail, self._stderr_bytes = b"", 0
        self._limit_resources()
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._stdin, self._stdout, self._stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        os.set_blocking(self._stdin.fileno(), False)

    def answer(self, data: bytes, *, last: bool) -> bytes:
        """Send ``data`` and return the answer; raise Ended where there is none.

        It is one line, or all of the output up to the exit where this is the ``last`` input.
        """
        unsent, output = memoryview(data), bytearray()
        started = time.monotonic()
        deadline, next_look = started + self._bounds.seconds, started + _LOOK_SECONDS
        while True:
            if last and not unsent:
                self._stdin.close()
            # Exit is asked before reading: what an exited process wrote is then in the pipe already.
            exited = self._has_exited()
            wait = 0 if exited else _LAST_POLL_SECONDS if self._stdout.closed else _POLL_SECONDS
            pipes = [pipe for pipe in (self._stdout, self._stderr) if not pipe.closed]
            ready, writable, _ = select.select(pipes, [self._stdin] if unsent else [], [], wait)
            if writable:
                unsent = self._send(unsent)
            if self._stdout in ready:
                output += _receive(self._stdout)
            if self._stderr in ready:
                self._note(_receive(self._stderr))
            if len(output) > self._bounds.output_bytes:
                raise Ended("subject.flood")
            if not last and not unsent and (end := output.find(b"\n")) >= 0:
                if len(output) > end + 1:
                    raise Ended("subject.garbage")
                return bytes(output)
            if exited and self._stdout not in ready:
                return self._ended(bytes(output), last)
            now = time.monotonic()
            if now > deadline:
                raise Ended("subject.timeout")
            if now >= next_look:
                next_look = now + _LOOK_SECONDS
                self._look_at_memory()

    def kill(self) -> None:
        """End the child and everything that it started, and reap it."""
        self._reap()
        kill_carriers(self._token, self._older)
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()

    def _limit_resources(self) -> None:
        if sys.platform != "linux":
            return
        memory = 2 * self._bounds.memory_bytes
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(self._popen.pid, resource.RLIMIT_CORE, (0, 0))
            # Several runtimes reserve far more address space than they use: data segments are the measure.
            resource.prlimit(self._popen.pid, resource.RLIMIT_DATA, (memory, memory))

    def _has_exited(self) -> bool:
        """Whether it ended, without reaping it: until then its number cannot become anyone else's."""
        try:
            return self._popen.returncode is not None or self._process.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return True

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._stdin.fileno(), unsent[:_READ]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:  # a subject may refuse before it has read everything
            return unsent[:0]

    def _note(self, part: bytes) -> None:
        self._stderr_bytes += len(part)
        self._stderr_tail = (self._stderr_tail + part)[-_STDERR_TAIL:]
        if self._stderr_bytes > _STDERR_FACTOR * self._bounds.output_bytes:
            raise Ended("subject.flood")

    def _ended(self, output: bytes, last: bool) -> bytes:
        self._reap()
        was_orderly = last and self._popen.returncode in (0, 1)
        if self._peak_bytes > self._bounds.memory_bytes:
            raise Ended("subject.memory")
        if was_orderly and output:
            return output
        # What a runtime says of its memory is looked at for this one fact and dropped.
        if any(phrase in self._stderr_tail for phrase in _OUT_OF_MEMORY):
            raise Ended("subject.memory")
        raise Ended("subject.garbage" if was_orderly else "subject.crashed")

    def _reap(self) -> None:
        """Kill its session and take its exit status."""
        if self._popen.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._popen.pid, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        # Between fork and exec a child counts as large as its parent: what does not pass that is no fact of
        # its own.
        if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
            self._peak_bytes = max(self._peak_bytes, usage.ru_maxrss * _MAXRSS_UNIT)

    def _look_at_memory(self) -> None:
        used = 0
        with contextlib.suppress(psutil.Error):
            for process in (self._process, *self._process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    used += process.memory_info().rss
        self._peak_bytes = max(self._peak_bytes, used)
        if used > self._bounds.memory_bytes:
            raise Ended("subject.memory")


def _receive(pipe: IO[bytes]) -> bytes:
    part = os.read(pipe.fileno(), _READ)
    if not part:
        pipe.close()
    return part
