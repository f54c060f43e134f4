"""What people save with curl, in each way that they do, assembles to what the server sent."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.cli import main
from fragmentlab.wire.events import DONE, event
from fragmentlab.wire.fragments import chunk, delta, fragment
from tests.runtime.conftest import RawServers, chunked

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

EVENTS = [
    b": keep-alive\n\n",
    event(chunk(delta(fragment(0, {"name": "look_up", "arguments": ""}, id="a", type="function")))),
    b": PROCESSING\n\n: PROCESSING\n\n",
    event(chunk(delta(fragment(0, {"arguments": '{"text": "}..data: [1]..'}, id=None)))),
    event({}, "ping"),
    event(chunk(delta(fragment(0, {"arguments": '"}'}, id=None)))),
    event(chunk({}, "tool_calls")),
    DONE,
]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
ANSWERS = {
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(*EVENTS) + b"0\r\n\r\n",
    "one chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(b"".join(EVENTS)) + b"0\r\n\r\n",
    "until closed": HEAD + b"\r\n" + b"".join(EVENTS),
}
WAYS: dict[str, tuple[list[str], bool]] = {
    "-N": (["-N"], False),
    "-N, progress too": (["-N"], True),
    "-i": (["-s", "-i"], False),
    "-i --raw": (["-s", "-i", "--raw"], False),
    "-v": (["-sv"], True),
    "-v, progress too": (["-v"], True),
    "--trace-ascii": (["-s", "--trace-ascii", "-", "-o", "/dev/null"], False),
    "--trace": (["-s", "--trace", "-", "-o", "/dev/null"], False),
    "--trace-time": (["-s", "--trace-time", "--trace-ascii", "-", "-o", "/dev/null"], False),
}
"""Name -> curl's options, and whether standard error goes to the same file."""


def _saved(serve: RawServers, answer: str, way: str, file: Path) -> str:
    def send(connection: socket.socket, stop: threading.Event) -> None:
        connection.sendall(ANSWERS[answer])

    options, with_errors = WAYS[way]
    command = ["curl", *options, "--noproxy", "*", "-d", '{"stream": true, "messages": []}']
    with file.open("wb") as out:
        subprocess.run(
            [*command, f"{serve(send).address}/chat/completions"],
            stdout=out,
            stderr=out if with_errors else subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
    return str(file)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("way", WAYS)
def test_what_curl_saved_is_assembled(
    serve: RawServers, tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: str, way: str
) -> None:
    """The same call, with the same null continuations, however it was saved."""
    assert main(["assemble", _saved(serve, answer, way, tmp_path / "x.txt"), "--json", "--reveal"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    arguments = '{"text": "}..data: [1].."}'
    assert printed["calls"] == [{"index": 0, "id": "a", "name": "look_up", "arguments": arguments}]
    assert printed["counts"]["null_continuations"] == 2
