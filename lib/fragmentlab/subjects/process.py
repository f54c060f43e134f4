"""One child process under limits: its own session, bounded in time, memory and output, and killed as a whole.

This keeps a broken subject from taking the run down with it; it is no sandbox against a hostile one.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN = "FRAGMENTLAB_SUBJECT"
"""Environment variable by which a process is found that left its parent's session."""
_READ = 1 << 16
_POLL_SECONDS = 0.02
_STDERR_TAIL = 4096
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
_STDERR_FACTOR = 64
_OUT_OF_MEMORY = (b"MemoryError", b"out of memory", b"OutOfMemory", b"bad_alloc", b"Cannot allocate memory")


@dataclass(frozen=True)
class Bounds:
    """What one stream may cost a subject: wall seconds, resident bytes of all its processes, bytes of
    output."""

    seconds: float = 10.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 4 << 20


class Ended(Exception):
    """The child gave no answer; ``category`` is one of FAILURES."""

    def __init__(self, category: str) -> None:
        super().__init__(category)
        self.category = category


class Child:
    """A started process. Raises OSError where it cannot start."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], bounds: Bounds) -> None:
        self._bounds = bounds
        self._token = uuid.uuid4().hex
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **environment, TOKEN: self._token},
            # A session of its own has no terminal to write to, and one signal reaches all of it.
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._status: int | None = None
        self._peak_bytes = 0
        self._stderr_tail = b""
        self._stderr_bytes = 0
        self._exit_fd = os.pidfd_open(self.pid) if sys.platform == "linux" else None
        self._limit_resources()
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)

    def answer(self, data: bytes, *, last: bool) -> bytes:
        """Send ``data`` and return the answer: all of the output up to the exit where it is the ``last``
        input, otherwise one line. Raises Ended."""
        deadline = time.monotonic() + self._bounds.seconds
        stdin, stdout, stderr = self._pipes
        unsent, output = memoryview(data), bytearray()
        next_look = time.monotonic() + _POLL_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(stdin, selectors.EVENT_WRITE)
            selector.register(stdout, selectors.EVENT_READ)
            if not stderr.closed:
                selector.register(stderr, selectors.EVENT_READ)
            if self._exit_fd is not None:
                selector.register(self._exit_fd, selectors.EVENT_READ)
            while True:
                # Exit is asked before reading: what an exited process wrote is then in the pipe already.
                exited = self._has_exited()
                ready = selector.select(0 if exited else _POLL_SECONDS)
                for key, _ in ready:
                    if key.fileobj is stdin:
                        unsent = self._send(selector, unsent, last)
                    elif key.fileobj is stdout:
                        self._receive(selector, output)
                    elif key.fileobj is stderr:
                        self._drain(selector)
                if len(output) > self._bounds.output_bytes:
                    raise Ended("subject.flood")
                if not last and not unsent and (end := output.find(b"\n")) >= 0:
                    if len(output) > end + 1:
                        raise Ended("subject.garbage")
                    return bytes(output)
                if exited and not any(key.fileobj is stdout for key, _ in ready):
                    return self._ended(bytes(output), last)
                now = time.monotonic()
                if now > deadline:
                    raise Ended("subject.timeout")
                if now >= next_look:
                    next_look = now + _POLL_SECONDS
                    self._look_at_memory()

    def kill(self) -> None:
        """End the child and everything that it started, and reap it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Before it is reaped: until then the number of its group cannot name anyone else's.
            if self._status is None:
                os.killpg(self.pid, signal.SIGKILL)
        self._reap()
        _kill_by_token(self._token)
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        if self._exit_fd is not None:
            os.close(self._exit_fd)
            self._exit_fd = None

    def _limit_resources(self) -> None:
        if sys.platform != "linux":
            return
        memory = 2 * self._bounds.memory_bytes
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(self.pid, resource.RLIMIT_CORE, (0, 0))
            # Address space is no measure (several runtimes reserve far more than they use); data segments
            # are.
            resource.prlimit(self.pid, resource.RLIMIT_DATA, (memory, memory))

    def _has_exited(self) -> bool:
        if self._status is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _send(self, selector: selectors.BaseSelector, unsent: memoryview, last: bool) -> memoryview:
        stdin = self._pipes[0]
        try:
            unsent = unsent[os.write(stdin.fileno(), unsent[:_READ]) :] if unsent else unsent
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            # A subject may refuse before it has read everything.
            unsent = unsent[:0]
        if not unsent:
            selector.unregister(stdin)
            if last:
                stdin.close()
        return unsent

    def _receive(self, selector: selectors.BaseSelector, output: bytearray) -> None:
        stdout = self._pipes[1]
        part = os.read(stdout.fileno(), _READ)
        if part:
            output += part
        else:
            selector.unregister(stdout)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        stderr = self._pipes[2]
        part = os.read(stderr.fileno(), _READ)
        if not part:
            selector.unregister(stderr)
            stderr.close()
            return
        self._stderr_bytes += len(part)
        self._stderr_tail = (self._stderr_tail + part)[-_STDERR_TAIL:]
        if self._stderr_bytes > _STDERR_FACTOR * self._bounds.output_bytes:
            raise Ended("subject.flood")

    def _ended(self, output: bytes, last: bool) -> bytes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._reap()
        if self._peak_bytes > self._bounds.memory_bytes:
            raise Ended("subject.memory")
        if self._status in (0, 1) and output and last:
            return output
        # What a runtime says of its memory is looked at for this one fact and dropped.
        if any(phrase in self._stderr_tail for phrase in _OUT_OF_MEMORY):
            raise Ended("subject.memory")
        raise Ended("subject.garbage" if self._status in (0, 1) and last else "subject.crashed")

    def _reap(self) -> None:
        if self._status is not None:
            return
        _, status, usage = os.wait4(self.pid, 0)
        self._status = os.waitstatus_to_exitcode(status)
        self._process.returncode = self._status
        # Between fork and exec a child counts as large as its parent: what does not pass that is no fact of
        # its own.
        if usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
            self._peak_bytes = max(self._peak_bytes, usage.ru_maxrss * _MAXRSS_UNIT)

    def _look_at_memory(self) -> None:
        used = sum(map(_resident_bytes, _family(self.pid)))
        self._peak_bytes = max(self._peak_bytes, used)
        if used > self._bounds.memory_bytes:
            raise Ended("subject.memory")


def _family(pid: int) -> list[int]:
    """The process and its descendants, where the system tells (Linux)."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < 1000:
        current = waiting.pop()
        found.append(current)
        with contextlib.suppress(OSError, ValueError):
            waiting += map(int, Path(f"/proc/{current}/task/{current}/children").read_text().split())
    return found


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _kill_by_token(token: str) -> None:
    """Kill what left the session and kept its environment, until none is found."""
    wanted = f"{TOKEN}={token}".encode()
    for _ in range(5):
        found = [pid for pid in _processes() if _environment_holds(pid, wanted)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _environment_holds(pid: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return wanted in file.read()
    except OSError:
        return False
