"""The relay that records: what a client sees through it and what is kept, with servers on real sockets."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import brotli
import httpx
import pytest
import zstandard

from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.runtime.recordings import Recordings
from fragmentlab.runtime.relay import Relay
from fragmentlab.wire.events import body
from fragmentlab.wire.fragments import chunk, delta, fragment
from fragmentlab.wire.recorder import recordings_folder
from tests.runtime.conftest import Answer, RawServers, chunked

ASKED = {"model": "m", "stream": True, "tools": [{"type": "function", "function": {"name": "look_up"}}]}
BODY = body(
    [
        chunk(delta(fragment(0, {"name": "look_up", "arguments": "{"}, id="a"))),
        chunk(delta(fragment(0, {"arguments": "}"}, id=None))),
        chunk({}, "tool_calls"),
    ]
)
CUT = BODY[:120]
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nX-Request-Id: r-1\r\n"


def _answer(head: bytes, body: bytes = b"", *, is_reset: bool = False) -> Answer:
    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(head + b"\r\n" + body)
        if is_reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return answer


def _length(body: bytes, head: bytes = STREAM) -> Answer:
    return _answer(head + b"Content-Length: %d\r\n" % len(body), body)


def _packed(coding: bytes, body: bytes) -> Answer:
    return _length(body, STREAM + b"Content-Encoding: " + coding + b"\r\n")


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CHUNKED = STREAM + b"Transfer-Encoding: chunked\r\n"
KEPT: dict[str, tuple[Answer, str, bytes, str]] = {
    "length": (_length(BODY), "clean", BODY, "accepted"),
    "chunked": (_answer(CHUNKED, chunked(BODY[:70], BODY[70:]) + b"0\r\n\r\n"), "clean", BODY, "accepted"),
    "until closed": (_answer(STREAM, BODY), "unknown", BODY, "accepted"),
    "gzip": (_packed(b"gzip", gzip.compress(BODY)), "clean", BODY, "accepted"),
    "two gzip members": (_packed(b"x-gzip", gzip.compress(CUT) + gzip.compress(BODY[120:])),
                         "clean", BODY, "accepted"),
    "deflate": (_packed(b"deflate", zlib.compress(BODY)), "clean", BODY, "accepted"),
    "raw deflate": (_packed(b"deflate", _raw_deflate(BODY)), "clean", BODY, "accepted"),
    "brotli": (_packed(b"br", brotli.compress(BODY)), "clean", BODY, "accepted"),
    "zstd": (_packed(b"zstd", zstandard.compress(BODY)), "clean", BODY, "accepted"),
    "gzip, brotli": (_packed(b"gzip, br", brotli.compress(gzip.compress(BODY))), "clean", BODY, "accepted"),
    "reset": (_answer(CHUNKED, chunked(CUT), is_reset=True), "aborted", CUT,
              "rejected completion.transport_error"),
    "chunked, cut": (_answer(CHUNKED, chunked(CUT)), "aborted", CUT, "rejected completion.transport_error"),
    "short": (_answer(STREAM + b"Content-Length: 999\r\n", CUT), "aborted", CUT,
              "rejected completion.transport_error"),
    "no UTF-8": (_length(CUT + b"\xff\n\n"), "clean", CUT + b"\xff\n\n", "rejected event.invalid_utf8"),
}  # fmt: skip
"""Name -> how the server answers, the end that is recorded, the bytes kept and the outcome told."""
JSON = b"Content-Type: application/json\r\n"
PASSED: dict[str, tuple[Answer, str]] = {
    "an error": (_length(b'{"error":{}}', b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\n" + JSON), "status 429"),
    "a redirect": (_length(b"", b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/v2\r\n"), "status 307"),
    "not streamed": (_length(b'{"choices":[]}', b"HTTP/1.1 200 OK\r\n" + JSON), "status 200"),
    "nothing": (_length(b"", b"HTTP/1.1 204 No Content\r\n"), "status 204"),
    "no answer": (lambda connection, stop: None, "no answer"),
    "an empty stream": (_answer(CHUNKED, b"0\r\n\r\n"), "nothing came"),
    "no gzip": (_packed(b"gzip", BODY), "not kept; it is not packed as its headers say"),
    "unknown coding": (_packed(b"x-own", BODY), "not kept; its content encoding is not known here"),
}  # fmt: skip
"""Name -> how the server answers where nothing is kept, and what is told of it."""


class Recorder:
    """A relay in front of an upstream, its folder and the lines that it told."""

    def __init__(self, folder: Path, upstream: str) -> None:
        self.lines: list[str] = []
        self.folder = folder
        self.recordings = Recordings(recordings_folder(folder), self._tell)
        self.relay = Relay(upstream, self.recordings.listen)
        self._told = threading.Condition()

    def _tell(self, line: str) -> None:
        with self._told:
            self.lines.append(line)
            self._told.notify_all()

    def told(self, count: int = 1) -> list[str]:
        """Wait for as many lines: an answer is told after its client has it all."""
        with self._told:
            assert self._told.wait_for(lambda: len(self.lines) >= count, 10), self.lines
        return self.lines

    def streams(self) -> list[Stream]:
        summary = Summary()
        found = [item.stream for item in import_streams([str(self.folder)], summary)]
        assert not summary.faults
        return found


@pytest.fixture
def record(serve: RawServers, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Recorder]:
    """Start a relay in front of a server that answers so."""

    def start(answer: Answer) -> Recorder:
        recorder = Recorder(tmp_path / "recordings", serve(answer).address)
        recorder.relay.__enter__()
        request.addfinalizer(lambda: recorder.relay.__exit__(None, None, None))
        return recorder

    return start


def _seen(address: str, **asked: Any) -> tuple[Any, ...]:
    """What a client sees: status, headers and bytes as they were sent, and how it breaks off."""
    status, headers, read, error = 0, [], b"", None
    with httpx.Client(trust_env=False, timeout=10) as client:
        try:
            with client.stream("POST", f"{address}/chat/completions", json=ASKED | asked) as response:
                own = (b"transfer-encoding", b"connection")
                headers = [item for item in response.headers.raw if item[0].lower() not in own]
                status = response.status_code
                for data in response.iter_raw():
                    read += data
        except httpx.TransportError as caught:
            error = type(caught)
    return status, headers, read, error


@pytest.mark.parametrize("name", KEPT)
def test_a_stream_passes_unchanged_and_is_kept(
    record: Callable[..., Recorder], serve: RawServers, name: str
) -> None:
    """The client sees what it sees without the relay; the recording holds the unpacked bytes and the end."""
    answer, end, kept, outcome = KEPT[name]
    recorder = record(answer)
    assert _seen(recorder.relay.address) == _seen(serve(answer).address)
    (line,) = recorder.told()
    (stream,) = recorder.streams()
    assert (stream.body, stream.end, stream.tools) == (kept, end, ("look_up",))
    (file,) = recorder.folder.glob("*.jsonl")
    nulls = stream.assemble(diagnose=True).counts["null_continuations"]
    assert line.startswith(f"1  {outcome}  nulls {nulls}  {file.name}")
    assert line.endswith("the upstream broke off") == (end == "aborted")
    assert recorder.recordings.summary() == f"1 answers, 1 recorded: 1 {outcome}"


@pytest.mark.parametrize("name", PASSED)
def test_another_answer_passes_unchanged_and_nothing_is_kept(
    record: Callable[..., Recorder], serve: RawServers, name: str
) -> None:
    """Errors, redirects, whole answers, no answer: the client sees each, and one line tells of it."""
    answer, told = PASSED[name]
    recorder = record(answer)
    assert _seen(recorder.relay.address) == _seen(serve(answer).address)
    assert recorder.told()[0].startswith(f"1  {told}")
    assert [path.name for path in recorder.folder.iterdir()] == [".gitignore"]


def test_an_upstream_that_is_not_there_is_a_lost_connection(tmp_path: Path) -> None:
    """The client sees a connection error, as it would; the line says what to check."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    recorder = Recorder(tmp_path / "recordings", f"http://127.0.0.1:{port}/v1")
    with recorder.relay:
        status, _, _, error = _seen(recorder.relay.address)
        assert status == 0 and issubclass(error, httpx.TransportError)
        assert "no server accepts connections at the address" in recorder.told()[0]


