"""Keeping streamed answers as they come, broken-off ones too: one file per answer, in one folder.

While an answer comes in, its bytes go to a plain event file, so that a crash keeps what came. At the end that
file becomes a stream record (docs/design.md section 7), which also says how the transport ended and which
tools the request offered. No header, key, prompt or address is kept.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from fragmentlab.assembler.assembler import End
from fragmentlab.errors import InputError
from fragmentlab.files import reason, write_whole
from fragmentlab.wire.encodings import BrokenEncoding, Unpack, unpacker

MAX_ANSWER_BYTES = 64 << 20
"""The largest answer that is kept; one that passes every limit of the assembler is far smaller."""
RECORD, UNFINISHED, INCOMPLETE = ".jsonl", ".sse", ".incomplete"
Client = TypeVar("Client")


def record(client: Client, folder: str | os.PathLike[str]) -> Client:
    """Keep every streamed answer that an httpx client reads, sync or async, in ``folder``; return the client.

        client = OpenAI(http_client=fragmentlab.wire.record(httpx.Client(), "recordings"))

    Takes clients of ``httpx`` and ``httpx2``. Raises TypeError for another object and InputError where the
    folder cannot be made; later the client is never disturbed, a recording that cannot be kept is given up.
    """
    library = _library_of(client)
    target = recordings_folder(folder)

    class Kept(_KeptStream, library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc, name-defined]
        pass

    def keep(response: Any) -> None:
        request, headers = response.request, response.headers
        if is_streamed_chat(request.method, request.url.path, response.status_code, headers):
            asked = b""
            with suppress(RuntimeError):  # the body of a request that was streamed up cannot be read again
                asked = request.content
            recording = Recording(target, tool_names(asked), headers.get("content-encoding", ""))
            response.stream = Kept(response.stream, recording, end_of(response))

    async def keep_async(response: Any) -> None:
        keep(response)

    is_async = isinstance(client, library.AsyncClient)
    # Before any other hook: one that reads the answer must read it through the recorder.
    client.event_hooks["response"].insert(0, keep_async if is_async else keep)  # type: ignore[attr-defined]
    return client


def recordings_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the folder, made where it is missing; git ignores what is in a new one."""
    path = Path(folder)
    try:
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True)
            (path / ".gitignore").write_text("*\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be made: {reason(error)}") from None
    return path


def is_streamed_chat(method: str, path: str, status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an answer is a streamed Chat Completions response, by its request line and headers."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_chat = method == "POST" and path.rstrip("/").endswith("/chat/completions")
    return is_chat and 200 <= status < 300 and kind == "text/event-stream"


def end_of(response: Any) -> End:
    """Return how the transport ended where an answer was read to its end: HTTP may not state its length."""
    is_chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
    is_stated = is_chunked or "content-length" in response.headers or response.http_version == "HTTP/2"
    return "clean" if is_stated else "unknown"


def tool_names(request: bytes) -> list[str] | None:
    """Return the names of the tools that a request offers; None where it offers none or cannot be read."""
    try:
        tools = msgspec.json.decode(request)["tools"]
        names = [tool["function"]["name"] for tool in tools]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return None
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name)) or None


class Recording:
    """One answer as it comes in: ``take`` each read, then ``finish``. Neither ever raises for a bad disk.

    ``path`` is the file, None while nothing came; ``problem`` says why the recording is not whole. ``heard``
    is given the unpacked bytes as well.
    """

    def __init__(
        self,
        folder: Path,
        tools: list[str] | None,
        content_encoding: str = "",
        heard: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        self.path: Path | None = None
        self.problem: str | None = None
        self._folder, self._tools, self._heard = folder, tools, heard
        self._file: BinaryIO | None = None
        self._left = MAX_ANSWER_BYTES
        self._unpack: Unpack | None = None
        try:
            self._unpack = unpacker(content_encoding)
        except BrokenEncoding as error:
            self.problem = str(error)

    def take(self, read: bytes) -> None:
        """Unpack and keep one read."""
        if self._unpack is None:
            return
        try:
            for data in self._unpack(read):
                self._left -= len(data)
                if self._left < 0:
                    raise BrokenEncoding(f"it is larger than {MAX_ANSWER_BYTES >> 20} MiB")
                self._keep(data)
                self._heard(data)
        except BrokenEncoding as error:
            self._unpack = None
            self._give_up(str(error))

    def finish(self, end: End) -> None:
        """Turn what came into a record that says how it ended; only the first call counts."""
        self._unpack = None
        if self._file is None:
            return
        self._file.close()
        self._file = None
        assert self.path is not None
        try:
            record_path = self.path.with_suffix(RECORD)
            write_whole(record_path, self._record(self.path.read_bytes(), end))
            self.path.unlink()
            self.path = record_path
        except (OSError, InputError):
            self.problem = "its bytes are whole, but how it ended could not be written"

    def _keep(self, data: bytes) -> None:
        if self.problem or not data:
            return
        try:
            if self._file is None:
                self._open()
            while data and self._file:
                data = data[self._file.write(data) :]
        except OSError as error:
            self._give_up(reason(error))

    def _open(self) -> None:
        while self._file is None:
            path = self._folder / datetime.now().strftime(f"%Y%m%d-%H%M%S-%f{UNFINISHED}")
            with suppress(FileExistsError):
                # Unbuffered: what was read before a crash is in the file.
                self._file = open(path, "xb", buffering=0)  # noqa: SIM115 - closed by finish
                self.path = path

    def _give_up(self, why: str) -> None:
        """Give a file that holds only a part a name that says so: nobody may take it for a cut answer."""
        self.problem = why
        if self._file is None or self.path is None:
            return
        self._file.close()
        self._file = None
        with suppress(OSError):
            self.path = self.path.rename(self.path.with_suffix(UNFINISHED + INCOMPLETE))

    def _record(self, body: bytes, end: End) -> bytes:
        known = {"tools": self._tools, "fidelity": "reads", "end": end, "pair": None}
        unknown = dict.fromkeys(("provider", "server", "model"))
        record = {"id": self.path.stem if self.path else "", **unknown, **known}
        try:
            text = {"body": body.decode()}
        except UnicodeDecodeError:
            text = {"body_base64": base64.b64encode(body).decode()}
        return json.dumps(record | text, ensure_ascii=False).encode() + b"\n"


class _KeptStream:
    """A response's stream that keeps what is read of it."""

    def __init__(self, stream: Any, recording: Recording, whole: End) -> None:
        self._stream, self._recording, self._whole = stream, recording, whole

    def __iter__(self) -> Iterator[bytes]:
        with self._ending():
            for read in self._stream:
                self._recording.take(read)
                yield read

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._ending():
            async for read in self._stream:
                self._recording.take(read)
                yield read

    def close(self) -> None:
        self._recording.finish("unknown")
        self._stream.close()

    async def aclose(self) -> None:
        self._recording.finish("unknown")
        await self._stream.aclose()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Say how it ended: of an answer that its reader leaves, that is not known."""
        try:
            yield
        except Exception:
            self._recording.finish("aborted")
            raise
        except BaseException:
            self._recording.finish("unknown")
            raise
        self._recording.finish(self._whole)


def _library_of(client: object) -> Any:
    """Return the module of a client's own library: ``httpx``, or a successor with the same interface."""
    for kind in type(client).__mro__:
        library = kind.__module__.partition(".")[0]
        if kind.__name__ in ("Client", "AsyncClient") and library in ("httpx", "httpx2"):
            return sys.modules[library]
    raise TypeError("record() takes an httpx client; make one, and give it to your client library as well")
