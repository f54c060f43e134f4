"""CSV and TSV: rows as records; a cell may hold a whole stream, or each row an event."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget, Unreadable
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.lines import names_chunk

_HEADER = re.compile(r"[\w \"'.@/-]++(?:[,;\t|][\w \"'.@/-]*+)++$")
_QUOTED = re.compile(r'(?:^|[,;\t|])"(?:data:|event:|:|\{""|\[)', re.MULTILINE)
_LONGEST_CELL = 64 << 20
_MAX_COLUMNS = 2_000


def recognise(document: Document) -> bool:
    text = document.text
    if not document.name or not text or not ("data:" in text or names_chunk(text) or '""choices""' in text):
        return False
    first = document.head.partition("\n")[0].rstrip("\r")
    return document.suffix in (".csv", ".tsv") or (
        _HEADER.match(first) is not None and _QUOTED.search(text) is not None
    )


def read(document: Document, budget: Budget) -> Iterator[Document]:
    text = document.text.lstrip("\ufeff")
    first = text.partition("\n")[0]
    delimiter = max(",;\t|", key=first.count)
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        rows = list(_rows(text, delimiter, budget))
    except csv.Error:
        raise Unreadable("is a table that is broken") from None
    finally:
        csv.field_size_limit(before)
    if rows:
        yield document.inner([{f"column {n}": cell for n, cell in enumerate(row)} for row in rows])


def _rows(text: str, delimiter: str, budget: Budget) -> Iterator[list[str]]:
    for row in csv.reader(_lines(text), delimiter=delimiter):
        budget.visit(len(row))
        if len(row) > _MAX_COLUMNS:
            raise Unreadable(f"is a table of more than {_MAX_COLUMNS:,} columns; export what matters")
        yield row


def _lines(text: str) -> Iterator[str]:
    """Yield lines with their ends, so that those inside a cell stay what they are."""
    return (match[0] for match in re.finditer(r"[^\n]*\n|[^\n]+", text))
