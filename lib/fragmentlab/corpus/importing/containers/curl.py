"""What ``curl --trace-ascii`` and ``--trace`` write: the bytes received, in rows numbered by their offset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.values import as_body

TRACE = "line ends taken from a trace"
_SECTION = re.compile(r"(?:\d\d:\d\d:\d\d\.\d+ )?(<=|=>|==) (Recv|Send|Info)[ :](?:(header|data), (\d+))?")
_ROW = re.compile(r"([0-9a-f]{4,8}): ?")
_HEX = re.compile(r"((?:[0-9a-f]{2} ){1,16}) ")
_DOTS = re.compile(rb"(?<=[}\]])\.\.(?=data:|event:|id:|:|\Z)")


def recognise(document: Document) -> bool:
    return _SECTION.match(document.head) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    body = bytearray()
    base = end = 0
    is_received = False
    lines = document.text.split("\n")
    budget.visit(len(lines))
    for line in lines:
        if section := _SECTION.match(line):
            _fill(body, end)
            is_received = section[2] == "Recv" and section[3] == "data"
            base = len(body)
            end = base + int(section[4]) if is_received else base
        elif is_received and (row := _ROW.match(line)):
            _fill(body, base + int(row[1], 16))
            text = line[row.end() :].removesuffix("\r")
            packed = _HEX.match(text + " ")
            body += bytes.fromhex(packed[1]) if packed else as_body(text)
    _fill(body, end)
    # Of a line feed without a carriage return curl shows a full stop.
    whole = bytes(body) if b"\n" in body else _DOTS.sub(b"\n\n", bytes(body))
    yield document.inner(whole, "", TRACE, is_joined=True)


def _fill(body: bytearray, end: int) -> None:
    """Put back the line end that a row does not show."""
    missing = end - len(body)
    if 0 < missing <= 2:
        body += b"\n" if missing == 1 else b"\r\n"
