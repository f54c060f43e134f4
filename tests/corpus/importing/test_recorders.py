"""Containers that real recorders wrote, from the loopback provider to the batch."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import vcr

from fragmentlab.assembler import assemble
from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.streams import Stream
from fragmentlab.runtime.provider import Provider
from fragmentlab.runtime.scenarios import find_scenario
from fragmentlab.runtime.task import Task
from tests.corpus.importing.bodies import REQUEST

RECORDERS = Path(os.environ.get("FRAGMENTLAB_RECORDERS", "/nonexistent"))
"""An environment of its own with mitmproxy and playwright: they pin what the kit uses in other versions."""
CHROMIUM = next(
    (path for path in ("/usr/bin/chromium", "/usr/bin/google-chrome") if Path(path).exists()), None
)
SECONDS = 60
BROWSE = """
import sys
from playwright.sync_api import sync_playwright
page_url, har, chromium, request = sys.argv[1:]
with sync_playwright() as tools:
    browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    context = browser.new_context(record_har_path=har, record_har_content="embed", bypass_csp=True)
    page = context.new_page()
    page.route("**/page", lambda route: route.fulfill(body="<title>t</title>", content_type="text/html"))
    page.goto(page_url + "/page")
    page.evaluate("([url, body]) => fetch(url, {method: 'POST', body, headers: {'content-type': "
                  "'application/json'}}).then(answer => answer.text())",
                  [page_url + "/v1/chat/completions", request])
    context.close()
    browser.close()
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        scenario = find_scenario("target")
        running.play(scenario, scenario.sized(Task()))
        yield running


def the_stream(path: Path) -> Stream:
    summary = Summary()
    streams = [summary.count(item).stream for item in import_streams([str(path)], summary)]
    assert (summary.tool_streams, summary.faults) == (1, [])
    return streams[0]


def assert_is_target(stream: Stream, sent: bytes | None = None) -> None:
    assert sent is None or stream.body == sent
    result = assemble(stream.body)
    assert result.outcome == "accepted"
    assert result.counts["null_continuations"] > 0
    assert stream.tools == ("lookup_city",)


@pytest.mark.parametrize("serializer", ["yaml", "json"])
@pytest.mark.parametrize("decoded", [False, True], ids=["as sent", "decoded"])
def test_vcrpy(tmp_path, provider, serializer, decoded):
    """A cassette of the real vcrpy gives the bytes that the client received."""
    cassette = tmp_path / f"cassette.{serializer}"
    with vcr.use_cassette(str(cassette), serializer=serializer, decode_compressed_response=decoded):
        answer = httpx.post(
            f"{provider.address}/chat/completions",
            content=REQUEST,
            headers={"content-type": "application/json"},
        )
    assert_is_target(the_stream(cassette), answer.content)


@pytest.mark.skipif(
    not (RECORDERS / "bin/mitmdump").exists(),
    reason="FRAGMENTLAB_RECORDERS names no environment with mitmproxy",
)
def test_mitmproxy(tmp_path, provider):
    """The HAR that mitmproxy exports gives the bytes that the client received."""
    har = tmp_path / "flows.har"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    proxy = subprocess.Popen(
        [
            str(RECORDERS / "bin/mitmdump"), "--mode", f"reverse:http://127.0.0.1:{provider.port}",
            "--listen-host", "127.0.0.1", "--listen-port", str(port), "--set", f"hardump={har}",
            "--set", f"confdir={tmp_path}", "--set", "termlog_verbosity=info",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert proxy.stdout is not None
        assert any("listening" in line for line in proxy.stdout)
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            content=REQUEST,
            headers={"content-type": "application/json", "host": f"127.0.0.1:{provider.port}"},
        )
        proxy.terminate()
        proxy.wait(SECONDS)
    finally:
        proxy.kill()
        proxy.communicate()
    assert_is_target(the_stream(har), answer.content)


@pytest.mark.skipif(
    CHROMIUM is None or not list(RECORDERS.glob("lib/python*/site-packages/playwright")),
    reason="needs Chromium, and FRAGMENTLAB_RECORDERS to name an environment with playwright",
)
def test_chromium(tmp_path, provider):
    """The HAR of a headless Chromium that keeps bodies gives a target stream."""
    har = tmp_path / "page.har"
    subprocess.run(
        [
            str(RECORDERS / "bin/python"), "-c", BROWSE, f"http://127.0.0.1:{provider.port}", str(har),
            str(CHROMIUM), REQUEST,
        ],
        check=True,
        timeout=SECONDS,
        stdout=sys.stderr,
    )  # fmt: skip
    assert_is_target(the_stream(har))
