"""A gateway behind ``--exec``: the official Python client on recorded bytes. Put yours where ``assemble`` is.

    pip install openai
    fragmentlab qualify data/vectors --revision my-1 --exec "python docs/examples/gateway_openai.py"

With ``--long-lived`` (given to the kit and to this script) one process takes all streams, many times faster.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import openai

REASONS = {
    openai.LengthFinishReasonError: "completion.length",
    openai.ContentFilterFinishReasonError: "completion.content_filter",
    json.JSONDecodeError: "event.invalid_json",
    openai.APIError: "completion.error_event",
    httpx.HTTPError: "completion.transport_error",
}
"""What the client raises -> the kit's category. Anything else is ``client_error`` (declare it with
--categories)."""


def assemble(body: bytes, end: str) -> list[dict[str, Any]]:
    """Give the bytes of one response to the client, as its network would, and return the calls it hands
    out."""

    def reads() -> Iterator[bytes]:
        yield body
        if end == "aborted":
            raise httpx.ReadError("connection reset")

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=reads())

    client = openai.OpenAI(
        api_key="unused",
        base_url="http://recorded.invalid/v1",
        max_retries=0,
        http_client=httpx.Client(transport=httpx.MockTransport(answer)),
    )
    with client.chat.completions.stream(model="any", messages=[{"role": "user", "content": "any"}]) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls or []
    return [
        {"index": n, "id": call.id, "name": call.function.name, "arguments": call.function.arguments}
        for n, call in enumerate(calls)
    ]


def outcome(body: bytes, end: str) -> dict[str, Any]:
    """The object that the kit reads: an outcome, and calls or a category."""
    try:
        calls = assemble(body, end)
    except Exception as error:
        category = next((name for kind, name in REASONS.items() if isinstance(error, kind)), "client_error")
        return {"outcome": "rejected", "category": category}
    return {"outcome": "accepted", "calls": calls} if calls else {"outcome": "no_calls"}


def main() -> None:
    if "--long-lived" not in sys.argv:
        print(json.dumps(outcome(sys.stdin.buffer.read(), os.environ["FRAGMENTLAB_END"])))
        return
    for line in sys.stdin.buffer:
        header = json.loads(line)
        body = sys.stdin.buffer.read(header["length"])
        print(json.dumps(outcome(body, header["end"])), flush=True)


if __name__ == "__main__":
    main()
