"""A relay on loopback: passes requests on to an upstream server and answers back, read by read, unchanged.

What the client sees is what it would have seen: status, headers (other than those of a single connection),
bytes as they are packed, how the answer breaks off. What is done with an answer besides is a listener's part.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Protocol

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from fragmentlab.assembler.assembler import End
from fragmentlab.errors import InputError
from fragmentlab.runtime.gateway import is_loopback, trusted
from fragmentlab.runtime.loopback import HOST, LoopbackServer, reset
from fragmentlab.runtime.problems import PROBLEMS, connection_problem
from fragmentlab.wire.recorder import end_of

MAX_REQUEST_BYTES = 32 << 20
"""How much of a request is kept for the listener; a longer one is passed on all the same."""
_OF_ONE_CONNECTION = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer "
    b"transfer-encoding upgrade".split()
)
Headers = Iterable[tuple[bytes, bytes]]


class Listener(Protocol):
    """What follows one answer: each read once it was passed on, then how it ended."""

    def take(self, read: bytes) -> None:
        """Take a read that was just passed on."""

    def finish(self, end: End, note: str) -> None:
        """Take how the transport ended, and a word on it for people; called in a thread of its own."""


Listen = Callable[[bytes, httpx.Response | None], Listener]
"""Given a request's body and the head of its answer, None where there is none; returns its listener."""


class Relay(LoopbackServer):
    """A running relay. Use as a context manager; clients are given ``address``.

    Raises InputError for an upstream that is no address, and where the port is taken or may not be used.
    """

    def __init__(self, upstream: str, listen: Listen, port: int = 0) -> None:
        self._upstream = _checked(upstream)
        self._listen = listen
        self._client: httpx.AsyncClient | None = None
        super().__init__(self._serve, port)

    @property
    def address(self) -> str:
        """The base address to give to a client: the upstream's path on this machine."""
        return f"http://{HOST}:{self.port}{self._upstream.path.rstrip('/')}"

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["raw_path"].startswith(b"/"):
            refusal = PlainTextResponse("this is no proxy: give its address as the base URL\n", 400)
            await refusal(scope, receive, send)
            return
        asked, sent_up = bytearray(), asyncio.Event()
        request = self._request(Request(scope, receive), asked, sent_up)
        transport = self.transport(scope)
        listener: Listener | None = None
        try:
            async with _while_connected(receive, sent_up), self._answer(request) as response:
                listener = self._listen(bytes(asked), response)
                await _send_head(response, send)
                async for read in response.aiter_raw():
                    await send({"type": "http.response.body", "body": read, "more_body": True})
                    listener.take(read)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            end, note = end_of(response), ""
        except (httpx.TransportError, OSError) as error:
            end = "aborted"
            if listener is None:
                unreached = isinstance(error, httpx.ConnectError)
                note = connection_problem(error).line if unreached else PROBLEMS["gateway.closed"]
            else:
                note = "the upstream broke off"
            if listener and isinstance(error, httpx.ReadError):
                await reset(transport)
            else:
                transport.close()
        except (asyncio.CancelledError, ClientDisconnect):
            end, note = "unknown", "not read to its end"
        listener = listener or self._listen(bytes(asked), None)
        finished = asyncio.get_running_loop().run_in_executor(None, listener.finish, end, note)
        await asyncio.shield(finished)  # done even where the server is stopped meanwhile

    @asynccontextmanager
    async def _answer(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        response = await self._connected().send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    def _connected(self) -> httpx.AsyncClient:
        """Return the one client of this server's event loop; it waits as long as its own client does."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=trusted() if self._upstream.scheme == "https" else False,
                timeout=None,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
                follow_redirects=False,
                # A proxy of this environment is for servers elsewhere.
                trust_env=not is_loopback(self._upstream.host),
            )
        return self._client

    def _request(self, request: Request, asked: bytearray, sent_up: asyncio.Event) -> httpx.Request:
        """Return the request to pass on; its body is passed on as it comes and kept in ``asked``."""

        async def body() -> AsyncIterator[bytes]:
            async for part in request.stream():
                if len(asked) + len(part) <= MAX_REQUEST_BYTES:
                    asked.extend(part)
                yield part
            sent_up.set()

        raw = request.scope["headers"]
        headers = [(b"Host", self._upstream.netloc), *_passed_on(raw, b"host")]
        has_body = any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in raw)
        if not has_body:
            sent_up.set()
        base, path = self._upstream.raw_path.rstrip(b"/"), request.scope["raw_path"]
        if not (path + b"/").startswith(base + b"/"):
            path = base + path
        if query := request.scope["query_string"]:
            path += b"?" + query
        content = body() if has_body else None
        # Made here and not by the client, whose own headers would be added; the path goes on as it came.
        return httpx.Request(
            request.method, self._upstream, headers=headers, content=content, extensions={"target": path}
        )


@asynccontextmanager
async def _while_connected(receive: Receive, sent_up: asyncio.Event) -> AsyncIterator[None]:
    """Cancel the block when the client closes its connection after its request was passed on."""

    async def client_left() -> None:
        await sent_up.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    block, is_over = asyncio.current_task(), False

    def leave(task: asyncio.Task[None]) -> None:
        if block and not is_over:
            block.cancel()

    left = asyncio.create_task(client_left())
    left.add_done_callback(leave)
    try:
        yield
    finally:
        is_over = True
        left.cancel()


async def _send_head(response: httpx.Response, send: Send) -> None:
    headers = list(_passed_on(response.headers.raw))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})


def _passed_on(headers: Headers, *besides: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers but those of a single connection, which ``Connection`` may name more of."""
    own = set(_OF_ONE_CONNECTION.union(besides))
    for name, value in headers:
        if name.lower() == b"connection":
            own |= {named.strip().lower() for named in value.split(b",")}
    yield from ((name, value) for name, value in headers if name.lower() not in own)


def _checked(upstream: str) -> httpx.URL:
    try:
        url = httpx.URL(upstream)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise InputError("--upstream is not a valid URL") from None
    if url.scheme not in ("http", "https") or not url.host or not 0 < (url.port or 1) < 1 << 16:
        raise InputError(
            "--upstream must be a base URL that begins with https:// or http:// and names a host"
        )
    if url.userinfo or url.query or url.fragment:
        raise InputError(
            "--upstream may hold no user, query or fragment; the client's own headers are passed on"
        )
    return url
