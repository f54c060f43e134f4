"""An event stream as it is: its bytes are the body, nothing is undone unless every blank line is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Body, Document, Refusal
from fragmentlab.corpus.importing.lines import FIELD, with_blank_lines
from fragmentlab.corpus.importing.responses import BLANK_LINES_LOST, blocks, bodies
from fragmentlab.wire.events import looks_like_events

_EVENT = re.compile(r"(?:\A\ufeff?|[\r\n])(?:data|event):")
_OPENS = re.compile(r"data:[ \t]*+[{\[][ \t]*+\r?\n(?!(?:data|event|id|retry)?:)")
_GLUED = re.compile(
    r"^(?!(?:data|event|id|retry)?:)[^\n]*?[^\w\n\"]data:[ \t]*+\{\"[^\n]*\"choices\"", re.MULTILINE
)
_ESCAPED = re.compile(r"^data:[^\n]*?[}\]](?:\\r)?\\n(?:\\r)?\\n(?:data:|event:|\s*\Z)", re.MULTILINE)
_BLANK_LINE = re.compile(r"(?:\r\n|\n|\r)(?:\r\n|\n|\r)")


def recognise(document: Document) -> bool:
    head = document.head
    if not FIELD.match(head):
        return False
    if not looks_like_events(document.data):
        has_events = _EVENT.search(document.text) or all(map(FIELD.match, head.split()))
        if not (document.name and has_events) or document.suffix in (".yaml", ".yml"):
            return False
    return not (_OPENS.search(head) or _ESCAPED.search(head) or _GLUED.search(document.text))


def read(document: Document, budget: Budget) -> Iterator[Body | Refusal]:
    text = document.text
    if not _EVENT.search(text):
        yield Refusal("only comments")
    elif (
        _BLANK_LINE.search(text.lstrip("\ufeff\r\n")) is None
        and (restored := with_blank_lines(text.splitlines())) is not None
    ):
        yield from bodies(document, blocks(restored), BLANK_LINES_LOST)
    elif document.is_joined:
        yield from bodies(document, blocks(text), fidelity=document.body(b"").fidelity)
    else:
        yield document.body(document.data)
