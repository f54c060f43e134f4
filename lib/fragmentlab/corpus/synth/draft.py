"""What a synthetic response says, before it has a wire form: its calls, cut into fragments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from fragmentlab.corpus.synth.draws import Draws
from fragmentlab.corpus.synth.provider_shapes import Shape
from fragmentlab.wire.fragments import WireCall, pieces

TOOLS = ("lookup_city", "save_report", "list_sources")
_KEYS = ("city", "unit", "limit", "title", "notes", "tags")
_WORDS = (
    *("Oslo", "Lima", "Zürich", "東京", "São Paulo", "rain", '"quoted"', "a\\b", "line\nbreak", "🙂"),
    *("42", "true"),
)
_LONGEST_PIECE = 16
IN_WORDS: dict[str, Any] = {"null": None, "empty_string": ""}

Fragment = dict[str, Any]


@dataclass
class Draft:
    """A response to be written; what a fault changes is here.

    ``calls`` holds the fragments of each call, and ``groups`` the same objects as the chunks carry them.
    """

    calls: list[list[Fragment]]
    groups: list[list[Fragment]]
    finish_reason: str | None
    finish_beside: set[int] = field(default_factory=set)
    """Numbers of the groups whose chunk also carries the finish."""
    text: str = ""
    after_finish: list[Fragment] = field(default_factory=list)
    error: str | None = None
    """The data of an error that is sent before the end marker."""
    cut: bool = False
    """Whether the body ends inside its last group, without finish and end marker."""


def draw_calls(draws: Draws, count: int, arguments_size: int) -> list[WireCall]:
    """Return calls whose arguments take about ``arguments_size`` characters, half to one and a half."""
    return [
        WireCall("call_" + draws.hex(8), draws.pick(TOOLS), _arguments(draws, arguments_size))
        for _ in range(count)
    ]


def _arguments(draws: Draws, size: int) -> str:
    wanted = size // 2 + draws.below(size + 1)
    arguments: dict[str, Any] = {}
    ascii_only = draws.chance(250)
    separators = (", ", ": ") if draws.chance(500) else (",", ":")
    text = "{}"
    while len(text) < wanted:
        number = len(arguments)
        key = _KEYS[number] if number < len(_KEYS) else f"{draws.pick(_KEYS)}_{number}"
        arguments[key] = _value(draws, min(wanted - len(text), 400))
        text = json.dumps(arguments, ensure_ascii=ascii_only, separators=separators)
    return text


def _value(draws: Draws, room: int) -> Any:
    kind = draws.below(6)
    if kind == 0:
        return draws.below(1000)
    if kind == 1:
        return [draws.pick(_WORDS), draws.chance(500), None]
    words = draws.pick(_WORDS)
    while len(words) < room // 2:
        words += " " + draws.pick(_WORDS)
    return words


def write_draft(shape: Shape, calls: list[WireCall], id_style: str, interleaved: bool, draws: Draws) -> Draft:
    """Cut the calls into fragments as the shape does, continuation IDs in ``id_style``."""
    by_call = [list(_fragments(shape, call, number, id_style, draws)) for number, call in enumerate(calls)]
    if shape.parallel == "same_chunk" and not shape.has_continuations:
        groups = [[fragments[0] for fragments in by_call]]
    elif interleaved:
        groups = [[fragment] for step in zip_longest(*by_call) for fragment in step if fragment is not None]
    else:
        groups = [[fragment] for fragments in by_call for fragment in fragments]
    draft = Draft(by_call, groups, None if shape.finish == "missing" else shape.finish_reason)
    if shape.finish == "with_last_fragment":
        draft.finish_beside = {len(groups) - 1}
    elif shape.finish == "every_call":
        last = [fragments[-1] for fragments in by_call]
        draft.finish_beside = {n for n, group in enumerate(groups) if any(group[-1] is one for one in last)}
    return draft


def _fragments(shape: Shape, call: WireCall, number: int, id_style: str, draws: Draws) -> Iterator[Fragment]:
    sizes = iter(lambda: 1 + draws.below(_LONGEST_PIECE), 0)
    parts = list(pieces(call.arguments, sizes)) if shape.arguments == "split" else [call.arguments]
    index: Fragment = {}
    if shape.index_base is not None:
        index["index"] = number + shape.index_base if shape.index_base >= 0 else shape.index_base
    first = index | {"id": call.id}
    if shape.type != "never":
        first["type"] = "function"
    first["function"] = {"name": call.name}
    if shape.first_arguments == "piece":
        first["function"]["arguments"] = parts.pop(0)
    elif shape.first_arguments != "omitted":
        first["function"]["arguments"] = IN_WORDS[shape.first_arguments]
    yield first
    later = dict(index)
    if id_style != "omitted":
        later["id"] = IN_WORDS.get(id_style, call.id)
    if shape.type in ("every", "null_after"):
        later["type"] = "function" if shape.type == "every" else None
    said = {}
    if shape.continuation_name != "omitted":
        said["name"] = IN_WORDS.get(shape.continuation_name, call.name)
    for piece in parts:
        yield later | {"function": said | {"arguments": piece}}
