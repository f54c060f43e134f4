"""What the provider sends for one request: a turn in the scenario's style, its edits, and how it ends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from msgspec import UNSET

from fragmentlab.errors import InputError
from fragmentlab.runtime.scenarios import STYLE, Change, Edit, Style, merged
from fragmentlab.wire.events import DONE, event
from fragmentlab.wire.fragments import ENVELOPE, WireCall, chunk, delta, fragment, pieces

_ERROR = {"message": "the scenario's error", "type": "server_error", "code": None}
_CUT_BYTES = 30
_ODD_SIZES = (1, 2, 3, 7, 61, 509)


@dataclass(frozen=True, repr=False)
class Sending:
    """What is sent for one request: ``reads`` in order, then ``how`` it ends (end, reset, close or hold)."""

    reads: tuple[bytes, ...]
    how: str = "end"

    @property
    def body(self) -> bytes:
        """All reads in one piece."""
        return b"".join(self.reads)


def send_calls(calls: Sequence[WireCall], change: Change, usage: bool, seed: str) -> Sending:
    """Stream calls."""
    style = merged(Style, STYLE, change.stream)
    by_call = [list(_fragments(number, call, style)) for number, call in enumerate(calls)]
    for number, edit in enumerate(change.edit or (), 1):
        _edit(by_call, edit, number)
    turns = zip_longest(*by_call) if style.order == "interleaved" else by_call
    fragments = [one for together in turns for one in together if one is not None]
    deltas = [{"role": "assistant", "content": None}, *map(delta, fragments)]
    return _sending(deltas, "tool_calls", change, style, usage, seed)


def send_text(text: str, change: Change, usage: bool, seed: str) -> Sending:
    """Stream a plain answer."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": word + " "} for word in text.split())]
    return _sending(deltas, "stop", change, merged(Style, STYLE, change.stream), usage, seed)


def send_chunks(chunks: Sequence[Mapping[str, Any]], change: Change, seed: str) -> Sending:
    """Stream chunk objects as they are."""
    events = [*map(event, chunks), *([] if change.done is False else [DONE])]
    return Sending(tuple(_reads(events, merged(Style, STYLE, change.stream), seed)))


def _fragments(index: int, call: WireCall, style: Style) -> Iterator[dict[str, Any]]:
    own: dict[str, Any] = {"id": call.id}
    is_late, is_padded = style.ids == "late", style.ids == "null" and style.padding is True
    said = own if style.ids == "repeated" else {"id": None} if style.ids == "null" else {}
    yield fragment(index, {"name": call.name, "arguments": ""}, **({} if is_late else own), type="function")
    parts = pieces(call.arguments, style.characters or 1, halves=style.surrogates is True)
    for number, piece in enumerate(parts):
        if is_padded:
            yield fragment(index, {"arguments": piece, "name": None}, **said, type=None)
        else:
            yield fragment(index, {"arguments": piece}, **(own if is_late and not number else said))


def _edit(by_call: Sequence[Sequence[dict[str, Any]]], edit: Edit, number: int) -> None:
    fragments = by_call[edit.call - 1] if edit.call <= len(by_call) else []
    if edit.piece == 0 or abs(edit.piece) > len(fragments):
        raise InputError(f"edit {number} names a call or piece that this turn does not stream")
    changed = fragments[edit.piece - 1 if edit.piece > 0 else edit.piece]
    changed.update(edit.set)
    for name in edit.remove:
        changed.pop(name, None)


def _sending(
    deltas: Sequence[Mapping[str, Any]], finish: str, change: Change, style: Style, usage: bool, seed: str
) -> Sending:
    events = [event(chunk(said)) for said in deltas]
    half = 1 + len(events) // 2
    if change.error is not UNSET:
        return Sending(tuple(_reads([*events[:half], _error(change.error)], style, seed)))
    last = finish if change.finish_reason is UNSET else change.finish_reason
    finished = [*events, *([] if last is None else [event(chunk({}, last))])]
    if change.cut is not UNSET:
        kept = {
            "arguments": events[:half],
            "event": [*events[:half], events[min(half, len(events) - 1)][:-_CUT_BYTES]],
            "complete": events,
            "finish": finished,
        }[change.cut.at]
        return Sending(tuple(_reads(kept, style, seed)), change.cut.how)
    if usage:
        finished.append(event({**ENVELOPE, "choices": [], "usage": _usage(len(deltas))}))
    if change.done is not False:
        finished.append(DONE)
    return Sending(tuple(_reads(finished, style, seed)))


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}


def _error(kind: str) -> bytes:
    if kind == "event":
        return event({"error": _ERROR}, "error")
    return event({**ENVELOPE, "choices": [], "error": _ERROR})


def _reads(events: Sequence[bytes], style: Style, seed: str) -> Iterator[bytes]:
    if style.reads == "events":
        yield from events
        return
    body = b"".join(events)
    start = 0
    for end in _ends(body, str(style.reads), seed):
        yield body[start:end]
        start = end
    if start < len(body):
        yield body[start:]


def _ends(body: bytes, how: str, seed: str) -> Iterator[int]:
    """Where reads end, ascending, apart from the last."""
    if how == "odd":
        sizes, at = random.Random(f"{seed} reads"), 0
        while (at := at + sizes.choice(_ODD_SIZES)) < len(body):
            yield at
    elif how == "mid-character":
        # After the first byte of each character that has several.
        yield from (at + 1 for at, byte in enumerate(body) if byte >= 0xC0)
