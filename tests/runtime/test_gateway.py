"""The gateway against servers that fail in every way: one distinct line each, in time, quoting nothing."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.rules import rules_from_json
from fragmentlab.corpus.rules import find_rules
from fragmentlab.errors import InputError
from fragmentlab.runtime.gateway import Gateway, Reply, Timeouts, executable_rules
from fragmentlab.runtime.problems import PROBLEMS
from tests.runtime.conftest import CALM, DONE_TEXT, HEAD, QUICK, Answer, RawServers, chunked

CANARY = "CANARY-7f3a"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
OPEN = HEAD + b"Connection: close\r\n\r\n"
PROMPT = [{"role": "user", "content": "CANARY-prompt"}]


def _send(data: bytes) -> Answer:
    return lambda connection, stop: connection.sendall(data)


def _status(line: bytes, *headers: bytes) -> Answer:
    head = b"\r\n".join([b"HTTP/1.1 " + line, *headers, b"Content-Length: 11", b"", CANARY.encode()])
    return _send(head)


def _drip(first: bytes, piece: bytes) -> Answer:
    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(first)
        while not stop.wait(0.05):
            connection.sendall(piece)

    return answer


def _hold(first: bytes) -> Answer:
    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(first)
        stop.wait(10)

    return answer


FAILURES: dict[str, tuple[str, Answer]] = {
    "key": ("gateway.key", _status(b"401 CANARY-7f3a")),
    "redirect": ("gateway.redirect", _status(b"307 Moved", b"Location: https://CANARY-7f3a.example/")),
    "status": ("gateway.status", _status(b"500 CANARY-7f3a")),
    "html": ("gateway.html", _status(b"200 OK", b"Content-Type: text/html")),
    "json": ("gateway.not_sse", _status(b"200 OK", b"Content-Type: application/json")),
    "gzip": (
        "gateway.encoding",
        _status(b"200 OK", b"Content-Type: text/event-stream", b"Content-Encoding: gzip"),
    ),
    "closed": ("gateway.closed", _send(b"")),
    "no http": ("gateway.protocol", _send(b"SSH-2.0-CANARY-7f3a\r\n\r\n")),
    "silent": ("gateway.idle", _hold(b"")),
    "slow head": ("gateway.deadline", _drip(b"HTTP/1.1 200 OK\r\nX-", b"a")),
}
MIDWAY: dict[str, tuple[str, Answer]] = {
    "silent midway": ("gateway.idle", _hold(CHUNKED + chunked(DONE_TEXT[:40]))),
    "a byte at a time": ("gateway.deadline", _drip(CHUNKED + chunked(DONE_TEXT[:40]), chunked(b" "))),
    "never-ending comments": ("gateway.deadline", _drip(CHUNKED, chunked(b": still here\n\n"))),
    "never-ending chunks": (
        "gateway.deadline",
        _drip(CHUNKED, chunked(DONE_TEXT.split(b"\n\n")[0] + b"\n\n")),
    ),
    "cut body": ("gateway.cut", _send(CHUNKED + chunked(DONE_TEXT))),
    "broken chunks": ("gateway.cut", _send(CHUNKED + chunked(DONE_TEXT[:40]) + b"CANARY\r\n")),
    "short body": ("gateway.cut", _send(HEAD + b"Content-Length: 9999\r\n\r\n" + DONE_TEXT)),
}


def _ask(gateway: Gateway) -> Reply:
    started = time.monotonic()
    reply = gateway.ask(PROMPT)
    assert time.monotonic() - started < gateway.timeouts.total + 4
    return reply


def _timeouts(kind: str) -> Timeouts:
    """Short ones for what ends by time alone."""
    return QUICK if kind in ("gateway.idle", "gateway.deadline") else CALM


def _is_quiet(line: str, gateway: Gateway) -> bool:
    return not any(
        part in line for part in ("CANARY", "127.0.0.1", "http://", gateway.address.split(":")[-1][:5], "\n")
    )


@pytest.mark.parametrize("name", FAILURES)
def test_failure_before_a_stream(serve: RawServers, name: str) -> None:
    """Each failure before a stream begins has its own line, in time, without address, header or content."""
    kind, answer = FAILURES[name]
    gateway = serve(answer, key=CANARY, timeouts=_timeouts(kind))
    reply = _ask(gateway)
    assert reply.problem is not None and reply.result is None
    assert (reply.problem.kind, reply.refusal) == (kind, kind)
    assert _is_quiet(reply.problem.line, gateway)


@pytest.mark.parametrize("name", MIDWAY)
def test_failure_midway(serve: RawServers, name: str) -> None:
    """A stream that breaks, stalls, drips or never ends is a transport error in the assembler, in time."""
    kind, answer = MIDWAY[name]
    gateway = serve(answer, timeouts=_timeouts(kind))
    reply = _ask(gateway)
    assert reply.problem is not None and reply.result is not None
    assert (reply.problem.kind, reply.result.category) == (kind, "completion.transport_error")
    assert _is_quiet(reply.problem.line, gateway)


def test_lines_are_distinct() -> None:
    """No two problems share a line."""
    assert len(set(PROBLEMS.values())) == len(PROBLEMS)


def test_no_server() -> None:
    """A port that nobody listens on is said as such."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    reply = _ask(Gateway(f"http://127.0.0.1:{port}/v1", "m", timeouts=CALM))
    assert reply.problem is not None and reply.problem.kind == "gateway.connect"


def test_no_such_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that does not resolve is told apart from a server that is down."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "CANARY")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    reply = _ask(Gateway("https://CANARY.invalid/v1", "m", timeouts=CALM))
    assert reply.problem is not None and reply.problem.kind == "gateway.name"


