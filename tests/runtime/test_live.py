"""A live server counts as evidence only for what it was seen to send."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler.rules import load_rules
from fragmentlab.runtime.agent import Agent
from fragmentlab.runtime.gateway import Gateway, Reply, Timeouts
from fragmentlab.runtime.journal import EffectJournal
from fragmentlab.runtime.live import LiveRun, run_live
from fragmentlab.runtime.policy import DEFAULT_POLICY
from fragmentlab.runtime.problems import Problem
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import find_scenario
from fragmentlab.runtime.workspace import Workspace
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
    ("hold", "said"), [(True, "the answer was not complete after 2 s"), (False, "the connection broke")]
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


def test_the_kits_own_provider_is_no_live_server(provider: Provider) -> None:
    """Whoever gives the address of ``fragmentlab provider`` is told so, and nothing counts as live."""
    provider.play(find_scenario("target"), SMALL)
    environment = {"FRAGMENTLAB_BASE_URL": provider.address, "FRAGMENTLAB_MODEL": "m"}
    live = run_live(environment, SMALL, load_rules("keep-established"), 20)
    assert live is not None and "the kit's own loopback provider" in str(live.problem)


@pytest.mark.parametrize("length", [b"Content-Length: 0\r\n", b""])
def test_an_empty_answer_is_no_evidence(serve: RawServers, length: bytes) -> None:
    """A server that answers 200 with nothing was not observed to do anything."""

    def answer(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(HEAD + length + b"\r\n")

    environment = {"FRAGMENTLAB_BASE_URL": serve(answer).address, "FRAGMENTLAB_MODEL": "m"}
    live = run_live(environment, SMALL, load_rules("keep-established"), 20)
    assert live is not None and "empty body" in str(live.problem)


def test_retries_share_the_deadline(tmp_path: Path) -> None:
    """A second attempt gets what the first one left of the time for an answer; without any, none is made."""
    asked: list[float] = []

    class Slow(Gateway):
        def ask(self, messages: Sequence[Mapping[str, Any]], seconds: float | None = None) -> Reply:
            assert seconds is not None
            asked.append(seconds)
            return Reply(None, Problem("gateway.closed"), 0.0)

    for total, attempts in ((60.0, 2), (0.0, 1)):
        asked.clear()
        workspace = Workspace.create(tmp_path / str(total), {})
        with EffectJournal(tmp_path / f"{total}.jsonl") as journal:
            gateway = Slow("http://127.0.0.1:1/v1", "m", timeouts=Timeouts(total=total))
            Agent(gateway, workspace, DEFAULT_POLICY, journal, 3).run([])
        assert len(asked) == attempts
        assert sorted(asked, reverse=True) == asked and max(asked) <= total
