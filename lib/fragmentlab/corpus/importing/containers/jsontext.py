"""JSON: one value, several in a row, or one on each line; chunks on lines are an event stream already."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import Budget, Unreadable
from fragmentlab.corpus.importing.documents import Body, Document, Refusal
from fragmentlab.corpus.importing.lines import names_chunk
from fragmentlab.corpus.importing.values import END_MARKER, as_body, check_size, parse_json
from fragmentlab.wire.protocols import is_chunk

_START = re.compile(
    r"\{\s*+[\"}]|(?!\[[\d.,:\s-]*+\][ \t]*+[^\s\[,])\[\s*+[\[{\"\d\-tfn\]]|\"(?:[^\"\\]|\\.)*+\"\s*+\Z",
    re.DOTALL,
)
_BLANKS = re.compile(r"[ \t\r\n\ufeff]*+")
_LONGEST_LINE = 16 << 20
LINES_LEFT_OUT = "lines of a log that are not JSON left out"


def recognise(document: Document) -> bool:
    if not isinstance(document.content, (str, bytes)) or not _START.match(document.head):
        return False
    text = document.text
    at = _BLANKS.match(text).end()  # type: ignore[union-attr]
    if document.suffix in (".json", ".jsonl", ".ndjson", ".har", ".ipynb", ".chlsj"):
        return True
    line_end = text.find("\n", at)
    try:
        json.loads(text[at : line_end if line_end >= 0 else len(text)][:_LONGEST_LINE])
        return True
    except (ValueError, RecursionError):
        pass
    try:
        # A value over several lines, or one that is broken: told by how far it can be read.
        json.loads(text)
        return True
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            return error.pos >= len(text.rstrip())
        # Another value may follow on the same line; any other text makes it a line of a log.
        end = len(text[: error.pos].rstrip())
        return text[error.pos] in '{["' or "\n" in text[end : error.pos]
    except (ValueError, RecursionError):
        return True


def read(document: Document, budget: Budget) -> Iterator[Body | Document | Refusal]:
    text = document.text
    check_size(text, budget)
    if _is_chunk_lines(text):
        yield document.body(
            as_body(text) if document.is_wide or isinstance(document.content, str) else document.data,
            fidelity="chunks",
        )
        return
    values, left_out = _values(text)
    notes = (LINES_LEFT_OUT,) if left_out else ()
    yield document.inner(values[0] if len(values) == 1 else values, "", *notes, name=document.name)


def _is_chunk_lines(text: str) -> bool:
    """Return whether each line is a JSON object and one of the first is a chunk: an event stream as it is."""
    if text[:64].lstrip("\ufeff \t\r\n")[:1] != "{":
        return False
    lines = [line for line in text.lstrip("\ufeff").split("\n") if line.strip()]
    if len(lines) < 2 or not all(line.lstrip()[:1] == "{" for line in lines) or lines[0].strip() == "{":
        return False
    for line in lines[:16]:
        try:
            return is_chunk(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return False


def _values(text: str) -> tuple[list[Any], int]:
    """Return the JSON values of a text, and how many lines after the first value are none."""
    values: list[Any] = []
    at = _BLANKS.match(text).end()  # type: ignore[union-attr]
    try:
        while at < len(text):
            is_done = text.startswith(END_MARKER, at)
            value, at = (END_MARKER, at + len(END_MARKER)) if is_done else parse_json(text, at)
            values.append(value)
            at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
    except json.JSONDecodeError as error:
        lines = text[at:].split("\n")
        if not values or (len(lines) < 2 and text[at - 1] != "\n" and error.pos < len(text.rstrip())):
            raise Unreadable(f"is not valid JSON (line {error.lineno})") from None
        found = [_line(line) for line in lines if line.strip()]
        cut = None in found[-1:] and not text.endswith("\n")
        broken = [line for line, value in zip(filter(str.strip, lines), found, strict=True) if value is None]
        if any(line.lstrip()[:1] == "{" and names_chunk(line) for line in broken[: -1 if cut else None]):
            raise Unreadable(
                "has a chunk on a line that is not valid JSON; mend or remove the line"
            ) from None
        return values + [value for value in found if value is not None], found.count(None)
    return values, 0


def _line(line: str) -> Any:
    """Return the value of a line, None where it is no JSON."""
    try:
        return (
            END_MARKER if line.strip() == END_MARKER else parse_json(line, len(line) - len(line.lstrip()))[0]
        )
    except (ValueError, Unreadable):
        return None
