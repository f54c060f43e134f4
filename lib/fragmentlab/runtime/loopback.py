"""An HTTP server on 127.0.0.1 in a thread of its own, which can reset a connection as a crash does."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import socket
import struct
import termios
import threading
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from fragmentlab.errors import InputError

HOST = "127.0.0.1"
_START_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 90
"""Longer than clients keep an idle connection, so that it is never the server that closes one."""
_RESET = struct.pack("ii", 1, 0)


class LoopbackServer:
    """Serves one application to this machine only, while used as a context manager.

    Requests whose Host header names another host are refused, so that a web page cannot reach the server
    under a name of its own. Raises InputError where the port is taken or may not be used.
    """

    def __init__(self, app: ASGIApp, port: int = 0) -> None:
        self._transports: dict[Any, asyncio.Transport] = {}
        self._socket = _listen(port)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(_config(app, self._transports))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._server.ready.wait(_START_SECONDS):
            raise InputError("the loopback server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Responses that are held open must not keep the server alive.
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(_START_SECONDS)
        self._socket.close()

    def wait(self) -> None:
        """Serve until interrupted."""
        # Not by joining: a thread whose join was interrupted counts as ended, and nothing waits for it again.
        while not self._ended.wait(0.5):
            pass

    def _run(self) -> None:
        try:
            self._server.run([self._socket])
        finally:
            self._ended.set()

    def transport(self, scope: Scope) -> asyncio.Transport:
        """Return the connection of a request."""
        return self._transports[tuple(scope["client"])]


async def reset(transport: asyncio.Transport) -> None:
    """Reset the connection, as a crashed process or a dropped tunnel does, once everything has arrived."""
    connection = transport.get_extra_info("socket")
    # No event tells when the other side has everything.
    while not transport.is_closing() and (transport.get_write_buffer_size() or _unacknowledged(connection)):  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    if not transport.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()


class _Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def _config(app: ASGIApp, transports: dict[Any, asyncio.Transport]) -> uvicorn.Config:
    class Protocol(H11Protocol):
        """Remembers the transport of each client address, so that a response can end its connection."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            transports[self.client] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            transports.pop(self.client, None)
            super().connection_lost(exc)

    return uvicorn.Config(
        TrustedHostMiddleware(app, allowed_hosts=[HOST, "localhost"], www_redirect=False),
        http=Protocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )


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


def _unacknowledged(connection: socket.socket) -> int:
    """Return how many bytes the other side's system has not taken yet; 0 where the system does not say."""
    try:
        return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4), "little")
    except OSError:
        return 0
