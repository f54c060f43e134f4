"""Which wire shapes one recorded stream shows, in a closed vocabulary; never what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fragmentlab.assembler.assembler import Framing
from fragmentlab.wire.events import has_comments, payloads
from fragmentlab.wire.fragments import choices_of, fragments_of, function_of

SHAPES: dict[str, str] = {
    "id omitted": "later fragments leave the ID out",
    "id null": "later fragments say id: null",
    "id empty": 'later fragments say id: ""',
    "id repeated": "later fragments repeat the ID",
    "id other": "a later fragment says another ID, or one that is no string",
    "first id missing": "a call's first fragment has no ID, null or an empty one",
    "one fragment": "a call is sent whole, in one fragment",
    "name null": "later fragments say name: null",
    "name empty": 'later fragments say name: ""',
    "name repeated": "later fragments repeat the whole name",
    "type null": "later fragments say type: null",
    "type repeated": "later fragments repeat the type",
    "type missing": "a call's first fragment has no type",
    "no index": "fragments say no index",
    "negative index": "fragments say a negative index",
    "base above 0": "the smallest index is above 0",
    "arguments null": "arguments: null stands in a fragment",
    "arguments not text": "arguments are not a string",
    "interleaved": "fragments of several calls alternate",
    "several in a chunk": "one chunk carries fragments of several calls",
    "role repeated": "later chunks repeat the role",
    "role null": "later chunks say role: null",
    "tool_calls null": "chunks without fragments say tool_calls: null",
    "legacy function_call": "the older function_call is sent too",
    "empty choices": "a chunk has an empty list of choices",
    "finish with fragment": "the finish stands in the chunk of a fragment",
    "finish repeated": "the finish is sent more than once",
    "finish stop": "calls end with stop instead of tool_calls",
    "no finish": "the response has no finish",
    "response id changes": "chunks of one response have several IDs",
    "comments": "keep-alive comments are sent",
    "no [DONE]": "the end marker is missing",
}
"""Label of a shape -> what it means. The order is that of the tables."""


@dataclass(repr=False)
class _Seen:
    shapes: set[str] = field(default_factory=set)
    names: dict[Any, str] = field(default_factory=dict)
    ids: dict[Any, Any] = field(default_factory=dict)
    pieces: dict[Any, int] = field(default_factory=dict)
    order: list[Any] = field(default_factory=list)
    responses: set[str] = field(default_factory=set)
    deltas: int = 0
    finishes: list[str] = field(default_factory=list)


def observe(body: bytes, framing: Framing) -> frozenset[str]:
    """Return the labels of SHAPES that the stream shows; empty where it has no fragment of a tool call.

    Events that are no chunk are passed over; the assembler says what is wrong with them.
    """
    seen = _Seen()
    done = False
    for data in payloads(body, framing):
        done = done or data.strip(b" \t") == b"[DONE]"
        for document in data.split(b"\n"):
            try:
                _chunk(seen, json.loads(document))
            except (ValueError, RecursionError):
                continue
    if not seen.order:
        return frozenset()
    _sum_up(seen)
    if framing == "sse" and has_comments(body):
        seen.shapes.add("comments")
    if framing == "sse" and not done:
        seen.shapes.add("no [DONE]")
    return frozenset(seen.shapes)


def _chunk(seen: _Seen, chunk: Any) -> None:
    if not isinstance(chunk, dict):
        return
    if isinstance(chunk.get("id"), str) and chunk["id"]:
        seen.responses.add(chunk["id"])
    if chunk.get("choices") == []:
        seen.shapes.add("empty choices")
    fragments = list(fragments_of(chunk))
    if len({repr(fragment.get("index")) for fragment in fragments}) > 1:
        seen.shapes.add("several in a chunk")
    for choice in choices_of(chunk):
        if isinstance(choice.get("delta"), dict):
            _delta(seen, choice["delta"])
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            seen.finishes.append(finish)
            if fragments:
                seen.shapes.add("finish with fragment")
    for fragment in fragments:
        seen.shapes.update(_fragment(seen, fragment))


def _delta(seen: _Seen, delta: dict[str, Any]) -> None:
    if seen.deltas and "role" in delta:
        seen.shapes.add("role null" if delta["role"] is None else "role repeated")
    seen.deltas += 1
    if delta.get("tool_calls", ()) is None:
        seen.shapes.add("tool_calls null")
    if delta.get("function_call") is not None:
        seen.shapes.add("legacy function_call")


def _fragment(seen: _Seen, fragment: dict[str, Any]) -> Iterator[str]:
    index = fragment.get("index")
    if index is None:
        yield "no index"
    elif type(index) is int and index < 0:
        yield "negative index"
    call = repr(index)
    function = function_of(fragment)
    arguments = function.get("arguments", "")
    if arguments is None:
        yield "arguments null"
    elif not isinstance(arguments, str):
        yield "arguments not text"
    seen.order.append(index if type(index) is int else call)
    is_first = call not in seen.pieces
    seen.pieces[call] = seen.pieces.get(call, 0) + 1
    yield from (_first if is_first else _later)(seen, call, fragment, function)


def _first(seen: _Seen, call: str, fragment: dict[str, Any], function: dict[str, Any]) -> Iterator[str]:
    seen.ids[call] = fragment.get("id")
    seen.names[call] = function.get("name") or ""
    if not fragment.get("id"):
        yield "first id missing"
    if not fragment.get("type"):
        yield "type missing"


def _later(seen: _Seen, call: str, fragment: dict[str, Any], function: dict[str, Any]) -> Iterator[str]:
    if "id" not in fragment:
        yield "id omitted"
    elif fragment["id"] is None:
        yield "id null"
    elif fragment["id"] == "":
        yield "id empty"
    elif fragment["id"] == seen.ids[call]:
        yield "id repeated"
    elif seen.ids[call]:
        yield "id other"
    else:
        seen.ids[call] = fragment["id"]
    if "name" in function:
        name = function["name"]
        if name is None or name == "":
            yield "name null" if name is None else "name empty"
        elif name == seen.names[call]:
            yield "name repeated"
    if "type" in fragment:
        yield "type null" if fragment["type"] is None else "type repeated"


def _sum_up(seen: _Seen) -> None:
    if any(count == 1 for count in seen.pieces.values()):
        seen.shapes.add("one fragment")
    whole = [index for index in seen.order if type(index) is int and index >= 0]
    if whole and min(whole) > 0:
        seen.shapes.add("base above 0")
    changes = sum(before != after for before, after in zip(seen.order, seen.order[1:], strict=False))
    if changes >= len(seen.pieces):
        seen.shapes.add("interleaved")
    if len(seen.responses) > 1:
        seen.shapes.add("response id changes")
    if not seen.finishes:
        seen.shapes.add("no finish")
    elif len(seen.finishes) > 1:
        seen.shapes.add("finish repeated")
    if seen.finishes and set(seen.finishes) == {"stop"}:
        seen.shapes.add("finish stop")
