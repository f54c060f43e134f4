"""``fragmentlab provider`` as a process: the address, the stop, and bad options in one line."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

COMMAND = [sys.executable, "-m", "fragmentlab", "provider"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_stopped(stop: signal.Signals) -> None:
    """It prints its base address alone, serves any client, and stops without a traceback."""
    options = ["--scenario", "target", "--pages", "2", "--kilobytes", "1"]
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        assert process.stdout is not None and process.stderr is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        request = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}
        with httpx.Client(trust_env=False) as client:
            text = client.post(f"{address}/chat/completions", json=request).text
        assert '"name":"list_sources"' in text and '"id":null' in text
        process.send_signal(stop)
        assert process.wait() == 130
        watchdog.cancel()
        assert process.stdout.read() == ""
        assert [line.split(":")[0] for line in process.stderr.read().splitlines()] == [
            "playing target",
            "fragmentlab provider",
        ]


def _refused(options: Sequence[str]) -> str:
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


def test_taken_port_is_one_line() -> None:
    """A taken port is said in one line and exits 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = _refused(["--scenario", "control", "--port", str(taken.getsockname()[1])])
    assert "is taken; choose another with --port" in line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scenario", "nope"], "unknown scenario nope"),
        (["--scenario", "missing.json"], "cannot be read"),
        (["--scenario", "control", "--pages", "0"], "pages must be from 1 to 99"),
    ],
)
def test_bad_option_is_one_line(options: list[str], said: str) -> None:
    """An unknown scenario, a missing file and an impossible size exit 2 with one line."""
    assert said in _refused(options)


def test_what_a_file_says_of_itself_is_shown_harmlessly(tmp_path: Path, root: Path) -> None:
    """Control characters in a scenario's own sentence never reach the terminal."""
    scenario = json.loads((root / "data" / "scenarios" / "control.json").read_bytes())
    path = tmp_path / "loud.json"
    path.write_text(json.dumps({**scenario, "about": "\x1b[31mred\u202e\nsecond"}))
    with subprocess.Popen(
        [*COMMAND, "--scenario", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        first, _ = process.stderr.read().splitlines()
        watchdog.cancel()
    assert first.startswith("playing control: ") and first.isprintable()
