"""What ``curl --trace-ascii`` and ``--trace`` write: the bytes received, in rows numbered by their offset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.lines import json_end
from fragmentlab.corpus.importing.values import as_body

TRACE = "line ends taken from a trace"
_SECTION = re.compile(r"(?:\d\d:\d\d:\d\d\.\d+ )?(<=|=>|==) (Recv|Send|Info)[ :](?:(header|data), (\d+))?")
_ROW = re.compile(r"([0-9a-f]{4,8}): ?")
_HEX = re.compile(r"(?:[0-9a-f]{2} ){1,16} *")
_HEX_COLUMNS = 48
"""How wide the bytes stand in a row of ``--trace``, before the same as text."""
_DATA = re.compile(r"data: ?(?=[\[{])")
_EVENT_END = re.compile(r"\.\.(?=(?:data|event|id|retry)?:|\r\n|\Z)")


def recognise(document: Document) -> bool:
    return _SECTION.match(document.head) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    body = bytearray()
    base = end = 0
    is_received = is_hex = False
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
            packed = _HEX.fullmatch(text[:_HEX_COLUMNS]) if len(text) > _HEX_COLUMNS else None
            is_hex = is_hex or packed is not None
            body += bytes.fromhex(text[:_HEX_COLUMNS]) if packed else as_body(text)
    _fill(body, end)
    whole = bytes(body) if is_hex else _with_line_feeds(body.decode("utf-8", "surrogateescape"))
    yield document.inner(whole, "", TRACE, is_joined=True)


def _with_line_feeds(text: str) -> bytes:
    """Put back the line feeds outside of events' data: the text form shows a full stop for each."""
    parts: list[str] = []
    at = 0
    while mark := _DATA.search(text, at):
        end = json_end(text, mark.end())
        if end is None:
            cut = _EVENT_END.search(text, mark.end())
            end = cut.start() if cut else len(text)
        parts += [text[at : mark.start()].replace(".", "\n"), text[mark.start() : end]]
        at = end
    return as_body("".join([*parts, text[at:].replace(".", "\n")]))


def _fill(body: bytearray, end: int) -> None:
    """Put back the line end that a row does not show."""
    missing = end - len(body)
    if 0 < missing <= 2:
        body += b"\n" if missing == 1 else b"\r\n"
