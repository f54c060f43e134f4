"""The interface that every subject meets: a ``Stream`` in, an ``Observation`` out.

Source: docs/design.md, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fragmentlab.assembler import Fault, Result
from fragmentlab.corpus.streams import Stream

FAILED = "failed"
"""The outcome of a stream for which the subject gave none; the category then says why."""
FAILURES: Mapping[str, str] = {
    "subject.timeout": "the subject gave no answer within its time limit and was killed",
    "subject.memory": "the subject passed its memory limit and was killed",
    "subject.crashed": "the subject ended by a signal, by a status other than 0 and 1, or before its answer",
    "subject.garbage": "the subject's output is not the JSON object that was asked for",
    "subject.flood": "the subject wrote more than its output limit and was killed",
}
"""Why a subject has no outcome -> what happened. Nothing that it printed is kept."""
UNLISTED = "subject.unlisted_category"
"""Stands for a rejection whose category is neither one of the kit's nor declared: foreign text is never
stored."""
UNNAMED = "subject.no_category"
"""Stands for a rejection without a category."""

RawCall = tuple[str, str, str]
"""(id, name, arguments): lives in memory only."""


@dataclass(frozen=True, repr=False)
class Observation:
    """What a subject made of one stream. ``calls`` are raw and must not outlive the comparison.

    ``outcome`` is ``accepted``, ``rejected``, ``no_calls`` or ``failed``; ``seconds`` is wall time;
    ``reading`` is the kit's own whole reading of the stream, where the subject made that anyway.
    """

    outcome: str
    category: str | None = None
    faults: tuple[Fault, ...] = ()
    calls: tuple[RawCall, ...] = ()
    seconds: float = 0.0
    reading: Result | None = None


class Subject(Protocol):
    """What a qualification run needs of a subject."""

    @property
    def description(self) -> Mapping[str, Any]:
        """What a run's header says of it: kind, name, version, rules; never a command line or a path."""

    @property
    def ordered(self) -> bool:
        """Whether it carries state from one stream to the next, so that streams must come in order."""

    def observe(self, stream: Stream) -> Observation:
        """Put one stream to the test; never raises for what the subject does."""

    def close(self) -> None:
        """End whatever the subject still runs."""
