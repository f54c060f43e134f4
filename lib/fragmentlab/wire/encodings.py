"""Content codings undone as the reads come in: gzip, deflate, Brotli and Zstandard, in bounded pieces."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

Unpack = Callable[[bytes], Iterator[bytes]]
"""Takes the next read of a packed body and yields what it unpacks to, a bounded piece at a time."""
_STEP = 1 << 20
_ZSTD_READ = 1 << 12
"""Zstandard's incremental interface has no bound of its own, so it is given little at a time."""


class BrokenEncoding(Exception):
    """The body is not packed as its headers say, or in a way that is not known here."""


def unpacker(content_encoding: str) -> Unpack:
    """Return what undoes a Content-Encoding header; raise BrokenEncoding for a coding that is not known.

    >>> unpack = unpacker("gzip")
    >>> import gzip; b"".join(unpack(gzip.compress(b"data: {}")))
    b'data: {}'
    """
    unpack: Unpack = _plain
    for coding in reversed(content_encoding.lower().replace(" ", "").split(",")):
        if coding in _UNPACKERS:
            unpack = _chained(unpack, _UNPACKERS[coding]())
        elif coding not in ("", "identity"):
            raise BrokenEncoding("its content encoding is not known here")
    return unpack


def _plain(read: bytes) -> Iterator[bytes]:
    yield read


def _chained(outer: Unpack, inner: Unpack) -> Unpack:
    return lambda read: (piece for unpacked in outer(read) for piece in inner(unpacked))


def _gzip() -> Unpack:
    member = zlib.decompressobj(wbits=31)

    def unpack(read: bytes) -> Iterator[bytes]:
        nonlocal member
        while read:
            if member.eof:
                member = zlib.decompressobj(wbits=31)
            yield _inflated(member, read)
            read = member.unconsumed_tail or member.unused_data.lstrip(b"\0")

    return unpack


def _deflate() -> Unpack:
    """Undo ``deflate``, which servers send with zlib's header or without it."""
    member: zlib._Decompress | None = None

    def unpack(read: bytes) -> Iterator[bytes]:
        nonlocal member
        if member is None and read:
            member = zlib.decompressobj(wbits=15 if read[0] & 15 == 8 else -15)
        while read and member is not None and not member.eof:
            yield _inflated(member, read)
            read = member.unconsumed_tail

    return unpack


def _inflated(member: zlib._Decompress, data: bytes) -> bytes:
    try:
        return member.decompress(data, _STEP)
    except zlib.error:
        raise BrokenEncoding("it is not packed as its headers say") from None


def _brotli() -> Unpack:
    try:
        import brotli
    except ImportError:
        raise BrokenEncoding("Brotli is not installed: pip install 'fragmentlab[kit]'") from None
    member = brotli.Decompressor()

    def unpack(read: bytes) -> Iterator[bytes]:
        try:
            yield member.process(read, output_buffer_limit=_STEP)
            while not member.can_accept_more_data() and not member.is_finished():
                yield member.process(b"", output_buffer_limit=_STEP)
        except brotli.error:
            raise BrokenEncoding("it is not packed as its headers say") from None

    return unpack


def _zstd() -> Unpack:
    try:
        import zstandard
    except ImportError:
        raise BrokenEncoding("Zstandard is not installed: pip install 'fragmentlab[kit]'") from None
    member = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()

    def unpack(read: bytes) -> Iterator[bytes]:
        try:
            for start in range(0, len(read), _ZSTD_READ):
                if not member.eof:
                    yield member.decompress(read[start : start + _ZSTD_READ])
        except zstandard.ZstdError:
            raise BrokenEncoding("it is not packed as its headers say") from None

    return unpack


_UNPACKERS: dict[str, Callable[[], Unpack]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
