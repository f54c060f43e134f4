"""``fragmentlab.wire.record``: what a hooked client reads is kept, whichever library and however it ends."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import brotli
import httpx
import httpx2
import openai
import pytest
import zstandard

import fragmentlab.wire
from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import find_scenario
from fragmentlab.runtime.tools import DECLARATIONS
from fragmentlab.wire.encodings import BrokenEncoding, unpacker
from fragmentlab.wire.events import body
from fragmentlab.wire.fragments import chunk
from fragmentlab.wire.recorder import MAX_ANSWER_BYTES, Recording, tool_names
from tests.runtime.conftest import SMALL

BODY = body([chunk({"content": "hi"}), chunk({}, "stop")])
LIBRARIES = [httpx, httpx2]
PACKED = {"identity": bytes, "gzip": gzip.compress, "br": brotli.compress, "zstd": zstandard.compress}
NAMES = sorted(tool["function"]["name"] for tool in DECLARATIONS)
MESSAGES: Any = [{"role": "user", "content": "CANARY"}]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


def _streams(folder: Path) -> list[Stream]:
    summary = Summary()
    streams = [found.stream for found in import_streams([str(folder)], summary)]
    assert not summary.faults
    return streams


def _answers(library: ModuleType, reads: list[bytes], coding: str = "identity", breaks: bool = False) -> Any:
    """A transport that answers every request with these reads, and breaks off if asked."""

    class Reads(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            yield from reads
            if breaks:
                raise library.ReadError("broken off")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for read in self:
                yield read

    headers = {
        "content-type": "text/event-stream",
        "content-encoding": coding,
        "transfer-encoding": "chunked",
    }
    return library.MockTransport(lambda _: library.Response(200, headers=headers, stream=Reads()))


def _post(client: Any, leave_after: int | None = None) -> bytes:
    """Read an answer with a client of either kind, as its bytes are sent."""
    asked = ("POST", "http://127.0.0.1/v1/chat/completions")

    async def read_async() -> bytes:
        got = b""
        async with client, client.stream(*asked) as response:
            async for read in response.aiter_raw():
                got += read
                if leave_after is not None and len(got) >= leave_after:
                    break
        return got

    if hasattr(client, "aclose"):
        return asyncio.run(read_async())
    got = b""
    with client, client.stream(*asked) as response:
        for read in response.iter_raw():
            got += read
            if leave_after is not None and len(got) >= leave_after:
                break
    return got


CLIENTS = [(library, kind) for library in LIBRARIES for kind in ("Client", "AsyncClient")]


@pytest.mark.parametrize(("library", "kind"), CLIENTS)
@pytest.mark.parametrize("coding", PACKED)
def test_what_a_client_reads_is_kept_unpacked(
    tmp_path: Path, library: ModuleType, kind: str, coding: str
) -> None:
    """The client reads what was sent, packed or not; the file holds what is in it."""
    packed = PACKED[coding](BODY)
    transport = _answers(library, [packed[:9], b"", packed[9:]], coding)
    client = getattr(library, kind)(transport=transport)
    assert fragmentlab.wire.record(client, tmp_path / "kept") is client
    assert _post(client) == packed
    (stream,) = _streams(tmp_path / "kept")
    assert (stream.body, stream.end, stream.tools) == (BODY, "clean", None)


@pytest.mark.parametrize(("library", "kind"), CLIENTS)
def test_a_stream_that_breaks_off_is_kept(tmp_path: Path, library: ModuleType, kind: str) -> None:
    """The client's own error is raised; what came is recorded as aborted."""
    client = getattr(library, kind)(transport=_answers(library, [BODY[:50], BODY[50:90]], breaks=True))
    with pytest.raises(library.ReadError, match="broken off"):
        _post(fragmentlab.wire.record(client, tmp_path / "kept"))
    (stream,) = _streams(tmp_path / "kept")
    assert (stream.body, stream.end) == (BODY[:90], "aborted")


