"""From the calls of one turn to the bytes of its stream: fragments in the scenario's
style, edits, and how it ends."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from fragmentlab.errors import InputError

STYLE: Mapping[str, Any] = {
    "ids": "omitted",
    "padding": False,
    "order": "sequential",
    "characters": 48,
    "surrogates": False,
    "reads": "events",
}
"""Every field of a scenario's ``stream`` and what it is where nothing is said."""
_CREATED = 1764547200
_ENVELOPE = {
    "id": "chatcmpl-fragmentlab",
    "object": "chat.completion.chunk",
    "created": _CREATED,
    "model": "fragmentlab",
}
_DONE = b"data: [DONE]\n\n"
_ERROR = {"message": "the scenario's error", "type": "server_error", "code": None}


@dataclass(frozen=True, repr=False)
class WireCall:
    """One call as the server means it, before its fragments are edited."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, repr=False)
class Script:
    """What is sent for one request: ``reads`` in order, then ``how`` it ends (end, reset, close or hold)."""

    reads: tuple[bytes, ...]
    how: str = "end"

    @property
    def body(self) -> bytes:
        return b"".join(self.reads)


def script_calls(calls: Sequence[WireCall], change: Mapping[str, Any], usage: bool, seed: str) -> Script:
    """Stream calls; ``change`` holds stream, edit, finish_reason, done, error and cut (see the schema)."""
    style = {**STYLE, **change.get("stream", {})}
    by_call = [_fragments(number, call, style) for number, call in enumerate(calls)]
    for number, edit in enumerate(change.get("edit", ()), 1):
        _edit(by_call, edit, number)
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": None},
        *({"tool_calls": [f]} for f in _ordered(by_call, style["order"])),
    ]
    return _script(deltas, "tool_calls", change, style, usage, seed)


def script_text(text: str, change: Mapping[str, Any], usage: bool, seed: str) -> Script:
    """Stream a plain answer."""
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        *({"content": word + " "} for word in text.split()),
    ]
    return _script(deltas, "stop", change, {**STYLE, **change.get("stream", {})}, usage, seed)


def script_chunks(chunks: Sequence[Mapping[str, Any]], change: Mapping[str, Any], seed: str) -> Script:
    """Stream chunk objects as they are."""
    style = {**STYLE, **change.get("stream", {})}
    events = [_event(chunk) for chunk in chunks] + ([_DONE] if change.get("done", True) else [])
    return Script(tuple(_reads(events, style["reads"], seed)))


def _fragments(index: int, call: WireCall, style: Mapping[str, Any]) -> list[dict[str, Any]]:
    late = style["ids"] == "late"
    first: dict[str, Any] = {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    if late:
        del first["id"]
    fragments = [first]
    for piece in _pieces(call.arguments, style):
        function: dict[str, Any] = {"arguments": piece}
        fragment: dict[str, Any] = {"index": index, "function": function}
        if style["ids"] == "null":
            fragment["id"] = None
            if style["padding"]:
                fragment["type"] = function["name"] = None
        elif style["ids"] == "repeated" or (late and len(fragments) == 1):
            fragment["id"] = call.id
        fragments.append(fragment)
    return fragments


def _pieces(text: str, style: Mapping[str, Any]) -> list[str]:
    size = style["characters"]
    if style["surrogates"]:
        units = text.encode("utf-16-le")
        cut = [units[at : at + 2 * size] for at in range(0, len(units), 2 * size)]
        return [piece.decode("utf-16-le", "surrogatepass") for piece in cut]
    return [text[at : at + size] for at in range(0, len(text), size)]


def _ordered(by_call: Sequence[Sequence[dict[str, Any]]], order: str) -> Iterator[dict[str, Any]]:
    if order == "interleaved":
        for together in zip_longest(*by_call):
            yield from (fragment for fragment in together if fragment is not None)
    else:
        for fragments in by_call:
            yield from fragments


def _edit(by_call: Sequence[Sequence[dict[str, Any]]], edit: Mapping[str, Any], number: int) -> None:
    fragments = by_call[edit["call"] - 1] if edit["call"] <= len(by_call) else []
    piece = edit["piece"]
    if piece == 0 or abs(piece) > len(fragments):
        raise InputError(f"edit {number} names a call or piece that this turn does not stream")
    fragment = fragments[piece - 1 if piece > 0 else piece]
    fragment.update(edit.get("set", {}))
    for name in edit.get("remove", ()):
        fragment.pop(name, None)


def _script(
    deltas: Sequence[Mapping[str, Any]],
    finish_reason: str,
    change: Mapping[str, Any],
    style: Mapping[str, Any],
    usage: bool,
    seed: str,
) -> Script:
    events = [_event(_chunk(delta, None)) for delta in deltas]
    half = 1 + len(events) // 2
    if error := change.get("error"):
        return Script(tuple(_reads([*events[:half], _error(error)], style["reads"], seed)))
    last = change.get("finish_reason", finish_reason)
    finish = [] if last is None else [_event(_chunk({}, last))]
    rest = [_event({**_ENVELOPE, "choices": [], "usage": _usage(len(deltas))})] if usage else []
    rest += [_DONE] if change.get("done", True) else []
    cut = change.get("cut")
    if cut is None:
        return Script(tuple(_reads([*events, *finish, *rest], style["reads"], seed)))
    kept = {
        "arguments": events[:half],
        "event": [*events[:half], events[min(half, len(events) - 1)][:-30]],
        "complete": events,
        "finish": [*events, *finish],
    }[cut["at"]]
    return Script(tuple(_reads(kept, style["reads"], seed)), cut.get("how", "reset"))


def _chunk(delta: Mapping[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {**_ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}


def _error(kind: str) -> bytes:
    if kind == "event":
        return b"event: error\n" + _event({"error": _ERROR})
    return _event({**_ENVELOPE, "choices": [], "error": _ERROR})


def _event(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    try:
        return f"data: {text}\n\n".encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair can only be sent escaped.
        return f"data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _reads(events: Sequence[bytes], how: str, seed: str) -> Iterator[bytes]:
    if how == "events":
        yield from events
        return
    body = b"".join(events)
    start = 0
    for end in _ends(body, how, seed):
        yield body[start:end]
        start = end
    if start < len(body):
        yield body[start:]


def _ends(body: bytes, how: str, seed: str) -> Iterator[int]:
    """Where reads end, ascending, apart from the last."""
    if how == "odd":
        sizes, at = random.Random(f"{seed} reads"), 0
        while (at := at + sizes.choice((1, 2, 3, 7, 61, 509))) < len(body):
            yield at
    elif how == "mid-character":
        # After the first byte of each character that has several.
        yield from (at + 1 for at, byte in enumerate(body) if byte >= 0xC0)
