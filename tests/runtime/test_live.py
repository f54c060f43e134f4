"""A live server counts as evidence only for what it was seen to send."""

from __future__ import annotations

import socket
import threading

import pytest

from fragmentlab.assembler import load_rules
from fragmentlab.runtime.live import LiveRun, run_live
from tests.runtime.conftest import HEAD, SMALL, RawServers

FRAGMENT = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function",'
    b'"function":{"name":"list_sources","arguments":""}}]}}]}\n\n'
)


def _run(serve: RawServers, body: bytes, *, hold: bool) -> LiveRun:
    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(HEAD + b"Content-Length: 9999\r\n\r\n" + body)
        if hold:
            stop.wait(10)

    environment = {"FRAGMENTLAB_BASE_URL": serve(answer).address, "FRAGMENTLAB_MODEL": "m"}
    live = run_live(environment, SMALL, load_rules("keep-established"), 2 if hold else 20)
    assert live is not None
    return live


@pytest.mark.parametrize(
    ("hold", "said"), [(True, "the server sent nothing for 1 s"), (False, "the connection broke")]
)
def test_a_stream_that_broke_before_any_fragment_is_no_evidence(
    serve: RawServers, hold: bool, said: str
) -> None:
    """Bytes that never became a fragment leave only the line that says how the transport failed."""
    assert said in str(_run(serve, b"data: {", hold=hold).problem)


def test_a_stream_that_broke_among_fragments_is_a_finding(serve: RawServers) -> None:
    """What was observed before a cut stays evidence, with its category."""
    live = _run(serve, FRAGMENT, hold=False)
    assert live.problem is None and live.outcome is not None
    assert live.outcome.category == "completion.transport_error"
