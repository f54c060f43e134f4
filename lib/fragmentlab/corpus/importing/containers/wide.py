"""Text in UTF-16, as PowerShell writes what it is redirected."""

from __future__ import annotations

from collections.abc import Iterator

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document

UTF16 = "read as UTF-16"


def recognise(document: Document) -> bool:
    return document.is_wide


def read(document: Document, budget: Budget) -> Iterator[Document]:
    text = document.text.lstrip("\ufeff").replace("\r\n", "\n")
    yield document.inner(text, "", UTF16, name=document.name)
