"""A command's answer: what ``assemble --json --reveal`` prints, read and reduced to bounded facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fragmentlab.assembler import CATEGORIES, Fault
from fragmentlab.assembler.rules import Identity, IncomingKind
from fragmentlab.errors import InputError
from fragmentlab.formats import decode
from fragmentlab.subjects.interface import FAILED, UNLISTED, UNNAMED, Observation, RawCall

STAGES = frozenset(category.stage for category in CATEGORIES.values())
"""Every stage that a diagnostic may name."""
_MAX_FAULTS = 100

Ordinal = Annotated[int, Meta(ge=1, lt=1 << 31)]
_FACTS: Mapping[str, Any] = {
    **dict.fromkeys(("event", "fragment", "call"), Ordinal),
    "incoming_kind": IncomingKind,
    **dict.fromkeys(("incoming_empty", "had_id"), bool),
    **dict.fromkeys(("previous_identity", "next_identity"), Identity),
}
"""Fact of a fault -> the values that are taken."""


class AnswerCall(msgspec.Struct, frozen=True):
    """One call of an accepted stream; without index, its position counts."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    index: int | None = None


class AnswerFault(msgspec.Struct, frozen=True):
    """One fault; values outside the closed vocabularies, and ordinals below 1, are ignored."""

    category: Any = None
    stage: Any = None
    event: Any = None
    fragment: Any = None
    call: Any = None
    incoming_kind: Any = None
    incoming_empty: Any = None
    had_id: Any = None
    previous_identity: Any = None
    next_identity: Any = None


class Answer(msgspec.Struct, frozen=True):
    """What a subject says of one stream. Other fields are ignored, and nothing raw is kept."""

    outcome: Literal["accepted", "rejected", "no_calls"]
    category: Annotated[Any, Meta(description="Of a rejection: the kit's, or one declared.")] = None
    faults: Annotated[
        tuple[AnswerFault, ...] | None, Meta(description="Of a rejection: every fault, the primary first.")
    ] = None
    calls: Annotated[tuple[AnswerCall, ...] | None, Meta(description="Of an accepted stream.")] = None

    def __post_init__(self) -> None:
        if self.outcome == "accepted" and not self.calls:
            raise ValueError("an accepted stream has at least one call")


def failed(category: str, seconds: float) -> Observation:
    """The observation of a subject that gave no outcome."""
    return Observation(FAILED, category, seconds=seconds)


def read_answer(output: bytes, seconds: float, categories: frozenset[str]) -> Observation:
    """Turn an answer into an observation; ``categories`` are those declared beside the kit's own.

    Anything that is not the object asked for is ``subject.garbage``. Of the faults only values of closed
    vocabularies and ordinals are taken; a category that nobody declared is replaced.
    """
    try:
        answer = decode(output, Answer, "the answer")
    except InputError:
        return failed("subject.garbage", seconds)
    if answer.outcome != "rejected":
        calls = _calls(answer.calls or ()) if answer.outcome == "accepted" else ()
        return Observation(answer.outcome, calls=calls, seconds=seconds)
    category = _category(answer.category, categories)
    faults = tuple(_fault(fault, categories) for fault in (answer.faults or ())[:_MAX_FAULTS])
    # A subject may name only its category; the primary fault is listed in any case, and first.
    if not faults or faults[0].category != category:
        faults = (Fault(category, _stage(category, None)), *faults)  # type: ignore[arg-type]
    return Observation(answer.outcome, category, faults, seconds=seconds)


def _calls(calls: tuple[AnswerCall, ...]) -> tuple[RawCall, ...]:
    placed = enumerate(calls)
    ordered = sorted(placed, key=lambda item: item[0] if item[1].index is None else item[1].index)
    return tuple((call.id or "", call.name or "", call.arguments or "") for _, call in ordered)


def _category(value: Any, declared: frozenset[str]) -> str:
    if value is None:
        return UNNAMED
    return value if isinstance(value, str) and (value in CATEGORIES or value in declared) else UNLISTED


def _stage(category: str, value: Any) -> str:
    if isinstance(value, str) and value in STAGES:
        return value
    return CATEGORIES[category].stage if category in CATEGORIES else "unknown"


def _fault(fault: AnswerFault, categories: frozenset[str]) -> Fault:
    category = _category(fault.category, categories)
    facts = {name: _taken(getattr(fault, name), kind) for name, kind in _FACTS.items()}
    return Fault(category, _stage(category, fault.stage), **facts)  # type: ignore[arg-type]


def _taken(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
