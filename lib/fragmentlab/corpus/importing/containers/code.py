"""Events in the strings of a program or a printed text: fixtures, ``repr`` of bytes, ``key="..."`` logs.

The literals are read, nothing is run. A literal whose value holds no JSON where its text does (an author
forgot to double the backslashes) is taken as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.lines import data_mark, data_start, escaped_events, json_end, names_chunk
from fragmentlab.corpus.importing.values import as_text

LITERALS = "strings of a program were read"
_START = re.compile(
    r"""(?P<bytes>\b[bB])?(?P<quote>\"\"\"|'''|["'`])"""
    r"""(?=\s*(?:(?:data|event|id|retry)?:|\\*\{\\*"(?:id|choices|object|error)|\[DONE\]))"""
)
_BODY = {
    quote: re.compile(rf"[^\\{quote}]*+(?:\\.[^\\{quote}]*+)*+(?={quote})", re.DOTALL) for quote in "\"'`"
}
_ESCAPE = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r?\n)|(.))", re.DOTALL
)
_HALF = re.compile("[\ud800-\udbff]")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"}


def recognise(document: Document) -> bool:
    text = document.text
    if not any(quote in text for quote in "\"'`"):
        return False
    for line in text.split("\n"):
        mark = data_mark(line)
        if mark is not None:
            return mark > 0 and line[mark - 1] in "\"'`"
        if names_chunk(line):
            start = _START.search(line)
            return start is not None and start.end() <= line.find("{")
    return False


def read(document: Document, budget: Budget) -> Iterator[Document]:
    found = list(_literals(document.text, budget))
    if found:
        yield document.inner(found, "", LITERALS)


def _literals(text: str, budget: Budget) -> Iterator[str]:
    at = 0
    while start := _START.search(text, at):
        budget.visit()
        quote = start["quote"]
        if len(quote) == 3:
            end = text.find(quote, start.end())
        else:
            body = _BODY[quote].match(text, start.end())
            end = -1 if body is None else body.end()
        if end < 0:
            at = start.end()
            continue
        yield _value(text[start.end() : end], start["bytes"] is not None)
        at = end + len(quote)


def _value(written: str, is_bytes: bool) -> str:
    value = _ESCAPE.sub(_escaped, written)
    if is_bytes:
        value = as_text(value.encode("latin-1", "replace"))
    elif _HALF.search(value):
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if _holds_json(value) or not _holds_json(written):
        return value
    return escaped_events(written) or written


def _holds_json(text: str) -> bool:
    """Return whether all data of the events in a text is JSON, or the text itself is."""
    lines = [line for line in text.split("\n") if data_mark(line) is not None]
    if not lines:
        return json_end(text, text.find("{")) is not None
    return all(json_end(line, data_start(line, data_mark(line) or 0)) is not None for line in lines)


def _escaped(match: re.Match[str]) -> str:
    if code := match[1] or match[2] or match[3]:
        return chr(min(int(code, 16), 0x10FFFF))
    if match[4]:
        return ""
    return _SIMPLE.get(match[5], match[5])
