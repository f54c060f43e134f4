"""One event's data to a chunk, or the category that refuses it.

msgspec decodes; its result counts only where it is proven to be what the exact parser would give: every key
of the text is accounted for in the decoded objects, so none can have stood twice. Everything else is parsed
exactly.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from fragmentlab.assembler import strictjson
from fragmentlab.assembler.limits import Limits

DECIDING_KEYS = frozenset(
    "id index choices delta tool_calls function name arguments finish_reason native_finish_reason "
    "function_call error type text object usage".split()
)
"""Keys that may stand only once in the root, a choice, a delta, a fragment and its function.

Source: docs/design.md, section 4.
"""

_KNOWN_NESTING = 6
"""Root, choice, delta, fragment and function, and one empty object: all that can be open besides arrays
where every key is accounted for."""
_USUAL_ARRAYS = 4
_ENVELOPE = frozenset("id object created model system_fingerprint service_tier provider usage error".split())
_decode = msgspec.json.Decoder().decode


class Refused(Exception):
    """The event cannot be read; carries the category and closed-vocabulary flags."""

    def __init__(self, category: str, **flags: bool) -> None:
        super().__init__(category)
        self.category = category
        self.flags = flags


def decode_chunk(data: bytes, limits: Limits) -> dict[str, Any]:
    """Return the chunk object of one event's data; raise Refused in the order UTF-8, JSON, object, depth,
    duplicate keys."""
    try:
        chunk = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _decode_exactly(data, limits)
    if type(chunk) is dict and _is_accounted(chunk, data, limits.depth):
        return chunk
    return _decode_exactly(data, limits)


def _is_accounted(chunk: dict[str, Any], data: bytes, depth: int) -> bool:
    """Whether the text holds no more keys than the decoded objects, is valid UTF-8 and not too deep.

    Every key of the text ends in `":` unless blanks stand before the colon. Strings may hold `":` too, or
    begin with a colon after the quote, so what the known strings hold is subtracted; where an escape could
    stand for either character (`\\u0022`, `\\u003a`) nothing is proven. The parts of a usual chunk are known
    by name; where they do not account for all, every part is counted.
    """
    keys = len(chunk)
    in_strings = 0
    choices = chunk.get("choices")
    if type(choices) is list:
        for choice in choices:
            if type(choice) is dict:
                keys += len(choice)
                delta = choice.get("delta")
                if type(delta) is dict:
                    keys += len(delta)
                    content = delta.get("content")
                    if content and type(content) is str:
                        in_strings += content.count('":') + (content[0] == ":")
                    fragments = delta.get("tool_calls")
                    if type(fragments) is list:
                        for fragment in fragments:
                            if type(fragment) is dict:
                                keys += len(fragment)
                                function = fragment.get("function")
                                if type(function) is dict:
                                    keys += len(function)
                                    arguments = function.get("arguments")
                                    if arguments and type(arguments) is str:
                                        in_strings += arguments.count('":') + (arguments[0] == ":")
    found = data.count(b'":')
    is_usual = found == keys + in_strings
    if not is_usual:
        keys, in_strings, levels = _counted(chunk, depth)
        if found != keys + in_strings or levels > depth:
            return False
    if in_strings and b"\\u00" in data and (b"\\u0022" in data or b"\\u003" in data):
        return False
    # Single bytes are looked up fastest, so blanks are asked for before blanks with a colon.
    if (32 in data and b" :" in data) or 9 in data or 10 in data or 13 in data:
        return False
    if is_usual and not _opens_at_most(depth - _KNOWN_NESTING, data):
        return False
    return data.isascii() or _is_utf8(data)


def _counted(chunk: dict[str, Any], depth: int) -> tuple[int, int, int]:
    """Return the keys, what looks like the end of a key in values, and the levels, one more than ``depth``
    where there are more."""
    keys = in_strings = levels = 0
    level: list[Any] = [chunk]
    while level and levels <= depth:
        levels += 1
        below: list[Any] = []
        for holder in level:
            items = holder
            if type(holder) is dict:
                keys += len(holder)
                items = holder.values()
            for item in items:
                kind = type(item)
                if kind is str:
                    if ":" in item:
                        in_strings += item.count('":') + (item[0] == ":")
                elif kind is dict or kind is list:
                    below.append(item)
        level = below
    return keys, in_strings, levels


def _opens_at_most(arrays: int, data: bytes) -> bool:
    """Whether the text opens at most so many arrays, brackets in strings counted too."""
    at = -1
    for _ in range(min(arrays, _USUAL_ARRAYS)):
        at = data.find(91, at + 1)
        if at < 0:
            return True
    return data.count(b"[") <= arrays


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_exactly(data: bytes, limits: Limits) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Refused("event.invalid_utf8") from None
    try:
        document = strictjson.parse(text, limits.number_digits, limits.depth)
    except strictjson.Malformed:
        raise Refused("event.invalid_json", **({"joined_events": True} if _is_joined(text) else {})) from None
    chunk = document.value
    if not isinstance(chunk, dict):
        raise Refused("event.invalid_chunk")
    if document.depth > limits.depth:
        raise Refused("limit.depth")
    if document.repeats and any(_repeats_deciding_key(part) for part in _deciding_objects(chunk)):
        raise Refused("event.duplicate_key")
    return chunk


def _deciding_objects(chunk: dict[str, Any]) -> list[Any]:
    objects: list[Any] = [chunk]
    for choice in _items(chunk.get("choices")):
        delta = choice.get("delta") if isinstance(choice, dict) else None
        fragments = _items(delta.get("tool_calls")) if isinstance(delta, dict) else []
        objects += [choice, delta, *fragments]
        objects += [fragment.get("function") for fragment in fragments if isinstance(fragment, dict)]
    return objects


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _repeats_deciding_key(value: Any) -> bool:
    return isinstance(value, strictjson.RepeatingDict) and not value.repeated.isdisjoint(DECIDING_KEYS)


def is_other_protocol(chunk: dict[str, Any], choices: Any) -> bool:
    """Whether the event is of another protocol: no chunk without choices, or a text completion's choice."""
    if type(choices) is list:
        for choice in choices:
            if isinstance(choice, dict) and "delta" not in choice and "text" in choice:
                return True
    if choices is not chunk:
        return False
    kind = chunk.get("object", "")
    if not isinstance(kind, str) or not (kind == "" or kind.startswith("chat.completion")):
        return True
    if kind == "chat.completion.chunk" or chunk.keys() <= _ENVELOPE:
        return False
    return "usage" not in chunk or "type" in chunk


def is_complete(data: bytes) -> bool:
    """Whether the data of an event cut inside its last line is nevertheless one JSON document or the end
    marker."""
    if data.strip(b" \t") == b"[DONE]":
        return True
    try:
        strictjson.parse(data.decode(), 0, 0)
    except (UnicodeDecodeError, strictjson.Malformed):
        return False
    return True


def _is_joined(text: str) -> bool:
    """Whether the text is two or more JSON documents or end markers in a row: events that lost their blank
    lines."""
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
