"""HAR: browsers' and proxies' sessions, also with the events that a browser kept apart from the body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.containers.encoded import from_base64
from fragmentlab.corpus.importing.documents import Body, Document, Refusal
from fragmentlab.corpus.importing.exchanges import Exchange
from fragmentlab.corpus.importing.responses import bodies, unit_of
from fragmentlab.corpus.importing.values import small_number


def recognise(document: Document) -> bool:
    log = document.content.get("log") if isinstance(document.content, dict) else None
    return isinstance(log, dict) and isinstance(log.get("entries"), list)


def read(document: Document, budget: Budget) -> Iterator[Body | Document | Refusal]:
    for number, entry in enumerate(document.content["log"]["entries"]):
        budget.visit()
        answer = entry.get("response") if isinstance(entry, dict) else None
        content = answer.get("content") if isinstance(answer, dict) else None
        content = content if isinstance(content, dict) else {}
        exchange = Exchange(entry if isinstance(entry, dict) else {})
        place = f"log.entries[{number}]"
        messages = entry.get("_eventSourceMessages") if isinstance(entry, dict) else None
        text = content.get("text")
        if isinstance(text, str) and text:
            yield from _content(document, content, f"{place}.response.content.text", exchange)
        elif isinstance(messages, list) and messages:
            units = [
                unit_of(str(item.get("data", "")), _name(item.get("eventName")))
                for item in messages
                if isinstance(item, dict)
            ]
            inner = document.inner(None, f"{place}._eventSourceMessages", exchange=exchange)
            yield from bodies(inner, units)
        elif "event-stream" in str(content.get("mimeType")):
            yield Refusal("body not kept")


def _content(
    document: Document, content: dict[str, Any], place: str, exchange: Exchange
) -> Iterator[Document | Refusal]:
    text: Any = content["text"]
    if content.get("encoding") == "base64" and not text.startswith(("[", "{")):
        text = from_base64(text)
        if text is None:
            yield Refusal("not Base64")
            return
    exchange.recorded_bytes = small_number(content.get("size"))
    yield document.inner(text, place, exchange=exchange)


def _name(name: Any) -> str | None:
    return name if isinstance(name, str) and name not in ("", "message") else None
