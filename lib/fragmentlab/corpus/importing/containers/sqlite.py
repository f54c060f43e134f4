"""SQLite: the rows of each table as a list of records; read only, from a copy in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import MAX_DOCUMENT_VALUES, Budget, Unreadable
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.values import Number

_STEPS = 10_000
_FREE_BYTES = 1 << 20
_MAX_CALLS = 5_000


def recognise(document: Document) -> bool:
    return isinstance(document.content, bytes) and document.content.startswith(b"SQLite format 3\0")


def read(document: Document, budget: Budget) -> Iterator[Document]:
    calls = iter(range(_MAX_CALLS))
    connection = sqlite3.connect(":memory:")
    try:
        # A file in WAL mode cannot be opened from memory unless its header says otherwise.
        connection.deserialize(document.content[:18] + b"\x01\x01" + document.content[20:])
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_authorizer(_allowed)
        # No value that is stored is larger than the file; one that is computed may be of any size.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(_FREE_BYTES, len(document.content)))
        connection.set_progress_handler(lambda: next(calls, None) is None, _STEPS)
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        for number, (name, made) in enumerate(tables):
            if not isinstance(made, str) or made.upper().startswith("CREATE VIRTUAL"):
                continue
            rows = connection.execute('SELECT * FROM "{}"'.format(name.replace('"', '""')))
            columns = [column[0] for column in rows.description]
            table: list[dict[str, Any]] = []
            for row in rows:
                budget.visit(len(row))
                if len(table) * len(columns) > MAX_DOCUMENT_VALUES:
                    raise Unreadable(f"holds more than {MAX_DOCUMENT_VALUES:,} values; export what matters")
                table.append({key: _value(value, budget) for key, value in zip(columns, row, strict=True)})
            yield document.inner(table, f"table[{number}]")
    except (sqlite3.Error, sqlite3.Warning, UnicodeError):
        raise Unreadable("is a SQLite file that is broken or too slow to read") from None
    finally:
        connection.close()


def _allowed(action: int, *_: Any) -> int:
    wanted = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
    return sqlite3.SQLITE_OK if action in wanted else sqlite3.SQLITE_DENY


def _value(value: Any, budget: Budget) -> Any:
    if isinstance(value, (str, bytes)):
        budget.take(value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"))
        return value
    return Number(value) if isinstance(value, (int, float)) else value
