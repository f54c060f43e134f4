"""The loopback provider: a real HTTP server that plays a scenario to any Chat Completions client.

It listens on 127.0.0.1 only, checks the Host header, takes one kind of request up to a size, and keeps what
it was sent in memory alone.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fragmentlab.runtime.loopback import HOST, LoopbackServer, reset
from fragmentlab.runtime.problems import PROVIDER_HEADER
from fragmentlab.runtime.scenarios import Scenario
from fragmentlab.runtime.sending import Sending
from fragmentlab.runtime.session import BadRequest, Session
from fragmentlab.runtime.task import Task

PATH = "/v1/chat/completions"
MAX_BODY_BYTES = 32 << 20


class Provider(LoopbackServer):
    """A running server. Use as a context manager; ``play`` chooses what it streams from then on.

    Raises InputError where the port is taken or may not be used.
    """

    def __init__(self, port: int = 0) -> None:
        self._session: Session | None = None
        super().__init__(Starlette(routes=[Route(PATH, self._complete, methods=["POST"])]), port)

    @property
    def address(self) -> str:
        """The base address to give to a client."""
        return f"http://{HOST}:{self.port}/v1"

    def play(self, scenario: Scenario, task: Task) -> Session:
        """Play this scenario from its first turn; return the session that remembers what happens."""
        self._session = Session(scenario, task)
        return self._session

    async def _complete(self, request: Request) -> Response:
        try:
            session = self._session
            if session is None:
                return _refusal(503, "no_scenario", "no scenario is being played")
            if not _is_json(request.headers.get("content-type", "application/json")):
                return _refusal(415, "content_type", "the body must be application/json")
            body = await _body(request)
            if body is None:
                return _refusal(413, "body_too_large", f"the body is larger than {MAX_BODY_BYTES >> 20} MiB")
            return _Stream(session.answer(_request_object(body)), self.transport(request.scope))
        except BadRequest as bad:
            return _refusal(400, bad.code, str(bad))
        except ClientDisconnect:
            return Response(status_code=400)


class _Stream(Response):
    """Sends reads one by one, then ends the response as the scenario says."""

    def __init__(self, sending: Sending, transport: asyncio.Transport) -> None:
        super().__init__()
        self._sending, self._transport = sending, transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (PROVIDER_HEADER.encode(), b"1"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for read in self._sending.reads:
            if self._transport.is_closing():
                return  # a client may stop reading at the first fault
            await send({"type": "http.response.body", "body": read, "more_body": True})
        match self._sending.how:
            case "end":
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            case "reset":
                await reset(self._transport)
            case "hold":
                while (await receive())["type"] != "http.disconnect":
                    pass
            # "close": the server closes the connection of a response that was never completed.


async def _body(request: Request) -> bytes | None:
    """The body, or None as soon as it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _is_json(content_type: str) -> bool:
    """Return whether the type is JSON's; a web page can send any other without asking."""
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _request_object(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("invalid_json", "the body is not JSON") from None
    if not isinstance(request, dict):
        raise BadRequest("invalid_json", "the body is not a JSON object")
    if request.get("stream") is not True:
        raise BadRequest("stream", "this server only streams: send stream true")
    if not isinstance(request.get("model"), str):
        raise BadRequest("model", "model must be a string")
    return request


def _refusal(status: int, code: str, message: str) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    # The rest of a body that is not read would be taken for the next request.
    headers = {PROVIDER_HEADER: "1", **({"connection": "close"} if status in (413, 415) else {})}
    return JSONResponse({"error": error}, status, headers=headers)
