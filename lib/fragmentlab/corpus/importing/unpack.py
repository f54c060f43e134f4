"""What a recorder wraps a body in: gzip, zlib, Brotli, Zstandard, Base64, hex. All within one budget of
bytes."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_UNPACKED_BYTES = 256 << 20
"""The most bytes that unpacking may give for one file, all its bodies together."""
_STEP = 1 << 20
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_SHORTEST = 16
_RESPONSE_HEAD = re.compile(rb"HTTP/[0-9.]+ [0-9]{3}[^\r\n]*\r\n(?:[^\r\n]+\r\n)*+\r\n")
_CHUNK_HEAD = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?\r\n")


class Unreadable(Exception):
    """A file or a body cannot be read; the message says why in the kit's own words and quotes nothing."""


class Budget:
    """How many bytes one file may still unpack to."""

    def __init__(self, left: int = MAX_UNPACKED_BYTES) -> None:
        self.left = left
        self.cut = 0
        """How many packed bodies ended early and were read to their end."""

    def take(self, data: bytes) -> bytes:
        """Count the bytes; raise Unreadable where they are too many."""
        self.left -= len(data)
        if self.left < 0:
            raise Unreadable(f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB")
        return data


def ungzip(data: bytes, budget: Budget) -> bytes:
    """Unpack gzip of one or more members; raise Unreadable where it is broken. A cut end keeps what is
    there."""
    parts: list[bytes] = []
    while data.startswith(GZIP_MAGIC):
        unpacker = zlib.decompressobj(wbits=31)
        parts += _unpacked(unpacker, data, budget)
        data = unpacker.unused_data.lstrip(b"\0")
    return b"".join(parts)


def inflate(data: bytes, budget: Budget) -> bytes | None:
    """Unpack ``Content-Encoding: deflate``, with or without zlib's header; None where it is neither."""
    for wbits in (15, -15):
        try:
            return b"".join(_unpacked(zlib.decompressobj(wbits=wbits), data, budget))
        except _Broken:
            continue
    return None


class _Broken(Unreadable):
    """Packed data that does not unpack."""


def _unpacked(unpacker: zlib._Decompress, data: bytes, budget: Budget) -> Iterator[bytes]:
    try:
        while data and not unpacker.eof:
            yield budget.take(unpacker.decompress(data, _STEP))
            data = unpacker.unconsumed_tail
    except zlib.error:
        raise _Broken("is packed, but does not unpack") from None
    budget.cut += not unpacker.eof


def unbrotli(data: bytes, budget: Budget) -> bytes | None:
    """Unpack Brotli; None where it is none."""
    import brotli

    unpacker = brotli.Decompressor()
    parts = []
    try:
        parts.append(budget.take(unpacker.process(data, output_buffer_limit=_STEP)))
        while not unpacker.can_accept_more_data() and not unpacker.is_finished():
            parts.append(budget.take(unpacker.process(b"", output_buffer_limit=_STEP)))
    except brotli.error:
        return None
    return b"".join(parts)


def unzstd(data: bytes, budget: Budget) -> bytes:
    """Unpack Zstandard; raise Unreadable where it is broken."""
    import zstandard

    parts = []
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            while part := reader.read(_STEP):
                parts.append(budget.take(part))
    except zstandard.ZstdError:
        raise _Broken("is packed, but does not unpack") from None
    return b"".join(parts)


def unpack(data: bytes, content_encoding: str, budget: Budget) -> bytes:
    """Undo what a body is packed in: chunked transfer coding, then what its magic number or the response's
    headers say."""
    data = unchunked(data)
    if data.startswith(GZIP_MAGIC):
        return ungzip(data, budget)
    if data.startswith(ZSTD_MAGIC):
        return unzstd(data, budget)
    if "br" in content_encoding:
        return unbrotli(data, budget) or data
    if "deflate" in content_encoding or data[:1] == b"\x78":
        return inflate(data, budget) or data
    return data


def unchunked(data: bytes) -> bytes:
    """Undo chunked transfer coding, and drop a status line and headers before it. Data that is not chunks
    to its end comes back as it is; the last chunk may be cut."""
    head = _RESPONSE_HEAD.match(data)
    at = head.end() if head else 0
    parts = []
    while at < len(data):
        size = _CHUNK_HEAD.match(data, at)
        if size is None:
            return data
        start, at = size.end(), size.end() + int(size[1], 16)
        if at == start:
            break
        parts.append(data[start:at])
        if not b"\r\n".startswith(data[at : at + 2]):
            return data
        at += 2
    return b"".join(parts) or data


def as_body(text: str) -> bytes:
    """Return the bytes of a text; what stood for bytes that are not UTF-8 is those bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def from_base64(text: str, budget: Budget) -> bytes | None:
    """Decode Base64 (either alphabet, line breaks allowed); None where the text is none."""
    if len(text) < _SHORTEST:
        return None
    packed = text if text.isalnum() else re.sub(r"[\r\n\t ]+", "", text)
    if len(packed.rstrip("=")) % 4 == 1 or not _BASE64.fullmatch(packed):
        return None
    packed = packed.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return budget.take(base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True))
    except binascii.Error:
        return None


def from_hex(text: str, budget: Budget) -> bytes | None:
    """Decode hexadecimal; None where the text is none."""
    if len(text) < _SHORTEST or not _HEX.fullmatch(text):
        return None
    return budget.take(bytes.fromhex(text))
