"""YAML: cassettes. It is told from other texts here, and loaded only where there is some."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget, OtherKind, Unreadable
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.lines import data_mark
from fragmentlab.wire.events import looks_like_events

_START = re.compile(r"(?:#[^\n]*+\n\s*+)*+(?:---|%YAML|- |[\"']?[A-Za-z_][\w.-]*+[\"']?:(?:\s|$))")
_SECOND_LINE = re.compile(
    r"(?:#[^\n]*+\n\s*+)*+(?!(?:data|event|id|retry):)[\"']?[\w.-]++[\"']?: *+[^\n]{0,100}\n"
    r"(?:\s*+- |\s++[\w\"'-]+:|[\w.-]++:)"
)
_SUFFIXES = (".yaml", ".yml")


def recognise(document: Document) -> bool:
    if not isinstance(document.content, (str, bytes)) or not document.name or document.head[:1] in ("{", "["):
        return False
    if document.suffix in _SUFFIXES:
        return data_mark(document.head) != 0
    return (
        ("response" in document.text or "data:" in document.text)
        and _START.match(document.head) is not None
        and not looks_like_events(document.data)
        and not any(map(_is_logged, document.head.split("\n")))
        and _is_yaml(document)
    )


def _is_logged(line: str) -> bool:
    """Return whether a line is an event with something before it that no cassette has there."""
    prefix = line[: data_mark(line) or 0].strip()
    return bool(prefix) and prefix[-1] not in "\"'"


def _is_yaml(document: Document) -> bool:
    """Return whether a file of another name is YAML: it says so, or its first key is followed by more."""
    return document.head.startswith(("---\n", "%YAML", "- ")) or _SECOND_LINE.match(document.head) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    from fragmentlab.corpus.importing.yaml_values import NotYAML, yaml_values

    # YAML allows no stray bytes; they stand as U+FFFD, as the recorder's own reader would show them.
    text = re.sub("[\U0010ff80-\U0010ffff]", "\ufffd", document.text)
    try:
        for number, value in enumerate(yaml_values(text)):
            yield document.inner(value, f"[{number}]" if number else "", name=document.name)
    except NotYAML as error:
        if document.suffix not in _SUFFIXES:
            raise OtherKind("is not YAML") from None
        raise Unreadable("is not valid YAML" + (f" (line {error.line})" if error.line else "")) from None
