"""One stream of packed bytes: gzip, Zstandard, bzip2, xz, Brotli, zlib, by magic number, header or suffix."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import Budget, OtherKind, Unreadable
from fragmentlab.corpus.importing.documents import Document

ENDS_EARLY = "packed bodies that end early, read to their end"
_STEP = 1 << 18
_FEED = 1 << 16
_SUFFIXES = (".gz", ".zst", ".bz2", ".xz", ".lzma", ".br", ".tgz", ".tbz2", ".txz")
_MAX_MEMBERS = 10_000


def recognise(document: Document) -> bool:
    return isinstance(document.content, bytes) and _opener(document) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    opener = _opener(document)
    assert opener is not None
    try:
        data = b"".join(opener(document.content, budget))
    except (zlib.error, OSError, EOFError, lzma.LZMAError, _Broken):
        kind = OtherKind if _is_text(document.content) else Unreadable
        raise kind("is compressed, but does not unpack; save it again") from None
    name = document.name
    for suffix in _SUFFIXES:
        if document.suffix == suffix:
            name = name[: -len(suffix)] + (".tar" if suffix.startswith(".t") else "")
    yield document.inner(data, name=name)


class _Broken(Exception):
    """Data that does not unpack."""


_Opener = Callable[[bytes, Budget], Iterator[bytes]]


def _opener(document: Document) -> _Opener | None:
    data, encoding = document.content, document.exchange.content_encoding
    for magic, opener in _MAGIC:
        if data.startswith(magic):
            return opener
    if document.suffix == ".br" or ("br" in encoding and not _is_text(data)):
        return _brotli
    if data[:2] in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
        return _members(lambda: zlib.decompressobj(15))
    if "deflate" in encoding and not _is_text(data):
        return _members(lambda: zlib.decompressobj(-15))
    return None


def _is_text(data: bytes) -> bool:
    return (data[:64].isascii() and data[:64].decode().isprintable()) or data[:5] in (b"data:", b"event")


def _members(make: Callable[[], Any], magic: bytes = b"") -> _Opener:
    """Return a reader of one member after another, each with an object that ``make`` gives."""

    def opened(data: bytes, budget: Budget) -> Iterator[bytes]:
        view = memoryview(data)
        size = 0
        for _ in range(_MAX_MEMBERS):
            unpacker = make()
            at = 0
            while at < len(view) and not unpacker.eof:
                part = view[at : at + _FEED]
                at += len(part)
                for piece in _pieces(unpacker, part):
                    size += len(piece)
                    budget.unpacked(size, len(data))
                    yield budget.take(piece)
            if not unpacker.eof:
                budget.noted[ENDS_EARLY] += 1
                return
            view = view[at - len(unpacker.unused_data) :]
            padding = next((n for n in range(len(view)) if view[n]), len(view))
            view = view[padding:]
            if not magic or bytes(view[: len(magic)]) != magic:
                return
        raise Unreadable(f"has more than {_MAX_MEMBERS:,} packed members")

    return opened


def _pieces(unpacker: Any, part: memoryview) -> Iterator[bytes]:
    """Yield what a part unpacks to, a bounded piece at a time."""
    if hasattr(unpacker, "needs_input"):
        yield unpacker.decompress(part, _STEP)
        while not unpacker.eof and not unpacker.needs_input:
            yield unpacker.decompress(b"", _STEP)
        return
    yield unpacker.decompress(part, _STEP)
    while unpacker.unconsumed_tail and not unpacker.eof:
        yield unpacker.decompress(unpacker.unconsumed_tail, _STEP)


def _brotli(data: bytes, budget: Budget) -> Iterator[bytes]:
    import brotli

    unpacker = brotli.Decompressor()
    size = 0
    try:
        part = unpacker.process(data, output_buffer_limit=_STEP)
        while True:
            size += len(part)
            budget.unpacked(size, len(data))
            yield budget.take(part)
            if unpacker.is_finished() or unpacker.can_accept_more_data():
                break
            part = unpacker.process(b"", output_buffer_limit=_STEP)
    except brotli.error:
        raise _Broken from None
    if not unpacker.is_finished():
        budget.noted[ENDS_EARLY] += 1


def _zstd(data: bytes, budget: Budget) -> Iterator[bytes]:
    import zstandard

    size = 0
    try:
        # Pages of the window are touched only as far as data comes; the budget ends it long before.
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            data, read_across_frames=True
        ) as reader:
            while part := reader.read(_STEP):
                size += len(part)
                budget.unpacked(size, len(data))
                yield budget.take(part)
    except zstandard.ZstdError:
        raise _Broken from None


_MAGIC: tuple[tuple[bytes, _Opener], ...] = (
    (b"\x1f\x8b\x08", _members(lambda: zlib.decompressobj(31), b"\x1f\x8b")),
    (b"BZh", _members(bz2.BZ2Decompressor, b"BZh")),
    (b"\xfd7zXZ\x00", _members(lambda: lzma.LZMADecompressor(memlimit=256 << 20), b"\xfd7zXZ\x00")),
    (b"\x28\xb5\x2f\xfd", _zstd),
)
