"""Files that hold no stream that could be judged, told apart so that the answer says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document, Refusal

_MAGIC = (
    (b"\xd4\xc3\xb2\xa1", "packet capture"), (b"\xa1\xb2\xc3\xd4", "packet capture"),
    (b"\x4d\x3c\xb2\xa1", "packet capture"), (b"\xa1\xb2\x3c\x4d", "packet capture"),
    (b"\x0a\x0d\x0d\x0a", "packet capture"),
    (b"7z\xbc\xaf\x27\x1c", "archive"), (b"Rar!\x1a\x07", "archive"), (b"\x04\x22\x4d\x18", "archive"),
    (b"PAR1", "columnar"), (b"ORC", "columnar"), (b"ARROW1", "columnar"), (b"Obj\x01", "columnar"),
    (b"\x89PNG", "picture"), (b"\xff\xd8\xff", "picture"), (b"GIF8", "picture"), (b"%PDF-", "picture"),
)  # fmt: skip
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_PAGE = re.compile(r"(?:<!doctype html|<html|<head|<body|<h1|<center)", re.IGNORECASE)
_CONSTRUCTOR = re.compile(r"\b[A-Z]\w*+\(")
_CLASS = re.compile(r"Chunk|Stream|Choice|Delta|ToolCall|Function")
_PYTHON = re.compile(r"[{,]\s*'[\w.]+'\s*:\s*(?:None|True|False|[\['{\"\d-])")
_NODE = re.compile(
    r"(?:[{,]\s*+|^[ \t]*+)[A-Za-z_$][\w$]*+: (?:undefined|null|\[|'|\{|\d|true|false|`|\")"
    r"|\[(?:Object|Array)\]",
    re.MULTILINE,
)
_BARE_KEY = re.compile(r"^[ \t]++(?:id|object|choices|delta): ", re.MULTILINE)
_SUBJECT = re.compile(r"choices|delta|tool_calls|chat\.completion")


def recognise(document: Document) -> bool:
    return (
        bool(document.name) and isinstance(document.content, (str, bytes)) and _reason(document) is not None
    )


def read(document: Document, budget: Budget) -> Iterator[Refusal]:
    reason = _reason(document)
    assert reason is not None
    yield Refusal(reason)


def _reason(document: Document) -> str | None:
    if isinstance(document.content, bytes):
        for magic, reason in _MAGIC:
            if document.content.startswith(magic):
                return reason
        if _PICKLE.match(document.content):
            return "pickle"
        if not document.content.strip():
            return "nothing"
    head = document.head
    if not head:
        return "binary" if document.data else "nothing"
    if _PAGE.match(head) or (head.startswith("<?xml") and _PAGE.search(head[:2000])):
        return "web page"
    is_printed = _SUBJECT.search(head) and (
        any(map(_CLASS.search, _CONSTRUCTOR.findall(head))) or _is_printed(head)
    )
    return "printed object" if is_printed else None


def _is_printed(head: str) -> bool:
    """Return whether the first object of the text has keys or values as no JSON has."""
    for line in head.split("\n")[:200]:
        at = min((line.find(mark) for mark in "{[" if mark in line), default=-1)
        if (
            at >= 0
            and (_PYTHON.search(line, at) or _NODE.search(line, at))
            and 'choices\\"' not in line
            and 'choices"' not in line
        ):
            return True
    opens = head.partition("\n")[0].rstrip().endswith(("{", "["))
    return opens and _BARE_KEY.search(head) is not None
