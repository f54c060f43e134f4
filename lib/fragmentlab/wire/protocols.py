"""Telling streamed Chat Completions from other protocols, and from answers that were assembled before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from fragmentlab.wire.events import payloads
from fragmentlab.wire.fragments import choices_of

CHAT = "chat completions"
_LINES_READ = 64
_SEVERAL = re.compile(rb"^[ \t]*\{.*\}[ \t]*\n[ \t]*[{\[]", re.MULTILINE)
_OTHERS = (
    ("anthropic messages", re.compile(r"message_(start|delta|stop)|content_block_\w+")),
    ("openai responses", re.compile(r"response\.\w+(\.\w+)*")),
    ("openai assistants", re.compile(r"thread\.\w+(\.\w+)*")),
)
_ASSEMBLED_KEYS = re.compile(
    r"resourceSpans|scopeSpans|gen_ai\..*|llm\.(input|output)_messages.*|(input|output)_messages|traceId|trace_id"
)


def protocol_of(body: bytes) -> str | None:
    """Name the protocol of an event stream by its first events; None where no event says."""
    named = None
    for line in islice((line for data in payloads(body, "sse") for line in data.split(b"\n")), _LINES_READ):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if re.search(rb'"chat\.completion\.chunk"|"delta"\s*:', line):
                return CHAT
            continue
        protocol = protocol_of_value(value)
        if protocol == CHAT:
            return CHAT
        named = named or protocol
    return named


def protocol_of_value(value: Any) -> str | None:
    """Name the protocol of one event's object; None where it could be any (an error, usage, a ping)."""
    if not isinstance(value, dict):
        return None
    if is_chunk(value) or is_whole_answer(value):
        return CHAT
    if any("text" in choice for choice in choices_of(value)):
        return "text completions"
    if "candidates" in value or "usageMetadata" in value:
        return "gemini"
    if "jsonrpc" in value:
        return "json-rpc"
    kind = value.get("type") or value.get("object")
    if isinstance(kind, str):
        for name, pattern in _OTHERS:
            if pattern.fullmatch(kind):
                return name
        if kind not in ("error", "ping"):
            return "another protocol"
    return None


def is_chunk(value: Any) -> bool:
    """Whether the value is a chunk of a streamed Chat Completions response."""
    if not isinstance(value, dict):
        return False
    return value.get("object") == "chat.completion.chunk" or any(
        "delta" in choice for choice in choices_of(value)
    )


def could_be_chunk(value: Any) -> bool:
    """Whether the value can stand among chunks: a chunk, or one without choices (usage, error, first)."""
    return is_chunk(value) or (
        isinstance(value, dict) and (value.get("choices") == [] or "error" in value or "usage" in value)
    )


def is_whole_answer(value: dict[str, Any]) -> bool:
    """Whether the value is an answer that was not streamed, or was put together before it was recorded."""
    return any("message" in choice and "delta" not in choice for choice in choices_of(value))


def is_trace(keys: Iterable[str]) -> bool:
    """Whether the keys are those of a trace export (OpenTelemetry, OpenInference): it holds messages only."""
    return any(isinstance(key, str) and _ASSEMBLED_KEYS.fullmatch(key) for key in keys)


def lost_blank_lines(body: bytes) -> bool:
    """Return whether an event's data is several JSON documents: the recorder dropped blank lines."""
    return any(_SEVERAL.search(data) for data in payloads(body, "sse") if b"\n" in data)
