"""The README's own code does what it says."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fragmentlab.assembler import Result
from fragmentlab.corpus.recordings import stream_of_file
from fragmentlab.runtime.provider import PATH, Provider
from fragmentlab.runtime.scenarios import find_scenario
from fragmentlab.runtime.tools import DECLARATIONS
from fragmentlab.wire.events import body
from fragmentlab.wire.fragments import chunk, delta, fragment
from tests.runtime.conftest import SMALL

CALL = fragment(0, {"name": "look_up", "arguments": "{}"}, id="a")
BODY = body([chunk(delta(CALL)), chunk({}, "tool_calls")])
REQUEST: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "go"}],
    "tools": DECLARATIONS,
}


@pytest.fixture
def readme(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Run the one block of the README's code that contains a text; return its names."""
    monkeypatch.chdir(tmp_path)

    def run(text: str) -> dict[str, Any]:
        blocks = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
        (code,) = (block for block in blocks if text in block)
        names: dict[str, Any] = {}
        exec(code, names)  # noqa: S102 - the README's own snippet
        return names

    return run


@pytest.mark.parametrize(("scenario", "outcome"), [("target", "accepted"), ("cut-mid-arguments", "rejected")])
def test_a_client_is_recorded(
    readme: Callable[[str], dict[str, Any]], tmp_path: Path, scenario: str, outcome: str
) -> None:
    """Its answers are kept in the folder that the example names, also one that breaks off."""
    client = readme("record(httpx.Client()")["client"]
    with Provider() as provider, client:
        provider.play(find_scenario(scenario), SMALL)
        try:
            client.post(provider.address.removesuffix("/v1") + PATH, json=REQUEST)
        except httpx.TransportError:
            assert outcome == "rejected"
    (recorded,) = (tmp_path / "recordings").glob("*.jsonl")
    assert stream_of_file(str(recorded)).assemble().outcome == outcome


class Breaking(httpx.SyncByteStream):
    """A body that breaks off after some reads."""

    def __init__(self, *reads: bytes) -> None:
        self.reads = reads

    def __iter__(self) -> Iterator[bytes]:
        yield from self.reads
        raise httpx.ReadError("broken off")


def _assembled(readme: Callable[[str], dict[str, Any]], response: httpx.Response) -> Result:
    assemble = readme("Assembler(tools=tools)")["assemble"]
    with (
        httpx.Client(transport=httpx.MockTransport(lambda _: response)) as client,
        client.stream("POST", "http://127.0.0.1/") as streamed,
    ):
        result = assemble(streamed, ["look_up"])
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_the_gateway_assembles_an_answer(readme: Callable[[str], dict[str, Any]], coding: str) -> None:
    """Compressed or not."""
    content = gzip.compress(BODY) if coding == "gzip" else BODY
    result = _assembled(readme, httpx.Response(200, headers={"content-encoding": coding}, content=content))
    assert (result.outcome, result.executable, len(result.calls)) == ("accepted", True, 1)


def test_the_gateway_refuses_an_answer_that_breaks_off(readme: Callable[[str], dict[str, Any]]) -> None:
    """As a broken transport, and not as a clean end."""
    result = _assembled(readme, httpx.Response(200, stream=Breaking(BODY[:-14])))
    assert (result.category, result.calls) == ("completion.transport_error", ())


def test_the_gateway_refuses_an_answer_that_does_not_unpack(readme: Callable[[str], dict[str, Any]]) -> None:
    """A broken compression is a broken transport."""
    result = _assembled(readme, httpx.Response(200, headers={"content-encoding": "gzip"}, stream=Plain(BODY)))
    assert result.category == "completion.transport_error"


class Plain(httpx.SyncByteStream):
    """A body that is not packed, whatever its headers say."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self.data