def test_no_tls(serve: RawServers) -> None:
    """A server that does not speak TLS where it must is said as such."""
    gateway = serve(_send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), scheme="https")
    reply = _ask(gateway)
    assert reply.problem is not None and reply.problem.kind == "gateway.tls"


def test_connect_timeout() -> None:
    """A server whose queue is full is given up on after the stated seconds."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        try:
            for client in waiting:
                client.setblocking(False)
                client.connect_ex(address)
            timeouts = Timeouts(connect=0.3, idle=1.0, total=3.0, linger=0.1)
            reply = _ask(Gateway(f"http://127.0.0.1:{address[1]}/v1", "m", timeouts=timeouts))
        finally:
            for client in waiting:
                client.close()
    assert reply.problem is not None and reply.problem.kind == "gateway.connect_timeout"


@pytest.mark.parametrize(
    ("answer", "tolerances"),
    [
        (_send(CHUNKED + chunked(DONE_TEXT) + b"0\r\n\r\n"), {"missing_done": 1}),
        (_send(OPEN + DONE_TEXT), {"missing_done": 1, "unknown_end": 1}),
        (_send(CHUNKED + chunked(DONE_TEXT + b"data: [DONE]\n\n")), {}),
        (_hold(CHUNKED + chunked(DONE_TEXT + b"data: [DONE]\n\n")), {}),
    ],
    ids=["clean end", "end by closing", "cut after the end marker", "held open after the end marker"],
)
def test_ends_that_are_fine(serve: RawServers, answer: Answer, tolerances: dict[str, int]) -> None:
    """A stated length ends clean, a closed connection unknown, and after the end marker nothing matters."""
    reply = _ask(serve(answer))
    assert reply.result is not None and reply.problem is None
    assert (reply.result.outcome, reply.result.tolerances) == ("no_calls", tolerances)


def test_reading_stops_at_the_first_fault(serve: RawServers) -> None:
    """A refused stream is not read to its end: a server that goes on for ever does not hold the task."""
    bad = chunked(b"data: nonsense\n\n")
    reply = serve(_drip(CHUNKED + bad, bad)).ask(PROMPT)
    assert reply.result is not None and reply.result.category == "event.invalid_json"
    assert reply.seconds < 10


def test_only_the_given_key_is_sent(serve: RawServers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The given key is sent; proxies, credentials files and other keys of the environment are not used."""
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "CANARY-other")
    gateway = serve(_send(CHUNKED + chunked(DONE_TEXT) + b"0\r\n\r\n"), key="sent-key")
    assert _ask(gateway).result is not None
    [request] = serve.requests
    assert b"Bearer sent-key\r\n" in request and b"CANARY-other" not in request
    assert "sent-key" not in repr(gateway) and "127.0.0.1" not in repr(gateway)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://CANARY.example/v1", "must begin with https"),
        ("http://192.168.0.1/v1", "must begin with https"),
        ("https://user:CANARY@example.com/v1", "no user"),
        ("https://example.com/v1?key=CANARY", "no user, query"),
        ("ftp://CANARY/v1", "must begin with https"),
        ("CANARY", "must begin with https"),
        ("https://", "must begin with https"),
        ("https://CANARY:99999999/", "not a valid URL"),
        ("http://localhost.CANARY.example/", "must begin with https"),
    ],
)
def test_address_is_checked(address: str, said: str) -> None:
    """Plain HTTP off loopback, credentials in the address and nonsense are refused without quoting them."""
    with pytest.raises(InputError, match=said) as caught:
        Gateway(address, "m")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "a\nb", "é", " a", "a\0"])
def test_key_is_checked(key: str) -> None:
    """A key that no header can carry is refused without quoting it."""
    with pytest.raises(InputError, match="key is empty or holds"):
        Gateway("https://example.com/v1", "m", key)


def _unsafe() -> RuleSet:
    """A table that clears, changes and invents identities."""
    keep = find_rules("keep-established")
    cells = {identity: dict(row) for identity, row in keep.cells.items()}
    cells["absent"]["null"] = "keep"
    cells["established"] |= {"null": "set", "other_string": "set"}
    data = {"schema": "fragmentlab-rules-v1", "name": "accept-every-null", "note": "", "cells": cells}
    return rules_from_json(json.dumps(data))


def test_only_executable_rules_are_taken() -> None:
    """A table that breaks an invariant is refused with its name, also when it claims to break none."""
    unsafe = _unsafe()
    for rules in (unsafe, RuleSet(unsafe.name, unsafe.note, unsafe.cells)):
        with pytest.raises(InputError, match="refuses rule set accept-every-null") as caught:
            Gateway("https://example.com/v1", "m", rules=rules)
        for invariant in ("established_cleared", "established_changed", "null_keeps_nothing"):
            assert invariant in str(caught.value)
    assert executable_rules(find_rules("reject-null")).name == "reject-null"


def test_wrapped_rules_are_refused() -> None:
    """A rule set that is more than a table is not taken, whatever it says of itself."""

    class Lenient(RuleSet):
        def action(self, identity: str, column: str) -> str:
            return "keep"

    keep = find_rules("keep-established")
    with pytest.raises(InputError, match="tables only"):
        executable_rules(Lenient(keep.name, keep.note, keep.cells))


@pytest.mark.parametrize("name", ["accept-every-null", "last-wins", "generate-id", "inherit-response", ""])
def test_names_of_no_executable_table_are_refused(name: str) -> None:
    """A counterfactual's name, or none at all, is refused like any other rules that may not execute."""
    with pytest.raises(InputError, match="executable rule tables only"):
        Gateway("https://example.com/v1", "m", rules=name)
