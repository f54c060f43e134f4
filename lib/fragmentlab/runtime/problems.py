"""What can go wrong between this host and a model server: one line each, with nothing of the server in it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

PROVIDER_HEADER = "x-fragmentlab-provider"
"""Stands in every answer of the kit's own provider, so that nobody takes it for a model server."""
PROBLEMS = {
    "gateway.name": "the server's name could not be resolved; check the address",
    "gateway.connect": "no server accepts connections at the address; start it or check the address",
    "gateway.connect_timeout": "no connection came about within {seconds:g} s",
    "gateway.tls": "no secure connection: the server's certificate or TLS version was not accepted",
    "gateway.closed": "the server closed the connection without an answer",
    "gateway.protocol": "the answer is not valid HTTP",
    "gateway.key": "the server wants a valid key (HTTP status {status}); set FRAGMENTLAB_API_KEY",
    "gateway.redirect": "the server redirects (HTTP status {status}), not followed; give the final address",
    "gateway.status": "the server answered with HTTP status {status} instead of a stream",
    "gateway.html": "the server answered with a web page, not an event stream; check the address's path",
    "gateway.not_sse": "the server answered with another content type than text/event-stream",
    "gateway.encoding": "the server compressed the stream although that was declined",
    "gateway.idle": "the server sent nothing for {seconds:g} s",
    "gateway.deadline": "the answer was not complete after {seconds:g} s",
    "gateway.empty": "the server answered with an empty body instead of a stream",
    "gateway.own": "this is the kit's own loopback provider, not a model server; give another address",
    "gateway.cut": "the connection broke before the stream was complete",
}
"""Kind -> the line that says it."""


@dataclass(frozen=True)
class Problem:
    """One problem of a request; ``line`` holds no address, key, header or content."""

    kind: str
    seconds: float = 0.0
    status: int = 0

    @property
    def line(self) -> str:
        return PROBLEMS[self.kind].format(seconds=self.seconds, status=self.status)


def connection_problem(error: BaseException) -> Problem:
    """Tell name, TLS and plain connection failures apart by what lies under a client's exception."""
    causes = list(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Problem("gateway.name")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return Problem("gateway.tls")
    return Problem("gateway.connect")


def status_problem(status: int) -> Problem:
    """The problem that an HTTP status other than 200 stands for."""
    if status in (401, 403):
        return Problem("gateway.key", status=status)
    return Problem("gateway.redirect" if 300 <= status < 400 else "gateway.status", status=status)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
