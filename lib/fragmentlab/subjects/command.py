"""Anyone's gateway as a subject: ``--exec CMD``, one process per stream or one for all of them.

Source: docs/design.md, section 8.

One process per stream gets the bytes of the stream on standard input, then its end; it answers on standard
output and exits with status 0 or 1. How the transport ended, the framing, the known tools and the limits
stand in the environment: ``FRAGMENTLAB_END``, ``FRAGMENTLAB_FRAMING``, and as JSON ``FRAGMENTLAB_TOOLS`` and
``FRAGMENTLAB_LIMITS``.

A long-lived process gets one line of JSON for each stream, ``{"length": BYTES, "end": ..., "framing": ...,
"tools": ..., "limits": ...}``, and that many bytes; it answers each on one line.
"""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fragmentlab.assembler import Limits
from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.files import reason
from fragmentlab.subjects.answer import failed, read_answer
from fragmentlab.subjects.guard import Guard
from fragmentlab.subjects.interface import Observation
from fragmentlab.subjects.process import Bounds, Child, Ended

_MAX_VARIABLE_BYTES = 100_000


def parse_command(command: str) -> tuple[str, ...]:
    """Split a command line as a shell would; raise InputError where its program cannot be started."""
    try:
        argv = shlex.split(command)
    except ValueError:
        raise InputError("--exec: a quotation in the command is not closed") from None
    if not argv:
        raise InputError("--exec needs a command")
    if shutil.which(argv[0]) is None:
        raise InputError("--exec: the command's program is not found or not executable; give its path")
    return tuple(argv)


class CommandSubject:
    """A command; its output is compared and dropped. ``categories`` are those of its own that it may name."""

    ordered = False

    def __init__(
        self,
        argv: Sequence[str],
        *,
        long_lived: bool = False,
        bounds: Bounds | None = None,
        categories: frozenset[str] = frozenset(),
    ) -> None:
        self._argv, self._long_lived = tuple(argv), long_lived
        self._bounds, self._categories = bounds or Bounds(), categories
        self._guard: Guard | None = None
        self._child: Child | None = None

        self.description: Mapping[str, Any] = {
            "kind": "command",
            "name": "a command",
            "mode": "long-lived" if long_lived else "one process a stream",
            "limits": asdict(self._bounds),
        }

    def observe(self, stream: Stream) -> Observation:
        started = time.perf_counter()
        context, data, stays = _context(stream), stream.body, False
        if self._long_lived:
            data = json.dumps({"length": len(data), **context}).encode() + b"\n" + data
        try:
            if self._child is None:
                self._child = self._start({} if self._long_lived else _environment(context))
            output = self._child.answer(data, last=not self._long_lived)
            stays = self._long_lived
        except Ended as ended:
            return failed(ended.category, time.perf_counter() - started)
        finally:
            # What a failed one would say next could belong to this stream; the next gets a new process.
            if not stays:
                self._end_child()
        return read_answer(output, time.perf_counter() - started, self._categories)

    def close(self) -> None:
        """End what still runs."""
        self._end_child()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.close()

    def _start(self, environment: Mapping[str, str]) -> Child:
        try:
            self._guard = self._guard or Guard()
            return Child(self._argv, environment, self._bounds, self._guard.path)
        except OSError as error:
            raise InputError(f"--exec: the command cannot be started: {reason(error)}") from None

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()


def _context(stream: Stream) -> dict[str, Any]:
    defaults = asdict(Limits())
    changed = {name: value for name, value in asdict(stream.limits).items() if value != defaults[name]}
    tools = None if stream.tools is None else list(stream.tools)
    return {"end": stream.end, "framing": stream.framing, "tools": tools, "limits": changed}


def _environment(context: Mapping[str, Any]) -> dict[str, str]:
    variables = {
        "FRAGMENTLAB_END": context["end"],
        "FRAGMENTLAB_FRAMING": context["framing"],
        "FRAGMENTLAB_LIMITS": json.dumps(context["limits"]),
    }
    tools = json.dumps(context["tools"])
    # The system bounds one variable; without it the subject sees unknown tools.
    if len(tools) < _MAX_VARIABLE_BYTES:
        variables["FRAGMENTLAB_TOOLS"] = tools
    return variables
