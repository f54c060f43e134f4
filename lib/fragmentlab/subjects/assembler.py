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

    @property
    def description(self) -> Mapping[str, Any]:
        return {
            "kind": "assembler",
            "name": "fragmentlab.assembler",
            "version": __version__,
            "rules": recorded_name(self._rules),
            "rules_sha256": table_sha256(self._rules),
            "executable": self._rules.executable,
        }

    def observe(self, stream: Stream) -> Observation:
        started = time.perf_counter()
        result = stream.assemble(self._rules, diagnose=True, limits=listing(stream.limits))
        return _observation(result, started, result if self._is_reference else None)

    def close(self) -> None:
        """Nothing runs."""


class CounterfactualSubject:
    """A counterfactual. It may carry state, so each stream is put to its ``assemble`` once and in order."""

    ordered = True

    def __init__(self, name: str, assemble: Callable[..., Result]) -> None:
        self._name, self._assemble = name, assemble

    @property
    def description(self) -> Mapping[str, Any]:
        return {
            "kind": "counterfactual",
            "name": "fragmentlab.assembler, made wrong on purpose",
            "version": __version__,
            "rules": self._name,
            "executable": False,
        }

    def observe(self, stream: Stream) -> Observation:
        started = time.perf_counter()
        result = self._assemble(
            stream.body,
            tools=stream.tools,
            limits=listing(stream.limits),
            framing=stream.framing,
            end=stream.end,
            diagnose=True,
        )
        return _observation(result, started)

    def close(self) -> None:
        """Nothing runs."""


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


def _observation(result: Result, started: float, reading: Result | None = None) -> Observation:
    seconds = time.perf_counter() - started
    return Observation(result.outcome, result.category, result.faults, raw_calls(result), seconds, reading)
