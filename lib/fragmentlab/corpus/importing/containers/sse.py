"""An event stream as it is: its bytes are the body, nothing is undone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Body, Document, Refusal
from fragmentlab.corpus.importing.lines import FIELD, plain_lines, with_blank_lines
from fragmentlab.corpus.importing.responses import BLANK_LINES_LOST, blocks, bodies
from fragmentlab.wire.events import looks_like_events
from fragmentlab.wire.protocols import lost_blank_lines

MISSING_BLANK_LINES = "blank lines between events are missing, kept as recorded"
_EVENT = re.compile(r"(?:\A\ufeff?|[\r\n])(?:data|event):")
_OPENS = re.compile(r"data:[ \t]*+[{\[][ \t]*+\r?\n(?!(?:data|event|id|retry)?:)")
_GLUED = re.compile(
    r"^(?!(?:data|event|id|retry)?:)[ \t]*+(?!data:)[^\n]*?[^\w\n\"]data:[ \t]*+\{\"[^\n]*\"choices\"",
    re.MULTILINE,
)
_ESCAPED = re.compile(
    r"^(?:data:[^\n]*?[}\]](?:\\r)?\\n|(?:event|id|retry)?:[^\n{]*?)(?:\\r)?\\n(?:data:|event:|\s*\Z)",
    re.MULTILINE,
)


def recognise(document: Document) -> bool:
    head = document.head
    if not FIELD.match(head):
        return False
    if not looks_like_events(document.data):
        has_events = _EVENT.search(document.text) or all(map(FIELD.match, filter(None, head.splitlines())))
        if not (document.name and has_events) or document.suffix in (".yaml", ".yml"):
            return False
    return not (_OPENS.search(head) or _ESCAPED.search(head) or _GLUED.search(document.text))


def read(document: Document, budget: Budget) -> Iterator[Body | Refusal]:
    text = document.text
    if not _EVENT.search(text):
        yield Refusal("only comments")
    elif document.is_joined:
        restored = None if "\n\n" in text else with_blank_lines(plain_lines(text))
        notes = (BLANK_LINES_LOST,) if restored else ()
        yield from bodies(document, blocks(restored or text), *notes, fidelity=document.body(b"").fidelity)
    else:
        notes = (MISSING_BLANK_LINES,) if lost_blank_lines(document.data) else ()
        yield document.body(document.data, *notes, fidelity=document.body(b"").fidelity)