@pytest.mark.parametrize(("library", "kind"), CLIENTS)
def test_a_client_that_stops_reading_leaves_what_it_read(
    tmp_path: Path, library: ModuleType, kind: str
) -> None:
    """How the answer would have ended is not known."""
    client = getattr(library, kind)(transport=_answers(library, [BODY[:150], BODY[150:]]))
    assert _post(fragmentlab.wire.record(client, tmp_path / "kept"), leave_after=1) == BODY[:150]
    (stream,) = _streams(tmp_path / "kept")
    assert (stream.body, stream.end) == (BODY[:150], "unknown")


def test_an_own_hook_that_reads_the_answer_reads_it_through_the_recorder(tmp_path: Path) -> None:
    """Whatever hooks a client already has, nothing is missed."""
    hooks = {"response": [lambda response: response.read()]}
    client = httpx.Client(transport=_answers(httpx, [BODY]), event_hooks=hooks)
    with fragmentlab.wire.record(client, tmp_path / "kept"):
        assert client.post("http://127.0.0.1/v1/chat/completions").content == BODY
    assert _streams(tmp_path / "kept")[0].body == BODY


SCENARIOS = [("target", "accepted", 1), ("cut-mid-arguments", "rejected", 0)]


@pytest.mark.parametrize(("scenario", "outcome", "nulls"), SCENARIOS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_official_client_is_recorded(
    provider: Provider, tmp_path: Path, library: ModuleType, scenario: str, outcome: str, nulls: int
) -> None:
    """The client works, or fails as it would; the recording has the outcome, the nulls and the tools."""
    provider.play(find_scenario(scenario), SMALL)
    hooked = fragmentlab.wire.record(library.Client(trust_env=False), tmp_path / "kept")
    client = openai.OpenAI(base_url=provider.address, api_key="CANARY", max_retries=0, http_client=hooked)
    with client:
        _use(client)
    _check_recorded(tmp_path / "kept", outcome, nulls)


def _use(client: openai.OpenAI) -> None:
    try:
        with client.chat.completions.create(
            model="m", messages=MESSAGES, tools=DECLARATIONS, stream=True  # type: ignore[arg-type]
        ) as stream:  # fmt: skip
            for _ in stream:
                pass
    except openai.APIConnectionError:
        pass


@pytest.mark.parametrize(("scenario", "outcome", "nulls"), SCENARIOS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_official_asynchronous_client_is_recorded(
    provider: Provider, tmp_path: Path, library: ModuleType, scenario: str, outcome: str, nulls: int
) -> None:
    """The same on an event loop."""
    provider.play(find_scenario(scenario), SMALL)
    hooked = fragmentlab.wire.record(library.AsyncClient(trust_env=False), tmp_path / "kept")

    async def use() -> None:
        base = openai.AsyncOpenAI(
            base_url=provider.address, api_key="CANARY", max_retries=0, http_client=hooked
        )
        async with base as client:
            try:
                async with await client.chat.completions.create(
                    model="m", messages=MESSAGES, tools=DECLARATIONS, stream=True  # type: ignore[arg-type]
                ) as stream:  # fmt: skip
                    async for _ in stream:
                        pass
            except openai.APIConnectionError:
                pass

    asyncio.run(use())
    _check_recorded(tmp_path / "kept", outcome, nulls)


def _check_recorded(folder: Path, outcome: str, nulls: int) -> None:
    (stream,) = _streams(folder)
    result = stream.assemble(diagnose=True)
    assert (result.outcome, result.counts["null_continuations"]) == (outcome, nulls)
    assert sorted(map(str, stream.tools or ())) == NAMES
    (file,) = folder.glob("*.jsonl")
    assert "CANARY" not in file.read_text() and "127.0.0.1" not in file.read_text()


KILLED = """
import os, sys, fragmentlab.wire, httpx
from tests.wire.test_recorder import BODY, _answers
client = fragmentlab.wire.record(httpx.Client(transport=_answers(httpx, [BODY[:99], BODY[99:]])), sys.argv[1])
with client.stream("POST", "http://127.0.0.1/v1/chat/completions") as response:
    reads = response.iter_raw()
    next(reads)
    os.kill(os.getpid(), 9)
"""


def test_a_process_that_is_killed_leaves_what_it_read(root: Path, tmp_path: Path) -> None:
    """Each read is in the file before the client has it."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "kept")], cwd=root, check=False)
    assert killed.returncode == -9
    (file,) = (tmp_path / "kept").glob("*.sse")
    assert file.read_bytes() == BODY[:99]


FULL = KILLED.replace("next(reads)", "assert b''.join(reads) == BODY").replace("os.kill(os.getpid(), 9)", "")


@pytest.mark.parametrize(("room", "name"), [(120, ".sse.incomplete"), (len(BODY), ".sse")])
def test_a_full_disk_never_reaches_the_client(root: Path, tmp_path: Path, room: int, name: str) -> None:
    """The client reads all of it. A part is named as one; whole bytes stay an event file without a record."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL, str(tmp_path / "kept")],
        cwd=root,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert done.returncode == 0
    (ignored, part) = sorted((tmp_path / "kept").iterdir())
    assert ignored.name == ".gitignore" and part.name.endswith(name) and part.read_bytes() == BODY[:room]
    summary = Summary()
    found = [item.stream.body for item in import_streams([str(tmp_path / "kept")], summary)]
    assert found == ([BODY] if name == ".sse" else [])
    assert [why for _, why in summary.faults] == ["is a part of an answer: its recording was given up"] * (
        name != ".sse"
    )


def test_an_answer_without_end_is_given_up(tmp_path: Path) -> None:
    """Unpacked bytes are bounded; what was heard until then is heard in bounded pieces."""
    heard: list[int] = []
    recording = Recording(tmp_path, None, "gzip", lambda data: heard.append(len(data)))
    packed = gzip.compress(bytes(MAX_ANSWER_BYTES + 1))
    recording.take(packed)
    recording.finish("clean")
    assert recording.problem == "it is larger than 64 MiB" and sum(heard) <= MAX_ANSWER_BYTES
    assert recording.path is not None and recording.path.suffix == ".incomplete"
    recording.path.unlink()


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_answers_are_left_alone(tmp_path: Path, library: ModuleType) -> None:
    """Only streamed Chat Completions are kept: no page, list of models or other protocol."""
    answers = iter([(200, "application/json"), (404, "text/event-stream"), (200, "text/event-stream")])

    def answer(_: Any) -> Any:
        status, kind = next(answers)
        return library.Response(status, headers={"content-type": kind}, content=BODY)

    client = library.Client(transport=library.MockTransport(answer))
    fragmentlab.wire.record(client, tmp_path / "kept")
    for path in ("chat/completions", "chat/completions", "responses"):
        assert client.post(f"http://127.0.0.1/v1/{path}").content == BODY
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [".gitignore"]


def test_a_wrong_client_or_folder_is_said_at_once(tmp_path: Path) -> None:
    """Nothing waits for the first answer to fail."""
    with pytest.raises(TypeError, match="takes an httpx client"):
        fragmentlab.wire.record(openai.OpenAI(api_key="none"), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        fragmentlab.wire.record(httpx.Client(), tmp_path / "file")


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (json.dumps({"tools": DECLARATIONS}).encode(), NAMES),
        (b'{"tools":[{"function":{"name":"a"}},{"function":{"name":"a"}}]}', ["a"]),
        (b"{}", None),
        (b'{"tools":[]}', None),
        (b'{"tools":[{"type":"web_search"}]}', None),
        (b'{"tools":{"a":1}}', None),
        (b"[1]", None),
        (b"\xff", None),
        (b'{"tools":' + b"[" * 100_000, None),
        (b"", None),
    ],
)
def test_tools_are_known_only_where_the_request_says_them_all(
    request_: bytes, names: list[str] | None
) -> None:
    """A request that cannot be read, or with a tool of another kind, leaves the tools unknown."""
    found = tool_names(request_)
    assert (found and sorted(found)) == names


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_bytes_of_another_coding_are_refused(coding: str) -> None:
    """A body that is not packed as its headers say is no recording."""
    with pytest.raises(BrokenEncoding):
        b"".join(unpacker(coding)(b"data: {}\n\n" * 10))


@pytest.mark.parametrize("coding", PACKED)
def test_any_reads_unpack_to_the_same(coding: str) -> None:
    """Packed bytes may come one at a time."""
    unpack = unpacker(coding)
    packed = PACKED[coding](BODY)
    assert b"".join(piece for byte in packed for piece in unpack(bytes([byte]))) == BODY
