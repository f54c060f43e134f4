"""Lists that are one body: event strings, transport chunks in Base64 or hex, chunk objects, and wrappers of
these."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from fragmentlab.corpus.importing.unpack import Budget, Unreadable, as_body, from_base64, from_hex, unpack
from fragmentlab.wire.events import looks_like_events
from fragmentlab.wire.protocols import could_be_chunk, is_chunk

_WRAPPER_KEYS = (
    "data",
    "chunk",
    "b64",
    "base64",
    "body",
    "content",
    "text",
    "raw",
    "value",
    "payload",
    "event",
    "bytes",
)
_INTERACTION_KEYS = frozenset(
    "request response url uri path method scope req res when then httpRequest httpResponse".split()
)
_MAX_WRAPPERS = 3
_MAX_COLUMNS = 8
_FINISHED = re.compile(r'"finish_reason"\s*:\s*"|data:\s*\[DONE\]')
_SMALLEST_BYTES = 16

Joined = tuple[bytes, str]
"""A body and its fidelity."""


def join_list(items: Sequence[Any], encoding: str, budget: Budget, wrappers: int = 0) -> Joined | None:
    """Return the body that the list's items are pieces of, or None where they are not pieces of one."""
    if not items:
        return None
    if all(isinstance(item, str) for item in items):
        return _join_texts(items, encoding, budget)
    if _are_chunks(items):
        return chunks_to_body(items), "chunks"
    pieces = [as_bytes(item, smallest=0) for item in items]
    if all(piece is not None for piece in pieces):
        return _body_of(b"".join(piece for piece in pieces if piece is not None), encoding, budget)
    if wrappers < _MAX_WRAPPERS and all(isinstance(item, dict) for item in items):
        return _join_wrapped(items, encoding, budget, wrappers)
    if wrappers < _MAX_WRAPPERS and all(isinstance(item, list) for item in items):
        return _join_rows(items, encoding, budget, wrappers)
    return None


def as_bytes(value: Any, smallest: int = _SMALLEST_BYTES) -> bytes | None:
    """Return the bytes that a value stands for: bytes, a list of at least ``smallest`` octets, or Node's
    ``Buffer`` as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict) and value.get("type") == "Buffer":
        value, smallest = value.get("data"), 0
    if isinstance(value, list) and len(value) >= smallest:
        try:
            return bytes(value)
        except (TypeError, ValueError):
            return None
    return None


def chunks_to_body(items: Sequence[Any]) -> bytes:
    """Write chunk objects as JSON Lines, or as events where an end marker stands among them."""
    if any(isinstance(item, str) for item in items):
        return "".join(
            f"data: {item if isinstance(item, str) else json_text(item)}\n\n" for item in items
        ).encode()
    return "".join(json_text(item) + "\n" for item in items).encode()


def json_text(value: Any) -> str:
    """Write a value as compact JSON that UTF-8 can hold: in ASCII where a lone surrogate stands in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def _are_chunks(items: Sequence[Any]) -> bool:
    """Whether the items are chunks and the end marker; a few other events among them belong to the stream."""
    if not any(is_chunk(item) for item in items):
        return False
    ends = sum(isinstance(item, str) and item.strip() == "[DONE]" for item in items)
    others = sum(isinstance(item, dict) and not could_be_chunk(item) for item in items)
    fitting = sum(could_be_chunk(item) for item in items)
    return fitting + ends + others == len(items) and others * 5 <= fitting


def _join_texts(items: Sequence[str], encoding: str, budget: Budget) -> Joined | None:
    if sum(_is_whole(item) for item in items) > 1:
        return None
    filled = [item for item in items if item.strip()]
    if filled and all(item.lstrip()[0] == "{" or item.strip() == "[DONE]" for item in filled):
        return _join_json_texts(filled)
    if any("data:" in item for item in items):
        body = as_body(_separator(items).join(items))
        return (body, "events") if looks_like_events(body) else None
    decoders: tuple[Callable[[str, Budget], bytes | None], ...] = (from_hex, from_base64)
    for decode in decoders:
        pieces = _decoded(filled, decode, budget)
        joined = decode("".join(filled), budget) if pieces is None else b"".join(pieces)
        if joined is not None and (body_found := _body_of(joined, encoding, budget)):
            return body_found
    return None


def _decoded(
    items: Sequence[str], decode: Callable[[str, Budget], bytes | None], budget: Budget
) -> list[bytes] | None:
    """Decode each text by itself; a short one is decoded too, as transport chunks can be of any size."""
    pieces = []
    for item in items:
        padded = item if len(item) >= _SMALLEST_BYTES else None
        piece = decode(padded, budget) if padded is not None else _decode_short(item, decode)
        if piece is None:
            return None
        pieces.append(piece)
    return pieces


def _decode_short(item: str, decode: Callable[[str, Budget], bytes | None]) -> bytes | None:
    """Decode a text too short to be told from a word: prefixed with a full unit, which is cut off again."""
    unit = "00" * _SMALLEST_BYTES if decode is from_hex else "AAAA" * _SMALLEST_BYTES
    piece = decode(unit + item, Budget())
    return None if piece is None else piece[_SMALLEST_BYTES * (1 if decode is from_hex else 3) :]


def _is_whole(item: str) -> bool:
    """Whether the text is a whole response by itself, so that several of them are several responses."""
    return item.count("data:") > 1 and _FINISHED.search(item) is not None


def _separator(items: Sequence[str]) -> str:
    """What recorders dropped between the texts: nothing, a line end, or the blank line after each event."""
    if any("\n" in item or "\r" in item for item in items):
        return ""
    if any(not item for item in items):
        return "\n"
    return "\n\n" if all(item.startswith(("data:", ":")) for item in items) else "\n"


def _join_json_texts(items: Sequence[str]) -> Joined | None:
    for item in items:
        try:
            if is_chunk(json.loads(item)):
                break
        except (ValueError, RecursionError):
            continue
    else:
        return None
    texts = [_one_line(item.strip()) for item in items]
    if "[DONE]" in texts:
        return as_body("".join(f"data: {text}\n\n" for text in texts)), "chunks"
    return as_body("".join(text + "\n" for text in texts)), "chunks"


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def _body_of(data: bytes, encoding: str, budget: Budget) -> Joined | None:
    try:
        body = unpack(data, encoding, budget)
    except Unreadable:
        return None
    return (body, "reads") if looks_like_events(body) else None


def _join_rows(items: Sequence[list[Any]], encoding: str, budget: Budget, wrappers: int) -> Joined | None:
    """Join a column of rows such as [seconds, text]."""
    width = len(items[0])
    if any(len(item) != width for item in items):
        return None
    for column in range(min(width, _MAX_COLUMNS)):
        if joined := join_list([item[column] for item in items], encoding, budget, wrappers + 1):
            return joined
    return None


def _join_wrapped(
    items: Sequence[dict[str, Any]], encoding: str, budget: Budget, wrappers: int
) -> Joined | None:
    if any(not _INTERACTION_KEYS.isdisjoint(item) for item in items):
        return None
    keys = dict.fromkeys(key for item in items for key in item)
    for key in sorted(keys, key=lambda key: key not in _WRAPPER_KEYS):
        values = [item[key] for item in items if item.get(key) is not None]
        if len(values) * 2 >= len(items) and (joined := join_list(values, encoding, budget, wrappers + 1)):
            return joined
    return None
