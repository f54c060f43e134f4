"""Burp's saved items: XML with each request and response in Base64 or as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.containers.encoded import from_base64
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.values import as_body

_PART = re.compile(r"<(request|response)(?: base64=\"(true|false)\")?>")


def recognise(document: Document) -> bool:
    return document.head.startswith("<?xml") and "<items" in document.head and "<response" in document.text


def read(document: Document, budget: Budget) -> Iterator[Document]:
    asked = b""
    text, at, number = document.text, 0, 0
    while part := _PART.search(text, at):
        budget.visit()
        at = text.find(f"</{part[1]}>", part.end())
        if at < 0:
            return
        inside = text[part.end() : at]
        if inside.startswith("<![CDATA["):
            inside = inside.removeprefix("<![CDATA[").removesuffix("]]>")
        else:
            inside = html.unescape(inside)
        data = budget.take((from_base64(inside) or b"") if part[2] == "true" else as_body(inside))
        if part[1] == "response":
            # One message after the other, as on the wire, so that the answer is read with its request.
            yield document.inner(asked.rstrip() + b"\r\n\r\n" + data, f"[{number}]")
            number += 1
        asked = data if part[1] == "request" else b""
