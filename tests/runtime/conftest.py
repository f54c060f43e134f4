"""A provider on loopback, small tasks, and servers that misbehave on a real socket."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.runtime.gateway import Gateway, Timeouts
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import Scenario, load_scenario
from fragmentlab.runtime.task import Task

Answer = Callable[[socket.socket, threading.Event], None]
SMALL = Task(pages=2, kilobytes=1)
QUICK = Timeouts(connect=2.0, idle=0.6, total=1.5, linger=0.2)
CALM = Timeouts(connect=10.0, idle=10.0, total=20.0, linger=0.2)
"""For what must not depend on how busy the machine is."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
DONE_TEXT = (
    b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
)


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """Run one provider for all tests; each plays its own scenario on it."""
    with Provider() as running:
        yield running


@pytest.fixture
def scenario_of(tmp_path: Path) -> Callable[..., Scenario]:
    """Make a scenario from its fields, through a file as anyone would."""

    def make(turns: list[dict[str, Any]], **fields: Any) -> Scenario:
        data = {
            "schema": "fragmentlab-scenario-v1",
            "name": "made",
            "kind": "variant",
            "about": "Made by a test.",
            "turns": turns,
            "expect": {"status": "done"},
            **fields,
        }
        path = tmp_path / f"{data['name']}.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return load_scenario(path)

    return make


class RawServers:
    """Servers that take one request a connection and hand it to a function; ``requests`` holds what came."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._stop = threading.Event()
        self._listeners: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __call__(self, answer: Answer, scheme: str = "http", **given: Any) -> Gateway:
        """Return a gateway to a server that answers so."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        read = _request if scheme == "http" else _hello
        self._threads.append(threading.Thread(target=self._run, args=(listener, read, answer), daemon=True))
        self._threads[-1].start()
        port = listener.getsockname()[1]
        return Gateway(f"{scheme}://127.0.0.1:{port}/v1", "m", **{"timeouts": CALM, **given})

    def close(self) -> None:
        self._stop.set()
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in self._threads:
            thread.join(5)

    def _run(self, listener: socket.socket, read: Callable[[socket.socket], bytes], answer: Answer) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.settimeout(5)
                    self.requests.append(read(connection))
                    answer(connection, self._stop)
                except OSError:
                    pass


@pytest.fixture
def serve() -> Iterator[RawServers]:
    """Give servers that misbehave, and stop them."""
    servers = RawServers()
    yield servers
    servers.close()


def _hello(connection: socket.socket) -> bytes:
    """Read what opens a TLS connection."""
    return connection.recv(1 << 16)


def _request(connection: socket.socket) -> bytes:
    """Read the whole request: a connection that is closed with bytes unread is reset, and its answer lost."""
    data = b""
    while part := connection.recv(1 << 16):
        data += part
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            break
    return data


def chunked(*parts: bytes) -> bytes:
    """Return parts as HTTP chunks, without the chunk that ends the body."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
