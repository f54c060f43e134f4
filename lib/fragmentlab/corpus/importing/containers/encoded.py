"""Base64 and hexadecimal: a file, or a text inside a recording, that is packed as a whole."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document

_SHORTEST = 16
_ADDRESS = re.compile(r"data:[\w/+.;=-]*;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\r\n]++={0,2}\s*+\Z")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})++\s*+\Z")


def recognise(document: Document) -> bool:
    if not isinstance(document.content, (str, bytes)) or (
        isinstance(document.content, bytes) and not document.name
    ):
        return False
    return decoded(document.text) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    data = decoded(document.text)
    assert data is not None
    yield document.inner(budget.take(data), name=document.name.removesuffix(document.suffix))


def decoded(text: str) -> bytes | None:
    """Return the bytes of a text in Base64 (either alphabet) or hexadecimal; None where it is neither."""
    text = _ADDRESS.sub("", text[:100], count=1) + text[100:] if text.startswith("data:") else text
    text = text.strip()
    if len(text) < _SHORTEST:
        return None
    if _HEX.match(text):
        return bytes.fromhex(text)
    return from_base64(text) if _BASE64.match(text) else None


def from_base64(text: str) -> bytes | None:
    """Decode Base64 with or without its padding; None where it is none."""
    packed = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    if len(packed) % 4 == 1:
        return None
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
