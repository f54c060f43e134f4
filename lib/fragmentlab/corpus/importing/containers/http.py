"""HTTP messages as text: ``curl -i``, a proxy's raw export, requests and responses one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.exchanges import Exchange

_EOL = rb"(?:\r?\n)"
_HEAD = re.compile(
    rb"(?:^|(?<=[}\]])(?=[^\r\n]{1,1000}+\r?\n[\w-]++:))"
    rb"(?:(?P<status>HTTP/[0-9.]+ [0-9]{3})|(?P<method>[A-Z]{3,7} \S++ HTTP/[0-9.]++))[^\r\n]*+" + _EOL,
    re.MULTILINE,
)
"""A first line; straight after a body of JSON, which ends in no line end, only with headers below it."""
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]++):[ \t]*+([^\r\n]*+)" + _EOL)
_BLANK = re.compile(_EOL)
_SEPARATOR = re.compile(rb"\r?\n===+ ?\d+ =+\r?\n|\r?\n={10,}\r?\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*+;[^\r\n]*+)?\r\n")


def recognise(document: Document) -> bool:
    head = document.data[: 1 << 16].lstrip()
    return _unchunked(document.data) is not None or (
        _HEAD.search(head) is not None and re.match(rb"HTTP/|[A-Z]{3,7} \S++ HTTP/|=", head) is not None
    )


def read(document: Document, budget: Budget) -> Iterator[Document]:
    data = document.data
    if (whole := _unchunked(data)) is not None:
        yield document.inner(budget.take(whole), name=document.name)
        return
    heads = list(_HEAD.finditer(data))
    asked: dict[str, object] = {}
    for number, head in enumerate(heads):
        budget.visit()
        headers, at = _headers(data, head.end())
        end = heads[number + 1].start() if number + 1 < len(heads) else len(data)
        body = _SEPARATOR.split(data[at:end], maxsplit=1)[0]
        if head["method"] is not None:
            method, url, _ = head["method"].decode("latin-1").split(" ")
            text = body.decode("utf-8", "replace").strip()
            asked = {"method": method, "url": url, "headers": headers, "body": text}
        elif body.strip():
            exchange = Exchange({"request": asked, "response": {"headers": headers}})
            whole = _unchunked(body)
            body = body if whole is None else whole
            yield document.inner(body, f"[{number}]", name=document.name, exchange=exchange)


def _headers(data: bytes, at: int) -> tuple[dict[str, str], int]:
    """Return the headers after a first line, and where the body begins."""
    headers: dict[str, str] = {}
    while match := _HEADER.match(data, at):
        headers[match[1].decode("latin-1").lower()] = match[2].decode("latin-1")
        at = match.end()
    blank = _BLANK.match(data, at)
    return headers, blank.end() if blank else at


def _unchunked(data: bytes) -> bytes | None:
    """Undo chunked transfer coding; None where it is none to its end. The last chunk may be cut."""
    at = 0
    parts: list[bytes] = []
    while at < len(data):
        size = _SIZE.match(data, at)
        if size is None:
            return None if at == 0 or data[at:].strip() else b"".join(parts)
        start, at = size.end(), size.end() + int(size[1], 16)
        if at == start:
            break
        parts.append(data[start:at])
        if not b"\r\n".startswith(data[at : at + 2]):
            return None
        at += 2
    return b"".join(parts) or None
