"""Sequences of fragments as data (which index, what is said of the ID) and the responses they stand for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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


@dataclass(frozen=True, order=True)
class Step:
    """One fragment: ``says`` is a kind of KINDS or an ID of SYMBOLS."""

    index: int
    says: str


Steps = tuple[Step, ...]


def chunks_of(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The chunks of one finished response, a fragment each.

    Each index's arguments list the positions of its own fragments, so that bytes of another call show.
    """
    return [json.loads(text) for text in _chunk_texts(steps)]


def body_of(steps: Sequence[Step]) -> bytes:
    """The same response as Server-Sent Events with its end marker."""
    return "".join(f"data: {text}\n\n" for text in [*_chunk_texts(steps), "[DONE]"]).encode()


def sent_calls(steps: Sequence[Step]) -> dict[int, tuple[str, str]]:
    """Index -> (name, arguments) as they were sent."""
    own: dict[int, list[int]] = {}
    for position, step in enumerate(steps, 1):
        own.setdefault(step.index, []).append(position)
    return {index: (TOOL, f'{{"parts":"{"".join(map(str, places))}"}}') for index, places in own.items()}


def strings_said(steps: Sequence[Step], index: int | None = None) -> list[str]:
    """The nonempty IDs said on one index, or on all, in order."""
    return [step.says for step in steps if step.says in SYMBOLS and index in (None, step.index)]


def _chunk_texts(steps: Sequence[Step]) -> list[str]:
    first = {step.index: place for place, step in reversed(list(enumerate(steps)))}
    last = {step.index: place for place, step in enumerate(steps)}
    return [
        *(
            _fragment_text(step, place + 1, first[step.index] == place, last[step.index] == place)
            for place, step in enumerate(steps)
        ),
        _text({}, "tool_calls"),
    ]


@cache
def _fragment_text(step: Step, position: int, is_first: bool, is_last: bool) -> str:
    fragment: dict[str, Any] = {"index": step.index}
    if step.says in SYMBOLS:
        fragment["id"] = step.says
    elif step.says != "omitted":
        fragment["id"] = _VALUES[step.says]
    function = {"name": TOOL} if is_first else {}
    arguments = '{"parts":"' * is_first + str(position) + '"}' * is_last
    return _text({"tool_calls": [fragment | {"function": function | {"arguments": arguments}}]}, None)


def _text(delta: dict[str, Any], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]})
