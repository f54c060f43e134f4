"""The kit's own assembler as a subject, under any rule table, and what is made wrong on purpose."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from fragmentlab import __version__
from fragmentlab.assembler import Limits, Result, RuleSet
from fragmentlab.assembler.rules import DEFAULT_RULES, SHIPPED
from fragmentlab.corpus.rules import recorded_name, table_sha256
from fragmentlab.corpus.streams import Stream
from fragmentlab.subjects.interface import Observation, RawCall

LISTED_FAULTS = 100
"""Faults that a run keeps of one stream; a hostile stream could hold millions."""


class AssemblerSubject:
    """This assembler under a rule table, diagnosing: its first fault is the one that ends an execution."""

    ordered = False

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._is_reference = SHIPPED[DEFAULT_RULES] == rules
        self.description: Mapping[str, Any] = {
            "kind": "assembler",
            "name": "fragmentlab.assembler",
            "version": __version__,
            "rules": recorded_name(rules),
            "rules_sha256": table_sha256(rules),
            "executable": rules.executable,
        }

    def observe(self, stream: Stream) -> Observation:
        started = time.perf_counter()
        result = self._result(stream, listing(stream.limits))
        seconds = time.perf_counter() - started
        reading = result if self._is_reference else None
        calls = raw_calls(result)
        return Observation(result.outcome, result.category, result.faults, calls, seconds, reading)

    def close(self) -> None:
        """Nothing runs."""

    def _result(self, stream: Stream, limits: Limits) -> Result:
        return stream.assemble(self._rules, diagnose=True, limits=limits)


class CounterfactualSubject(AssemblerSubject):
    """A counterfactual. It may carry state, so each stream is put to its ``assemble`` once and in order."""

    ordered = True

    def __init__(self, name: str, assemble: Callable[..., Result]) -> None:
        self._assemble, self._is_reference = assemble, False
        self.description = {
            "kind": "counterfactual",
            "name": "fragmentlab.assembler, made wrong on purpose",
            "version": __version__,
            "rules": name,
            "executable": False,
        }

    def _result(self, stream: Stream, limits: Limits) -> Result:
        conditions = {"tools": stream.tools, "framing": stream.framing, "end": stream.end}
        return self._assemble(stream.body, limits=limits, diagnose=True, **conditions)


def listing(limits: Limits) -> Limits:
    """Return a stream's limits, with no more faults listed than a run keeps and the usual timeline."""
    return dataclasses.replace(
        limits,
        diagnosed_faults=min(limits.diagnosed_faults, LISTED_FAULTS),
        timeline_rows=Limits().timeline_rows,
    )


def raw_calls(result: Result) -> tuple[RawCall, ...]:
    """A result's calls as (id, name, arguments), by index."""
    return tuple((call.id, call.name, call.arguments) for call in result.calls)
