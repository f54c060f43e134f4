"""``fragmentlab record`` as a process, between the official client and the loopback provider."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from fragmentlab.cli import main
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import find_scenario
from fragmentlab.runtime.tools import DECLARATIONS
from tests.runtime.conftest import SMALL

ASKED: Any = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "go"}],
    "tools": DECLARATIONS,
}


@contextmanager
def _recording(folder: Path, upstream: str, before: Callable[[], None] | None = None) -> Iterator[Any]:
    """Run the command until the block ends; what it printed is in the process's ``told`` then."""
    command = [sys.executable, "-m", "fragmentlab", "record", "--upstream", upstream, "--out", str(folder)]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=before, **pipes) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        assert process.stdout and process.stderr
        process.address = process.stdout.readline().strip()  # type: ignore[attr-defined]
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.told = (process.stdout.read(), process.stderr.read())  # type: ignore[attr-defined]
        watchdog.cancel()


def _use(address: str) -> int:
    """Return how many chunks the official client reads; those before the connection broke off."""
    chunks = 0
    with openai.OpenAI(base_url=address, api_key="CANARY", max_retries=0) as client:
        try:
            with client.chat.completions.create(**ASKED) as stream:
                for _ in stream:
                    chunks += 1
        except openai.APIConnectionError:
            pass
    return chunks


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("scenario", "line", "status"),
    [
        ("target", "1  accepted  nulls 1  ", 0),
        ("cut-mid-arguments", "1  rejected completion.transport_error  nulls 0  ", 1),
    ],
)
def test_an_answer_is_kept_told_and_read_again(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    stop: signal.Signals,
    scenario: str,
    line: str,
    status: int,
) -> None:
    """The client works as without it; the folder's path comes last, and `assemble` reads what is in it."""
    with Provider() as provider:
        provider.play(find_scenario(scenario), SMALL)
        with _recording(tmp_path / "kept", provider.address) as process:
            through = _use(process.address)
            process.send_signal(stop)
            assert process.wait() == 0
        provider.play(find_scenario(scenario), SMALL)
        assert through == _use(provider.address)
    out, err = process.told
    assert out == f"{tmp_path / 'kept'}\n"
    _, told, summary = err.splitlines()
    assert told.startswith(line) and summary.startswith("1 answers, 1 recorded: 1 ")
    (file,) = (tmp_path / "kept").glob("*.jsonl")
    assert file.name in told and "CANARY" not in file.read_text()
    assert main(["assemble", str(file)]) == status
    shown = capsys.readouterr().out
    assert told.split()[1] in shown and "tools unknown" not in shown


def test_a_full_disk_never_reaches_the_client(tmp_path: Path) -> None:
    """The client reads all of it, the outcome is told, and the file is named as a part."""

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    with Provider() as provider:
        provider.play(find_scenario("target"), SMALL)
        with _recording(tmp_path / "kept", provider.address, fill) as process:
            through = _use(process.address)
        provider.play(find_scenario("target"), SMALL)
        assert through == _use(provider.address)
    _, told, _ = process.told[1].splitlines()
    assert told.startswith("1  accepted  nulls 1  ")
    assert told.endswith(".sse.incomplete; File too large")


def test_a_folder_that_disappears_never_reaches_the_client(tmp_path: Path) -> None:
    """The client reads all of it; the line says why nothing was kept."""
    with Provider() as provider:
        provider.play(find_scenario("target"), SMALL)
        with _recording(tmp_path / "kept", provider.address) as process:
            (tmp_path / "kept" / ".gitignore").unlink()
            (tmp_path / "kept").rmdir()
            assert _use(process.address)
    assert "1  not kept; No such file or directory\n" in process.told[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--upstream", "nowhere", "--out", "kept"], "--upstream must be a base URL"),
        (["--upstream", "http://127.0.0.1:1", "--out", "file/kept"], "cannot be made"),
        (["--upstream", "http://127.0.0.1:1", "--out", "kept", "--port", "99999"], "the port cannot be used"),
        (["--out", "kept"], "--upstream"),
    ],
)
def test_bad_options_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: str,
) -> None:
    """Exit 2, one line, and no folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    try:
        status = main(["record", *options])
    except SystemExit as exit_:
        status = exit_.code  # type: ignore[assignment]
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "") and said in captured.err and captured.err.count("\n") == 1
    assert not (tmp_path / "kept").exists()
