"""Insomnia's timeline: what was received, in pieces between other messages."""

from __future__ import annotations

from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.exchanges import Exchange


def recognise(document: Document) -> bool:
    value = document.content
    return isinstance(value, list) and any(
        isinstance(item, dict) and item.get("name") == "DataIn" and "timestamp" in item for item in value
    )


def read(document: Document, budget: Budget) -> Iterator[Document]:
    texts = dict.fromkeys(("HeaderOut", "DataOut", "DataIn"), "")
    for name in texts:
        parts = [
            item.get("value")
            for item in document.content
            if isinstance(item, dict) and item.get("name") == name
        ]
        texts[name] = "".join(part for part in parts if isinstance(part, str))
    budget.visit(len(document.content))
    exchange = Exchange({"request": {"body": texts["DataOut"]}, "response": {}})
    yield document.inner(texts["DataIn"], "DataIn", exchange=exchange)
