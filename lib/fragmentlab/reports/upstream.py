"""Tolerated oddities that are worth a report to who sends them, each with what to say."""

from __future__ import annotations

_NULL = "leave {} out instead of sending null (a serializer option such as exclude_unset or omitempty)"

UPSTREAM: dict[str, str] = {
    "null_padding.id": _NULL.format("id") + "; strict clients refuse such a call",
    "null_padding.name": _NULL.format("function.name"),
    "null_padding.arguments": _NULL.format("function.arguments"),
    "null_padding.type": _NULL.format("type"),
    "null_padding.function": _NULL.format("function"),
    "null_padding.role": _NULL.format("role"),
    "null_padding.tool_calls": _NULL.format("tool_calls"),
    "null_padding.function_call": _NULL.format("function_call"),
    "null_padding.delta": _NULL.format("delta"),
    "null_padding.choices": _NULL.format("choices"),
    "repeated_id": "send the ID once, with the first fragment; some clients concatenate it",
    "repeated_finish": "send finish_reason once",
    "empty_finish": 'send finish_reason: null, not ""',
    "sparse_index": "number the calls of a response from 0 without gaps",
    "missing_type": 'send type: "function" with a call\'s first fragment',
    "missing_done": "end the stream with data: [DONE], or clients cannot tell an end from a cut",
    "repeated_done": "send [DONE] once",
    "response_id_changed": "keep one id for all chunks of a response",
    "replacement_character": "join UTF-8 sequences before decoding: a character was lost as U+FFFD",
}
"""Tolerance -> what to report. What only says how a stream was recorded is not in it."""
