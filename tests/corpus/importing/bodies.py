"""Bodies and requests that the tests put into containers."""

from __future__ import annotations

import json
from typing import Any

URL = "https://api.openai.com/v1/chat/completions"
REQUEST = json.dumps(
    {
        "model": "gpt-4o-mini",
        "stream": True,
        "messages": [{"role": "user", "content": 'data: {"choices": [{"delta": {}}]}\n\nwhat is that?'}],
        "tools": [
            {"type": "function", "function": {"name": "lookup_city", "parameters": {"type": "object"}}}
        ],
    }
)
CHUNKS: list[dict[str, Any]] = [
    {"id": "r1", "object": "chat.completion.chunk", "model": "gpt-4o-mini-2024-07-18", "choices": [choice]}
    for choice in (
        {"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None},
        {
            "index": 0,
            "delta": {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "lookup_city", "arguments": '{"city": "Zü'},
                    }
                ]
            },
            "finish_reason": None,
        },
        {
            "index": 0,
            "delta": {
                "tool_calls": [{"index": 0, "id": None, "function": {"arguments": 'rich: it\'s "ok"🙂"}'}}]
            },
            "finish_reason": None,
        },
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    )
]
CHUNKS[2]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] = 'rich: it\'s \\"ok\\"🙂"}'
EVENTS = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in CHUNKS] + ["data: [DONE]\n\n"]
BODY = "".join(EVENTS).encode()
TEXT_BODY = (
    b'data: {"id":"r2","object":"chat.completion.chunk",'
    b'"choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
    b'data: {"id":"r2","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
ANTHROPIC_BODY = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","role":"assistant"}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
ANSWER = json.dumps(
    {"id": "r3", "object": "chat.completion", "choices": [{"index": 0, "message": {"content": "hi"}}]}
)
