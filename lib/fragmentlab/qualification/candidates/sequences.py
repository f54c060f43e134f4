"""Sequences of fragments as data (which index, what is said of the ID) and the responses they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fragmentlab.wire.events import DONE, event
from fragmentlab.wire.fragments import chunk, delta, fragment

SYMBOLS = ("A", "B", "C")
"""Nonempty IDs. IDs are only compared, so three are enough: one for each index, and another one."""
KINDS = ("omitted", "null", "empty_string", "number", "boolean", "array", "object")
"""What a fragment may say besides a nonempty string."""
TOOL = "look_up"
_VALUES: dict[str, Any] = {
    "null": None,
    "empty_string": "",
    "number": 7,
    "boolean": True,
    "array": ["A"],
    "object": {"id": "A"},
}
_ENVELOPE = {"id": "chatcmpl-1", "object": "chat.completion.chunk"}


@dataclass(frozen=True, order=True)
class Step:
    """One fragment: ``says`` is a kind of KINDS or an ID of SYMBOLS."""

    index: int
    says: str


Steps = tuple[Step, ...]


def chunks_of(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return the chunks of one finished response, a fragment each.

    Each index's arguments list the positions of its own fragments, so that bytes of another call show.
    """
    return [_chunk(*facts) for facts in _facts(steps)] + [chunk({}, "tool_calls", _ENVELOPE)]


def response_of(steps: Sequence[Step]) -> bytes:
    """Return the same response as an event stream with its end marker."""
    return b"".join([*(_event(*facts) for facts in _facts(steps)), _FINISH, DONE])


def sent_calls(steps: Sequence[Step]) -> dict[int, tuple[str, str]]:
    """Return index -> (name, arguments) as they were sent."""
    own: dict[int, list[int]] = {}
    for position, step in enumerate(steps, 1):
        own.setdefault(step.index, []).append(position)
    return {index: (TOOL, f'{{"parts":"{"".join(map(str, places))}"}}') for index, places in own.items()}


def strings_said(steps: Sequence[Step], index: int | None = None) -> list[str]:
    """Return the nonempty IDs said on one index, or on all, in order."""
    return [step.says for step in steps if step.says in SYMBOLS and index in (None, step.index)]


def _facts(steps: Sequence[Step]) -> list[tuple[Step, int, bool, bool]]:
    first = {step.index: place for place, step in reversed(list(enumerate(steps)))}
    last = {step.index: place for place, step in enumerate(steps)}
    return [
        (step, place + 1, first[step.index] == place, last[step.index] == place)
        for place, step in enumerate(steps)
    ]


def _chunk(step: Step, position: int, is_first: bool, is_last: bool) -> dict[str, Any]:
    said = {} if step.says == "omitted" else {"id": _VALUES.get(step.says, step.says)}
    arguments = '{"parts":"' * is_first + str(position) + '"}' * is_last
    function = ({"name": TOOL} if is_first else {}) | {"arguments": arguments}
    return chunk(delta(fragment(step.index, function, **said)), None, _ENVELOPE)


@cache
def _event(step: Step, position: int, is_first: bool, is_last: bool) -> bytes:
    return event(_chunk(step, position, is_first, is_last))


_FINISH = event(chunk({}, "tool_calls", _ENVELOPE))
