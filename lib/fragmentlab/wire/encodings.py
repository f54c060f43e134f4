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
    """Return what undoes a Content-Encoding header; it and this function may raise BrokenEncoding.

    >>> import gzip
    >>> b"".join(unpacker("gzip")(gzip.compress(b"data: {}")))
    b'data: {}'
    """
    codings = [coding for coding in content_encoding.lower().replace(" ", "").split(",") if coding]
    try:
        steps = [_UNPACKERS[coding]() for coding in reversed(codings) if coding != "identity"]
    except KeyError:
        raise BrokenEncoding("its content encoding is not known here") from None
    except ImportError:
        raise BrokenEncoding("its encoding needs the kit: pip install 'fragmentlab[kit]'") from None

    def unpack(read: bytes) -> Iterator[bytes]:
        try:
            yield from _through(steps, read)
        except Exception:  # each library has an error of its own
            raise BrokenEncoding("it is not packed as its headers say") from None

    return unpack


def _through(steps: list[Unpack], read: bytes) -> Iterator[bytes]:
    if not steps:
        yield read
        return
    for piece in steps[0](read):
        yield from _through(steps[1:], piece)


def _zlib() -> Unpack:
    """Undo gzip, of any number of members, and deflate, which servers send with zlib's header or without."""
    member: zlib._Decompress | None = None

    def unpack(read: bytes) -> Iterator[bytes]:
        nonlocal member
        while read:
            if member is None or member.eof:
                member = zlib.decompressobj(31 if read[0] == 0x1F else 15 if read[0] & 15 == 8 else -15)
            yield member.decompress(read, _STEP)
            read = member.unconsumed_tail or member.unused_data.lstrip(b"\0")

    return unpack


def _brotli() -> Unpack:
    import brotli

    member = brotli.Decompressor()

    def unpack(read: bytes) -> Iterator[bytes]:
        yield member.process(read, output_buffer_limit=_STEP)
        while not member.can_accept_more_data() and not member.is_finished():
            yield member.process(b"", output_buffer_limit=_STEP)

    return unpack


def _zstd() -> Unpack:
    import zstandard

    member = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    return lambda read: (
        member.decompress(read[start : start + _ZSTD_READ]) for start in range(0, len(read), _ZSTD_READ)
    )


_UNPACKERS: dict[str, Callable[[], Unpack]] = {
    "gzip": _zlib,
    "x-gzip": _zlib,
    "deflate": _zlib,
    "br": _brotli,
    "zstd": _zstd,
}
