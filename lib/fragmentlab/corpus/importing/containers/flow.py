"""mitmproxy's flow files: tnetstrings, one flow after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import Budget, Unreadable
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.exchanges import Exchange
from fragmentlab.corpus.importing.values import Number

MAX_DEPTH = 32
_SIZE = re.compile(rb"(\d{1,10}):")


def recognise(document: Document) -> bool:
    data = document.content
    return isinstance(data, bytes) and re.match(rb"\d{1,10}:\d{1,6}:[a-z_]+[;,]", data[:64]) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    at = number = 0
    data = document.content
    while at < len(data):
        flow, at = _value(data, at, budget, 0)
        answer = flow.get("response") if isinstance(flow, dict) else None
        if isinstance(answer, dict) and isinstance(answer.get("content"), bytes):
            request, headers = flow.get("request"), answer.get("headers")
            asked = _asked(request) if isinstance(request, dict) else {}
            pairs = headers if isinstance(headers, list) else []
            answered = {"headers": [_text(item) for pair in pairs for item in pair]}
            error = _text(flow.get("error") or "")
            exchange = Exchange({"request": asked, "response": answered, "error": error})
            yield document.inner(answer["content"], f"[{number}].response", exchange=exchange)
        number += 1


def _asked(request: dict[str, Any]) -> dict[str, Any]:
    host = request.get("authority") or request.get("host")
    told = {"host": host, "path": request.get("path"), "body": request.get("content")}
    return {name: _text(value or b"") for name, value in told.items()}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "error" if isinstance(value, dict) else str(value)


def _value(data: bytes, at: int, budget: Budget, depth: int) -> tuple[Any, int]:
    """Return the value that begins at ``at`` and where the next one begins."""
    budget.visit()
    match = _SIZE.match(data, at)
    end = match.end() + int(match[1]) if match else -1
    if match is None or end >= len(data) or depth > MAX_DEPTH:
        raise Unreadable("is a mitmproxy file that is cut or broken")
    kind, start = data[end : end + 1], match.end()
    if kind in b"}]":
        items = []
        while start < end:
            item, start = _value(data, start, budget, depth + 1)
            items.append(item)
        if kind == b"]":
            return items, end + 1
        return {_text(key): item for key, item in zip(items[::2], items[1::2], strict=False)}, end + 1
    payload = data[start:end]
    if kind == b";":
        return payload.decode("utf-8", "replace"), end + 1
    if kind in b"#^":
        return Number(payload.decode("latin-1")), end + 1
    return payload if kind == b"," else payload == b"true" if kind == b"!" else None, end + 1
