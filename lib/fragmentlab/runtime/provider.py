"""The loopback provider: a real HTTP server that plays a scenario to any Chat Completions client.

It listens on 127.0.0.1 only, checks the Host header, takes one kind of request up to a size, and keeps what
it was sent in memory alone.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import socket
import struct
import termios
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from fragmentlab.errors import InputError
from fragmentlab.runtime.scenarios import Scenario
from fragmentlab.runtime.session import Refused, Session
from fragmentlab.runtime.task import Task
from fragmentlab.runtime.wire import Script

HOST = "127.0.0.1"
PATH = "/v1/chat/completions"
MAX_BODY_BYTES = 32 << 20
_START_SECONDS = 10.0
_RESET = struct.pack("ii", 1, 0)


class Provider:
    """A running server. Use as a context manager; ``play`` chooses what it streams from then on.

    Raises InputError where the port is taken or may not be used.
    """

    def __init__(self, port: int = 0) -> None:
        self._session: Session | None = None
        self._transports: dict[Any, asyncio.Transport] = {}
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(self._config())
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True, name="provider"
        )

    @property
    def address(self) -> str:
        """The base address to give to a client."""
        return f"http://{HOST}:{self.port}/v1"

    def __enter__(self) -> Provider:
        self._thread.start()
        if not self._server.ready.wait(_START_SECONDS):
            raise InputError("the provider did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Responses that are held open on purpose must not keep the server alive.
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(_START_SECONDS)
        self._socket.close()

    def play(self, scenario: Scenario, task: Task) -> Session:
        """Play this scenario from its first turn; return the session that remembers what happens."""
        self._session = Session(scenario, task)
        return self._session

    def wait(self) -> None:
        """Serve until interrupted."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    async def _complete(self, request: Request) -> Response:
        try:
            session = self._session
            if session is None:
                return _refusal(503, "no_scenario", "no scenario is being played")
            body = await _body(request)
            if body is None:
                return _refusal(413, "body_too_large", f"the body is larger than {MAX_BODY_BYTES >> 20} MiB")
            return _Stream(session.answer(_request_object(body)), self._transports)
        except Refused as refused:
            return _refusal(400, refused.code, str(refused))
        except ClientDisconnect:
            return Response(status_code=400)

    def _config(self) -> uvicorn.Config:
        transports = self._transports

        class Protocol(H11Protocol):
            """Remembers the transport of each client address, so that a response can
            reset its own connection."""

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                transports[self.client] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                transports.pop(self.client, None)
                super().connection_lost(exc)

        app = Starlette(
            routes=[Route(PATH, self._complete, methods=["POST"])],
            middleware=[
                Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"], www_redirect=False)
            ],
        )
        return uvicorn.Config(
            app,
            http=Protocol,
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
        )


class _Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _Stream(Response):
    """Sends a script's reads one by one, then ends the response as the script says."""

    def __init__(self, script: Script, transports: Mapping[Any, asyncio.Transport]) -> None:
        super().__init__()
        self._script, self._transports = script, transports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = self._transports[tuple(scope["client"])]
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for read in self._script.reads:
            if transport.is_closing():
                return  # a client may stop reading at the first fault
            await send({"type": "http.response.body", "body": read, "more_body": True})
        match self._script.how:
            case "end":
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            case "reset":
                await _reset(transport)
            case "hold":
                while (await receive())["type"] != "http.disconnect":
                    pass
            # "close": the server closes the connection of a response that was never completed.


async def _reset(transport: asyncio.Transport) -> None:
    """Reset the connection, as a crashed process or a dropped tunnel does, once
    everything sent has arrived."""
    connection = transport.get_extra_info("socket")
    # No event tells when the other side has everything.
    while not transport.is_closing() and (transport.get_write_buffer_size() or _unacknowledged(connection)):  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def _unacknowledged(connection: socket.socket) -> int:
    """Bytes that the other side's system has not taken yet; 0 where the system does not say."""
    try:
        return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4), "little")
    except OSError:
        return 0


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # A port that was just freed can be taken again at once; one in use cannot.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is taken; choose another with --port, or leave it out for a free one"
            ) from None
        raise InputError("the port cannot be used; choose one from 1024 to 65535 with --port") from None
    return listener


async def _body(request: Request) -> bytes | None:
    """The body, or None as soon as it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _request_object(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused("invalid_json", "the body is not JSON") from None
    if not isinstance(request, dict):
        raise Refused("invalid_json", "the body is not a JSON object")
    if request.get("stream") is not True:
        raise Refused("stream", "this server only streams: send stream true")
    if not isinstance(request.get("model"), str):
        raise Refused("model", "model must be a string")
    return request


def _refusal(status: int, code: str, message: str) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    # The rest of a body that is not read would be taken for the next request.
    return JSONResponse({"error": error}, status, headers={"connection": "close"} if status == 413 else None)
