"""ZIP and tar: their regular members one by one, never a link, in bounded number and size."""

from __future__ import annotations

import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget, Unreadable
from fragmentlab.corpus.importing.documents import Document, Refusal

MAX_MEMBERS = 10_000
_STEP = 1 << 18
_TAR_MAGIC = slice(257, 262)
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError,
    ValueError, RuntimeError, struct.error,
)  # fmt: skip


def recognise(document: Document) -> bool:
    data = document.content
    return isinstance(data, bytes) and (
        data[:4] in (b"PK\x03\x04", b"PK\x05\x06") or data[_TAR_MAGIC] == b"ustar"
    )


def read(document: Document, budget: Budget) -> Iterator[Document | Refusal]:
    try:
        members = _zip if document.content[:2] == b"PK" else _tar
        yield from members(document, budget)
    except _BROKEN:
        raise Unreadable("is an archive that is broken or encrypted") from None


def _zip(document: Document, budget: Budget) -> Iterator[Document | Refusal]:
    if document.content.count(b"PK\x01\x02") > MAX_MEMBERS:
        raise Unreadable(f"is an archive of more than {MAX_MEMBERS:,} members; unpack it and choose")
    with zipfile.ZipFile(io.BytesIO(document.content)) as archive:
        for number, member in enumerate(archive.infolist()):
            budget.visit()
            if not member.file_size or _is_hidden(member.filename) or member.external_attr >> 28 == 0o12:
                continue
            try:
                with archive.open(member) as file:
                    data = _all_of(file, member.compress_size, budget)
            except _BROKEN:
                yield Refusal("a member of an archive that is broken or encrypted")
                continue
            yield document.inner(data, f"[{number}]", name=member.filename)


def _tar(document: Document, budget: Budget) -> Iterator[Document]:
    with tarfile.open(fileobj=io.BytesIO(document.content), mode="r:") as archive:
        for number, member in enumerate(archive):
            budget.visit()
            if number >= MAX_MEMBERS:
                raise Unreadable(f"is an archive of more than {MAX_MEMBERS:,} members; unpack it and choose")
            file = (
                archive.extractfile(member)
                if member.isreg() and member.size and not _is_hidden(member.name)
                else None
            )
            if file is not None:
                yield document.inner(
                    _all_of(file, len(document.content), budget), f"[{number}]", name=member.name
                )


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/") if part not in (".", ".."))


def _all_of(file: object, packed: int, budget: Budget) -> bytes:
    parts = []
    size = 0
    while part := file.read(_STEP):  # type: ignore[attr-defined]
        size += len(part)
        budget.unpacked(size, packed)
        parts.append(budget.take(part))
    return b"".join(parts)
