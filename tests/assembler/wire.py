"""Builders of streamed responses for the assembler's tests."""

from __future__ import annotations

import json
import random
from typing import Any

OMITTED: Any = object()
"""Stands for a field that the fragment does not have."""


def fragment(
    index: Any = 0,
    id: Any = OMITTED,
    name: Any = OMITTED,
    arguments: Any = OMITTED,
    **fields: Any,
) -> dict[str, Any]:
    """One item of ``delta.tool_calls``, without the fields that are OMITTED."""
    function = {k: v for k, v in {"name": name, "arguments": arguments}.items() if v is not OMITTED}
    built: dict[str, Any] = {"index": index, "id": id, **fields}
    if function:
        built["function"] = function
    return {k: v for k, v in built.items() if v is not OMITTED}


def chunk(*fragments: Any, finish: Any = OMITTED, **delta: Any) -> dict[str, Any]:
    """One ``chat.completion.chunk`` with these fragments in one delta."""
    choice: dict[str, Any] = {"index": 0, "delta": {**delta, "tool_calls": list(fragments)}}
    if not fragments:
        choice["delta"] = delta
    if finish is not OMITTED:
        choice["finish_reason"] = finish
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def sse(*events: Any, done: bool = True) -> bytes:
    """Events as Server-Sent Events; a str is raw data, anything else is encoded as JSON."""
    datas = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {data}\n\n" for data in [*datas, *(["[DONE]"] if done else [])]).encode(
        "utf-8", "surrogatepass"
    )


def response(*fragments: Any, finish: Any = "tool_calls", done: bool = True) -> bytes:
    """A whole response: each fragment in an event of its own, a finish, the end marker."""
    return sse(*[chunk(f) for f in fragments], chunk(finish=finish), done=done)


def call(index: int = 0, id: Any = "A", name: Any = "f", arguments: Any = "{}") -> dict[str, Any]:
    """A fragment that is a complete call."""
    return fragment(index, id, name, arguments, type="function")


def in_reads(body: bytes, seed: int, most: int = 40) -> list[bytes]:
    """The body cut into random reads, empty ones among them."""
    rng, at, reads = random.Random(seed), 0, []
    while at < len(body):
        size = rng.randint(0, most)
        reads.append(body[at : at + size])
        at += size
    return reads
