"""What the provider sends for one request: a turn in the scenario's style, its edits, and how it ends."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile, zip_longest
from typing import Any

from msgspec import UNSET, UnsetType

from fragmentlab.errors import InputError
from fragmentlab.runtime.scenarios import Change, Edit, Style
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
    """Stream calls; the style of ``change`` leaves nothing open."""
    by_call = [list(_fragments(number, call, change.stream)) for number, call in enumerate(calls)]
    for number, edit in enumerate(change.edit or (), 1):
        _edit(by_call, edit, number)
    turns = zip_longest(*by_call) if change.stream.order == "interleaved" else by_call
    fragments = [one for together in turns for one in together if one is not None]
    deltas = [{"role": "assistant", "content": None}, *map(delta, fragments)]
    return _sending(deltas, "tool_calls", change, usage, seed)


def send_text(text: str, change: Change, usage: bool, seed: str) -> Sending:
    """Stream a plain answer."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": word + " "} for word in text.split())]
    return _sending(deltas, "stop", change, usage, seed)


def send_chunks(chunks: Sequence[Mapping[str, Any]], change: Change, seed: str) -> Sending:
    """Stream chunk objects as they are."""
    events = [*map(event, chunks), *([] if change.done is False else [DONE])]
    return Sending(tuple(_reads(events, change.stream.reads, seed)))


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
    deltas: Sequence[Mapping[str, Any]], finish: str, change: Change, usage: bool, seed: str
) -> Sending:
    events = [event(chunk(said)) for said in deltas]
    half = 1 + len(events) // 2
    last = finish if change.finish_reason is UNSET else change.finish_reason
    finished = [*events, *([] if last is None else [event(chunk({}, last))])]
    how = "end"
    if change.error is not UNSET:
        sent = [*events[:half], _error(change.error)]
    elif change.cut is not UNSET:
        how = change.cut.how
        sent = {
            "arguments": events[:half],
            "event": [*events[:half], events[min(half, len(events) - 1)][:-_CUT_BYTES]],
            "complete": events,
            "finish": finished,
        }[change.cut.at]
    else:
        tokens = {"prompt_tokens": 1, "completion_tokens": len(deltas), "total_tokens": len(deltas) + 1}
        told = [event({**ENVELOPE, "choices": [], "usage": tokens})] if usage else []
        sent = [*finished, *told, *([] if change.done is False else [DONE])]
    return Sending(tuple(_reads(sent, change.stream.reads, seed)), how)


def _error(kind: str) -> bytes:
    if kind == "event":
        return event({"error": _ERROR}, "error")
    return event({**ENVELOPE, "choices": [], "error": _ERROR})


def _reads(events: Sequence[bytes], how: str | UnsetType, seed: str) -> Iterator[bytes]:
    if how == "events":
        yield from events
        return
    body = b"".join(events)
    ends: Iterable[int] = ()
    if how == "odd":
        draws = random.Random(f"{seed} reads")
        sizes = iter(lambda: draws.choice(_ODD_SIZES), 0)
        ends = takewhile(lambda end: end < len(body), accumulate(sizes))
    elif how == "mid-character":
        # After the first byte of each character that has several.
        ends = (at + 1 for at, byte in enumerate(body) if byte >= 0xC0)
    for start, end in pairwise([0, *ends, len(body)]):
        yield body[start:end]
