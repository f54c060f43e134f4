"""The README's own code does what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

EVENT = b"data: {}\n\n"


class Breaking(httpx.SyncByteStream):
    """A body that gives some reads and then breaks off, if asked."""

    def __init__(self, breaks: bool) -> None:
        self.breaks = breaks

    def __iter__(self) -> Iterator[bytes]:
        yield from (EVENT, b"", EVENT)
        if self.breaks:
            raise httpx.ReadError("broken off")


@pytest.mark.parametrize("breaks", [False, True])
def test_the_recording_hook_keeps_what_was_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    """Each read reaches the caller and the file, also of a stream that breaks off."""
    (code,) = re.findall(
        r"```python\n(import httpx, time\n.*?)```", (root / "README.md").read_text(), re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 - the README's own snippet
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Breaking(breaks)))
    got = b""
    with httpx.Client(transport=transport, event_hooks={"response": [names["record"]]}) as client:  # type: ignore[list-item]
        try:
            with client.stream("POST", "http://127.0.0.1/") as response:
                for read in response.iter_raw():
                    got += read
        except httpx.ReadError:
            assert breaks
    (recorded,) = tmp_path.glob("*.sse")
    assert recorded.read_bytes() == got == EVENT * 2
    names["client"].close()  # type: ignore[attr-defined]
