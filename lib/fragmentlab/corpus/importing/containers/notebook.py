"""Jupyter notebooks: what their cells printed, never their source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import Budget
from fragmentlab.corpus.importing.documents import Document


def recognise(document: Document) -> bool:
    value = document.content
    return isinstance(value, dict) and isinstance(value.get("cells"), list) and "nbformat" in value


def read(document: Document, budget: Budget) -> Iterator[Document]:
    for number, cell in enumerate(document.content["cells"]):
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for at, output in enumerate(outputs if isinstance(outputs, list) else ()):
            budget.visit()
            place = f"cells[{number}].outputs[{at}]"
            data = output.get("data") if isinstance(output, dict) else None
            if isinstance(data, dict):
                shown = data.get("application/json", data.get("text/plain"))
            else:
                shown = output.get("text") if isinstance(output, dict) else None
            text = _joined(shown)
            if isinstance(text, str):
                # With a name, so that a text is read like a file that somebody saved.
                yield document.inner(text, place, name="output.txt", is_joined=True)
            elif text is not None:
                yield document.inner(text, place)


def _joined(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "".join(value)
    return value
