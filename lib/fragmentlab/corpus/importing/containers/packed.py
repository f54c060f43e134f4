"""Packed bytes: gzip, Zstandard, bzip2, xz, Brotli and zlib, by magic number, header or suffix."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fragmentlab.corpus.importing.budget import Budget, OtherKind, Unreadable
from fragmentlab.corpus.importing.documents import Document

ENDS_EARLY = "packed bodies that end early, read to their end"
"""Noted of the source."""
_STEP = 1 << 18
_SUFFIXES = (".gz", ".zst", ".bz2", ".xz", ".br", ".tgz", ".tbz2", ".txz")
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


class _Reader(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _Stream:
    """Gives ``read1`` to a library's object that unpacks what it is fed."""

    def __init__(self, data: bytes, unpack: Callable[[bytes], bytes], has_ended: Callable[[], bool]) -> None:
        self._data, self._unpack, self._has_ended = data, unpack, has_ended

    def read1(self, size: int, /) -> bytes:
        part, self._data = self._unpack(self._data), b""
        if not part and not self._has_ended():
            raise EOFError
        return part


def _zlib(wbits: int) -> Callable[[bytes], _Reader]:
    def opened(data: bytes) -> _Reader:
        unpacker = zlib.decompressobj(wbits)
        return _Stream(
            data,
            lambda part: unpacker.decompress(part or unpacker.unconsumed_tail, _STEP),
            lambda: unpacker.eof,
        )

    return opened


def _brotli(data: bytes) -> _Reader:
    import brotli

    unpacker = brotli.Decompressor()

    def unpack(part: bytes) -> bytes:
        try:
            done = unpacker.is_finished() or (not part and unpacker.can_accept_more_data())
            return b"" if done else unpacker.process(part, output_buffer_limit=_STEP)
        except brotli.error:
            raise OSError from None

    return _Stream(data, unpack, unpacker.is_finished)


def _zstd(data: bytes) -> _Reader:
    import zstandard

    # Pages of the window are touched only as far as data comes; the budget ends it long before.
    reader: Any = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    return io.BufferedReader(reader.stream_reader(data, read_across_frames=True), _STEP)


_MAGIC: tuple[tuple[bytes, Callable[[bytes], Any]], ...] = (
    (b"\x1f\x8b\x08", lambda data: gzip.GzipFile(fileobj=io.BytesIO(data))),
    (b"BZh", lambda data: bz2.BZ2File(io.BytesIO(data))),
    (b"\xfd7zXZ\x00", lambda data: lzma.LZMAFile(io.BytesIO(data))),  # noqa: SIM115
    (b"\x28\xb5\x2f\xfd", _zstd),
    *((magic, _zlib(15)) for magic in _ZLIB),
)


def recognise(document: Document) -> bool:
    return isinstance(document.content, bytes) and _opener(document) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    opener = _opener(document)
    assert opener is not None
    try:
        data = b"".join(_unpacked(opener(document.content), len(document.content), budget))
    except (zlib.error, OSError, lzma.LZMAError):
        kind = OtherKind if _is_text(document.content) else Unreadable
        raise kind("is compressed, but does not unpack; save it again") from None
    name = document.name.removesuffix(document.suffix) if document.suffix in _SUFFIXES else document.name
    yield document.inner(data, name=name)


def _unpacked(reader: _Reader, size: int, budget: Budget) -> Iterator[bytes]:
    total = 0
    try:
        while part := reader.read1(_STEP):
            total += len(part)
            budget.unpacked(total, size)
            yield budget.take(part)
    except EOFError:
        budget.noted[ENDS_EARLY] += 1


def _opener(document: Document) -> Callable[[bytes], Any] | None:
    data, encoding = document.content, document.exchange.content_encoding
    for magic, opener in _MAGIC:
        if data.startswith(magic):
            return opener
    if document.suffix == ".br" or ("br" in encoding and not _is_text(data)):
        return _brotli
    return _zlib(-15) if "deflate" in encoding and not _is_text(data) else None


def _is_text(data: bytes) -> bool:
    head = data[:64]
    return (head.isascii() and head.decode().isprintable()) or head.startswith((b"data:", b"event:"))