def test_a_request_passes_as_it_was_written(record: Callable[..., Recorder], serve: RawServers) -> None:
    """Path, query, headers and body go on untouched, none is added; those of one connection stay behind."""
    recorder = record(_length(BODY))
    asked = json.dumps(ASKED).encode()
    lines = [b"POST /v1/a%2Fb/../chat/completions?q=%41&q= HTTP/1.1", b"Host: localhost", b"X-Odd: \xe4;  b"]
    lines += [b"Authorization: Bearer key", b"Connection: keep-alive, X-Hop", b"X-Hop: 1", b"TE: trailers"]
    lines += [b"Content-Length: %d" % len(asked), b"", asked]
    with socket.create_connection(("127.0.0.1", recorder.relay.port)) as connection:
        connection.sendall(b"\r\n".join(lines))
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
    (came,) = serve.requests
    head, _, rest = came.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    assert (first, rest) == (lines[0], asked)
    named = dict(line.lower().split(b": ", 1) for line in headers)
    assert set(named) <= {b"host", b"x-odd", b"authorization", b"content-length", b"connection"}
    assert named[b"x-odd"] == b"\xe4;  b" and b"x-hop" not in named.get(b"connection", b"")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
def test_the_upstreams_path_is_added_where_a_client_leaves_it_out(
    record: Callable[..., Recorder], serve: RawServers, path: str
) -> None:
    """A client may be given the printed address or the bare one."""
    recorder = record(_length(BODY))
    httpx.post(f"http://127.0.0.1:{recorder.relay.port}{path}", json=ASKED, trust_env=False)
    assert serve.requests[0].startswith(b"POST /v1/chat/completions HTTP/1.1")


