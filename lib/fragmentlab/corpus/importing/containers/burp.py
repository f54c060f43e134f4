"""Burp's saved items: XML with each request and response in Base64 or as text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.containers.encoded import from_base64
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.values import as_body

_PART = re.compile(r"<(request|response)(?: base64=\"(true|false)\")?>(.*?)</\1>", re.DOTALL)


def recognise(document: Document) -> bool:
    return document.head.startswith("<?xml") and "<items" in document.head and "<response" in document.text


def read(document: Document, budget: Budget) -> Iterator[Document]:
    asked = b""
    for number, part in enumerate(_PART.finditer(document.text)):
        budget.visit()
        text = (
            part[3].removeprefix("<![CDATA[").removesuffix("]]>")
            if part[3].startswith("<![CDATA[")
            else html.unescape(part[3])
        )
        data = (from_base64(text) or b"") if part[2] == "true" else as_body(text)
        if part[1] == "request":
            asked = budget.take(data)
        else:
            # One message after the other, as on the wire, so that the answer is read with its request.
            yield document.inner(budget.take(asked.rstrip() + b"\r\n\r\n" + data), f"[{number // 2}]")
            asked = b""
