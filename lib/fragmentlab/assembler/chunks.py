"""One event's data to a chunk, or the category that refuses it.

jiter decodes: it refuses what is not UTF-8 or JSON, and any key that stands twice. What it refuses, and what
could be nested too deeply, is parsed exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jiter import from_json

from . import strictjson
from .limits import Limits

DECIDING_KEYS = frozenset(
    "id index choices delta tool_calls function name arguments finish_reason native_finish_reason "
    "function_call error type text object usage".split()
)
"""Keys that may stand only once in the root, a choice, a delta, a fragment and its function
(docs/design.md, section 4)."""
_ENVELOPE = frozenset("id object created model system_fingerprint service_tier provider usage error".split())

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"x\x9c": "deflate",
    b"x\xda": "deflate",
    b"x\x01": "deflate",
}


class InvalidEvent(Exception):
    """The event cannot be read; carries the category and closed-vocabulary flags."""

    def __init__(self, category: str, **flags: bool | str) -> None:
        super().__init__(category)
        self.category = category
        self.flags = flags


def decode_chunk(data: bytes, limits: Limits) -> dict[str, Any]:
    """Return the chunk object of one event's data.

    Raises InvalidEvent; the checks are UTF-8, JSON, object, depth and duplicate keys, in that order.
    """
    if data.count(b"{") + data.count(b"[") <= limits.depth:
        try:
            chunk = from_json(data, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")
        except ValueError:
            pass
        else:
            if type(chunk) is dict:
                return chunk
    return _decode_exactly(data, limits)


def _decode_exactly(data: bytes, limits: Limits) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidEvent("event.invalid_utf8") from None
    try:
        document = strictjson.parse(text, limits.number_digits)
    except strictjson.Malformed:
        flags = {"joined_events": True} if _is_joined(text) else {}
        raise InvalidEvent("event.invalid_json", **flags) from None
    chunk = document.value
    if not isinstance(chunk, dict):
        raise InvalidEvent("event.invalid_chunk", field="root")
    if document.depth > limits.depth:
        raise InvalidEvent("limit.depth")
    if document.repeats and any(map(_repeats_deciding_key, _deciding_objects(chunk))):
        raise InvalidEvent("event.duplicate_key")
    return chunk


def _deciding_objects(chunk: dict[str, Any]) -> Iterator[Any]:
    yield chunk
    for choice in _items(chunk.get("choices")):
        delta = choice.get("delta") if isinstance(choice, dict) else None
        fragments = _items(delta.get("tool_calls")) if isinstance(delta, dict) else []
        yield from (choice, delta, *fragments)
        yield from (fragment.get("function") for fragment in fragments if isinstance(fragment, dict))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _repeats_deciding_key(value: Any) -> bool:
    return isinstance(value, strictjson.RepeatingDict) and not value.repeated.isdisjoint(DECIDING_KEYS)


def other_protocol(chunk: dict[str, Any], choices: Any, delta_came: bool) -> dict[str, bool] | None:
    """Return the flags of an event of another protocol, None where it is of this one.

    ``choices`` are the chunk itself where it has none. A text completion's choice is of another one, and so
    is, before any delta, a whole message in place of one: the answer was not streamed. So is an event without
    choices that is no part of a stream of chunks.
    """
    if type(choices) is list:
        for choice in choices:
            if isinstance(choice, dict) and type(choice.get("delta")) is not dict:
                if "text" in choice and "delta" not in choice:
                    return {}
                is_message = isinstance(choice.get("message"), dict) and choice.get("delta") is None
                if is_message and not delta_came:
                    return {"message_not_delta": True}
    if choices is not chunk:
        return None
    kind = chunk.get("object", "")
    if not isinstance(kind, str) or not (kind == "" or kind.startswith("chat.completion")):
        return {}
    if kind == "chat.completion.chunk" or chunk.keys() <= _ENVELOPE:
        return None
    return {} if "usage" not in chunk or "type" in chunk else None


def is_complete(data: bytes) -> bool:
    """Whether the data of an event cut inside its last line is one JSON document or the end marker."""
    if data.strip(b" \t") == b"[DONE]":
        return True
    try:
        strictjson.parse(data.decode(), 0)
    except (UnicodeDecodeError, strictjson.Malformed):
        return False
    return True


def _is_joined(text: str) -> bool:
    """Whether the text is several JSON documents or end markers: events that lost their blank lines."""
    decoder = json.JSONDecoder()
    documents, at = 0, 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
            continue
        if text.startswith("[DONE]", at):
            at += len("[DONE]")
        else:
            try:
                _, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                return False
        documents += 1
    return documents > 1


def compression_of(head: bytes) -> str | None:
    """Name the compression that a body's first bytes speak of; Brotli begins with nothing of its own."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