def test_each_read_goes_on_at_once(record: Callable[..., Recorder]) -> None:
    """A client has an event before the server sends the next one, and the file has it too."""
    go_on = threading.Event()

    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(CHUNKED + b"\r\n" + chunked(CUT))
        assert go_on.wait(10)
        connection.sendall(chunked(BODY[120:]) + b"0\r\n\r\n")

    recorder = record(answer)
    address = f"{recorder.relay.address}/chat/completions"
    with httpx.stream("POST", address, json=ASKED, trust_env=False) as response:
        reads = response.iter_raw()
        assert next(reads) == CUT
        go_on.set()
        assert b"".join(reads) == BODY[120:]
    assert recorder.told()[0].startswith("1  accepted")


def test_a_client_that_leaves_is_felt_upstream(record: Callable[..., Recorder]) -> None:
    """The upstream's connection closes as it would have; what came is kept, its end not known."""
    was_closed = threading.Event()

    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(CHUNKED + b"\r\n" + chunked(CUT))
        connection.settimeout(10)
        if connection.recv(1) == b"":
            was_closed.set()

    recorder = record(answer)
    address = f"{recorder.relay.address}/chat/completions"
    with httpx.stream("POST", address, json=ASKED, trust_env=False) as response:
        assert next(response.iter_raw()) == CUT
    assert was_closed.wait(10)
    assert recorder.told()[0].endswith("; not read to its end")
    (stream,) = recorder.streams()
    assert (stream.body, stream.end) == (CUT, "unknown")


def test_what_came_is_kept_when_the_relay_is_stopped(record: Callable[..., Recorder]) -> None:
    """An answer that is still coming in is kept as far as it came."""

    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(CHUNKED + b"\r\n" + chunked(CUT))
        stop.wait(10)

    recorder = record(answer)
    address = f"{recorder.relay.address}/chat/completions"
    with httpx.stream("POST", address, json=ASKED, trust_env=False) as response:
        assert next(response.iter_raw()) == CUT
        recorder.relay.__exit__(None, None, None)
    (stream,) = recorder.streams()
    assert (stream.body, stream.end) == (CUT, "unknown")


def test_many_at_once_are_kept_apart(record: Callable[..., Recorder]) -> None:
    """Answers that arrive together are one file each, and each client has its own."""
    together = threading.Barrier(12, timeout=20)

    def answer(connection: socket.socket, stop: threading.Event) -> None:
        threading.Thread(target=_late, args=(connection.dup(),), daemon=True).start()

    def _late(connection: socket.socket) -> None:
        with connection:
            own = b": %d\n\n" % together.wait() + BODY
            connection.sendall(CHUNKED + b"\r\n" + chunked(own) + b"0\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    recorder = record(answer)
    with ThreadPoolExecutor(12) as clients:
        seen = list(clients.map(lambda _: _seen(recorder.relay.address), range(12)))
    recorder.told(12)
    assert {read for _, _, read, _ in seen} == {stream.body for stream in recorder.streams()}
    assert len({read for _, _, read, _ in seen}) == 12


def test_requests_that_follow_each_other_share_a_connection(record: Callable[..., Recorder]) -> None:
    """A kept-alive client is served again on its connection."""
    recorder = record(_length(BODY))
    with httpx.Client(trust_env=False) as client:
        for _ in range(3):
            assert client.post(f"{recorder.relay.address}/chat/completions", json=ASKED).content == BODY
            assert len(client._transport._pool.connections) == 1  # type: ignore[attr-defined]
    assert len(recorder.told(3)) == 3


def test_nothing_but_the_answer_is_kept(record: Callable[..., Recorder]) -> None:
    """No header, key, prompt, query or address of the request reaches a file or a line."""
    recorder = record(_length(BODY))
    address = f"{recorder.relay.address}/chat/completions?key=CANARY"
    asked = ASKED | {"messages": [{"role": "user", "content": "CANARY"}], "model": "CANARY"}
    httpx.post(address, json=asked, headers={"Authorization": "Bearer CANARY"}, trust_env=False)
    told = " ".join(recorder.told()) + recorder.recordings.summary()
    for text in (told, *(path.read_text() for path in recorder.folder.iterdir())):
        assert "CANARY" not in text and "127.0.0.1" not in text and "r-1" not in text


@pytest.mark.parametrize(
    "upstream",
    ["", "api.example.com/v1", "ftp://host/", "http://", "http://u:CANARY@host/", "http://host/?k=1"],
)
def test_an_unusable_upstream_is_refused(tmp_path: Path, upstream: str) -> None:
    """It must be a plain base URL; what was given is not repeated."""
    with pytest.raises(InputError, match="--upstream") as refused:
        Relay(upstream, Recordings(tmp_path, print).listen)
    assert "CANARY" not in str(refused.value)


def test_other_hosts_names_and_proxied_requests_are_refused(record: Callable[..., Recorder]) -> None:
    """A web page under a name of its own cannot reach the upstream, and the relay is no open proxy."""
    recorder = record(_length(BODY))
    address = f"{recorder.relay.address}/chat/completions"
    assert httpx.post(address, headers={"Host": "evil.example"}, trust_env=False).status_code == 400
    with socket.create_connection(("127.0.0.1", recorder.relay.port)) as connection:
        connection.sendall(b"GET http://elsewhere.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert not recorder.lines
