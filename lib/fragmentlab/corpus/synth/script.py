"""What a synthetic response says, before it has a wire form: its calls, cut into fragments."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fragmentlab.corpus.synth.draws import Draws
from fragmentlab.corpus.synth.provider_shapes import Shape

TOOLS = ("lookup_city", "save_report", "list_sources")
_KEYS = ("city", "unit", "limit", "title", "notes", "tags")
_WORDS = (
    "Oslo",
    "Lima",
    "Zürich",
    "東京",
    "São Paulo",
    "rain",
    '"quoted"',
    "a\\b",
    "line\nbreak",
    "🙂",
    "42",
    "true",
)
_LONGEST_PIECE = 16


@dataclass(frozen=True, repr=False)
class PlannedCall:
    """One call as it should come out."""

    id: str
    name: str
    arguments: str


@dataclass
class Script:
    """A response to be sent: ``groups`` holds the fragments of each chunk; what a fault changes is here."""

    groups: list[list[dict[str, Any]]]
    text: str = ""
    finish_reason: str | None = "tool_calls"
    finish_beside: set[int] = field(default_factory=set)
    """Numbers of the groups whose chunk also carries the finish."""
    after_finish: list[dict[str, Any]] = field(default_factory=list)
    events_before_end: list[tuple[str, str]] = field(default_factory=list)
    """Further events as (type, data), sent before the end marker."""
    cut: bool = False
    """Whether the body ends inside its last group, without finish and end marker."""

    def fragments_of(self, call: int) -> list[dict[str, Any]]:
        """Return the fragments of the call-th call in order."""
        return [fragment for group in self.groups for fragment in group if fragment["call"] == call]


def plan_calls(draws: Draws, count: int, arguments_size: int) -> list[PlannedCall]:
    """Return calls whose arguments take about ``arguments_size`` characters, half to one and a half."""
    return [
        PlannedCall("call_" + draws.hex(8), draws.pick(TOOLS), _arguments(draws, arguments_size))
        for _ in range(count)
    ]


def _arguments(draws: Draws, size: int) -> str:
    wanted = size // 2 + draws.below(size + 1)
    arguments: dict[str, Any] = {}
    ascii_only = draws.chance(250)
    spaced = draws.chance(500)
    text = "{}"
    while len(text) < wanted:
        key = (
            _KEYS[len(arguments)] if len(arguments) < len(_KEYS) else f"{draws.pick(_KEYS)}_{len(arguments)}"
        )
        arguments[key] = _value(draws, min(wanted - len(text), 400))
        text = json.dumps(
            arguments, ensure_ascii=ascii_only, separators=(", ", ": ") if spaced else (",", ":")
        )
    return text


def _value(draws: Draws, room: int) -> Any:
    kind = draws.below(6)
    if kind == 0:
        return draws.below(1000)
    if kind == 1:
        return [draws.pick(_WORDS), draws.chance(500), None]
    words = [draws.pick(_WORDS)]
    while len(" ".join(words)) < room // 2:
        words.append(draws.pick(_WORDS))
    return " ".join(words)


def write_script(
    shape: Shape, calls: list[PlannedCall], id_style: str, interleaved: bool, draws: Draws
) -> Script:
    """Cut the calls into fragments as the shape does, continuation IDs in ``id_style``.

    Each fragment carries ``call``, its call's position, which the wire form drops.
    """
    per_call = [_fragments(shape, call, number, id_style, draws) for number, call in enumerate(calls)]
    if shape.parallel == "same_chunk" and not shape.has_continuations:
        groups = [[fragments[0] for fragments in per_call]]
    elif interleaved:
        groups = [[fragment] for fragment in _interleave(per_call)]
    else:
        groups = [[fragment] for fragments in per_call for fragment in fragments]
    script = Script(groups, finish_reason=None if shape.finish == "missing" else shape.finish_reason)
    if shape.finish == "with_last_fragment":
        script.finish_beside = {len(groups) - 1}
    elif shape.finish == "every_call":
        last = {group[-1]["call"]: number for number, group in enumerate(groups)}
        script.finish_beside = set(last.values())
    return script


def _interleave(per_call: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    longest = max(map(len, per_call))
    return [fragments[step] for step in range(longest) for fragments in per_call if step < len(fragments)]


def _fragments(
    shape: Shape, call: PlannedCall, number: int, id_style: str, draws: Draws
) -> list[dict[str, Any]]:
    pieces = _pieces(shape, call.arguments, draws)
    first: dict[str, Any] = {"call": number}
    if shape.index_base is not None:
        first["index"] = number + shape.index_base if shape.index_base >= 0 else shape.index_base
    first["id"] = call.id
    if shape.type != "never":
        first["type"] = "function"
    first["function"] = {"name": call.name}
    if shape.first_arguments in ("empty_string", "null"):
        first["function"]["arguments"] = "" if shape.first_arguments == "empty_string" else None
    elif shape.first_arguments == "piece":
        first["function"]["arguments"] = pieces.pop(0)
    return [first] + [_continuation(shape, call, first, piece, id_style) for piece in pieces]


def _continuation(
    shape: Shape, call: PlannedCall, first: dict[str, Any], piece: str, id_style: str
) -> dict[str, Any]:
    fragment: dict[str, Any] = {name: first[name] for name in ("call", "index") if name in first}
    if id_style != "omitted":
        fragment["id"] = {"null": None, "empty_string": "", "repeated": call.id}[id_style]
    if shape.type in ("every", "null_after"):
        fragment["type"] = "function" if shape.type == "every" else None
    fragment["function"] = {}
    if shape.continuation_name != "omitted":
        fragment["function"]["name"] = {"null": None, "empty_string": "", "repeated": call.name}[
            shape.continuation_name
        ]
    fragment["function"]["arguments"] = piece
    return fragment


def _pieces(shape: Shape, text: str, draws: Draws) -> list[str]:
    if shape.arguments != "split":
        return [text]
    pieces = []
    while text:
        size = 1 + draws.below(_LONGEST_PIECE)
        pieces.append(text[:size])
        text = text[size:]
    return pieces
