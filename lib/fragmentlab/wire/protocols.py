"""Telling streamed Chat Completions from what else is streamed, and from answers that were assembled
before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

CHAT = "chat completions"
_EVENT_LINE = re.compile(rb"^data:[ \t]*(?=[\[{\"]|\[DONE\])", re.MULTILINE)
_DATA_LINE = re.compile(rb"^data:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_LINES_READ = 64
_OTHERS = (
    ("anthropic messages", re.compile(r"message_(start|delta|stop)|content_block_\w+")),
    ("openai responses", re.compile(r"response\.\w+(\.\w+)*")),
    ("openai assistants", re.compile(r"thread\.\w+(\.\w+)*")),
)
_ASSEMBLED_KEYS = re.compile(
    r"resourceSpans|scopeSpans|gen_ai\..*|llm\.(input|output)_messages.*|(input|output)_messages|traceId|trace_id"
)


def looks_like_events(body: bytes) -> bool:
    """Whether the text holds lines of an event stream with data that could be JSON or the end marker."""
    if b"data:" not in body:
        return False
    body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return _EVENT_LINE.search(body) is not None


def protocol_of(body: bytes) -> str | None:
    """Name the protocol of an event stream by its first events; None where no event says."""
    body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    named = None
    for number, match in enumerate(_DATA_LINE.finditer(body)):
        if number >= _LINES_READ:
            break
        try:
            value = json.loads(match[1])
        except (ValueError, RecursionError):
            if re.search(rb'"chat\.completion\.chunk"|"delta"\s*:', match[1]):
                return CHAT
            continue
        protocol = protocol_of_value(value)
        if protocol == CHAT:
            return CHAT
        named = named or protocol
    return named


def protocol_of_value(value: Any) -> str | None:
    """Name the protocol of one event's object; None where it could be of any (an error, a usage report, a
    ping)."""
    if not isinstance(value, dict):
        return None
    if is_chunk(value):
        return CHAT
    choices = value.get("choices")
    if isinstance(choices, list) and any(isinstance(choice, dict) and "text" in choice for choice in choices):
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
    choices = value.get("choices")
    if isinstance(choices, list) and any(
        isinstance(choice, dict) and "delta" in choice for choice in choices
    ):
        return True
    return value.get("object") == "chat.completion.chunk"


def could_be_chunk(value: Any) -> bool:
    """Whether the value can stand among chunks: a chunk, or one without choices (usage, error, first)."""
    return is_chunk(value) or (
        isinstance(value, dict) and (value.get("choices") == [] or "error" in value or "usage" in value)
    )


def is_whole_answer(value: dict[str, Any]) -> bool:
    """Whether the value is an answer that was not streamed, or was put together before it was recorded."""
    choices = value.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and "message" in choice and "delta" not in choice for choice in choices
    )


def is_trace(keys: Iterable[str]) -> bool:
    """Whether the keys are those of a trace export (OpenTelemetry GenAI, OpenInference), which holds
    messages only."""
    return any(isinstance(key, str) and _ASSEMBLED_KEYS.fullmatch(key) for key in keys)


def lost_blank_lines(body: bytes) -> bool:
    """Whether a data line follows another one that is a whole JSON document: the recorder dropped blank
    lines."""
    return re.search(rb"^data:[ \t]*\{.*\}[ \t\r]*\ndata:[ \t]*[{\[]", body, re.MULTILINE) is not None
