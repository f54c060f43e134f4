"""A command's answer: the object that ``assemble --json --reveal`` prints, read strictly and reduced to
bounded facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fragmentlab.assembler import CATEGORIES, IDENTITIES, INCOMING_KINDS, Fault
from fragmentlab.subjects.interface import FAILED, UNLISTED, UNNAMED, Observation, RawCall

STAGES = frozenset(category.stage for category in CATEGORIES.values())
"""Every stage that a diagnostic may name."""
_MAX_FAULTS = 100
_MAX_ORDINAL = 1 << 31
_CLOSED: Mapping[str, tuple[object, ...]] = {
    "incoming_kind": INCOMING_KINDS,
    "incoming_empty": (True, False),
    "had_id": (True, False),
    "previous_identity": IDENTITIES,
    "next_identity": IDENTITIES,
}


class Garbage(Exception):
    """The answer is not what was asked for; holds nothing of it."""


def failed(category: str, seconds: float) -> Observation:
    """The observation of a subject that gave no outcome."""
    return Observation(FAILED, category, seconds=seconds)


def read_answer(output: bytes, seconds: float, categories: frozenset[str]) -> Observation:
    """Turn an answer into an observation; ``categories`` are those declared beside the kit's own.

    Anything that is not the asked-for object is ``subject.garbage``. Of the faults only values of closed
    vocabularies and ordinals are taken; a category that nobody declared is replaced.
    """
    try:
        answer = json.loads(output, object_pairs_hook=_once)
        return _observation(answer, seconds, categories)
    except (Garbage, ValueError, RecursionError):
        return failed("subject.garbage", seconds)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Which of two values another reader would take is not known.
    if len(dict(pairs)) != len(pairs):
        raise Garbage
    return dict(pairs)


def _observation(answer: Any, seconds: float, categories: frozenset[str]) -> Observation:
    if not isinstance(answer, dict):
        raise Garbage
    outcome, faults = answer.get("outcome"), answer.get("faults") or []
    if outcome not in ("accepted", "rejected", "no_calls") or not isinstance(faults, list):
        raise Garbage
    if outcome == "accepted":
        return Observation(outcome, calls=_calls(answer.get("calls")), seconds=seconds)
    if outcome == "no_calls":
        return Observation(outcome, seconds=seconds)
    category = _category(answer.get("category"), categories)
    listed = tuple(_fault(fault, categories) for fault in faults[:_MAX_FAULTS])
    # A subject may name only its category; the primary fault is listed in any case, and first.
    if not listed or listed[0].category != category:
        listed = (Fault(category, _stage(category, None)), *listed)
    return Observation(outcome, category, listed, seconds=seconds)


def _calls(calls: Any) -> tuple[RawCall, ...]:
    if not isinstance(calls, list) or not calls:
        raise Garbage
    made: list[tuple[int, RawCall]] = []
    for position, call in enumerate(calls):
        if not isinstance(call, dict):
            raise Garbage
        raw = (call.get("id"), call.get("name"), call.get("arguments"))
        if not all(value is None or isinstance(value, str) for value in raw):
            raise Garbage
        index = call.get("index", position)
        if type(index) is not int:
            raise Garbage
        made.append((index, (raw[0] or "", raw[1] or "", raw[2] or "")))
    return tuple(raw for _, raw in sorted(made, key=lambda item: item[0]))


def _category(value: Any, declared: frozenset[str]) -> str:
    if value is None:
        return UNNAMED
    return value if isinstance(value, str) and (value in CATEGORIES or value in declared) else UNLISTED


def _stage(category: str, value: Any) -> str:
    if isinstance(value, str) and value in STAGES:
        return value
    return CATEGORIES[category].stage if category in CATEGORIES else "unknown"


def _fault(value: Any, categories: frozenset[str]) -> Fault:
    if not isinstance(value, dict):
        raise Garbage
    category = _category(value.get("category"), categories)
    ordinals = {name: _ordinal(value.get(name)) for name in ("event", "fragment", "call")}
    closed = {name: _closed(value.get(name), allowed) for name, allowed in _CLOSED.items()}
    return Fault(category, _stage(category, value.get("stage")), **ordinals, **closed)  # type: ignore[arg-type]


def _ordinal(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < _MAX_ORDINAL else None


def _closed(value: Any, allowed: tuple[object, ...]) -> Any:
    # Compared with type, since 1 == True.
    return next((known for known in allowed if type(known) is type(value) and known == value), None)
