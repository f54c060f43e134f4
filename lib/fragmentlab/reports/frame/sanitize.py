"""What may stay in an executed notebook: applied to every save, so that nothing else ever reaches a disk.

Removed: what papermill and the kernel note about paths, times and parameters; raw parameter values; the text
that libraries write to standard error; messages and source lines of tracebacks. Messages of our own
exceptions stay, without any word that is not the kit's own, and what the system calls its errors.

Source: docs/design.md, section 5.
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fragmentlab
from fragmentlab.disclosure import for_terminal, only_own_words

OWN_EXCEPTIONS = frozenset({"InputError", "ResultDoesNotHold"})
"""Exceptions whose messages this kit writes itself."""
MESSAGE_LIMIT = 600
FOOTER_TYPE = "application/vnd.fragmentlab.footer+json"
"""Output of a notebook's closing cell: without it a notebook did not reach its end, whatever its cells
say."""

_KEPT_CELL_METADATA = ("tags", "jupyter")
_KEPT_NOTEBOOK_METADATA = ("kernelspec", "language_info")
_KEPT_OUTPUT_TYPES = ("text/html", "text/plain", "text/markdown", "image/png", FOOTER_TYPE)
_PACKAGE = Path(fragmentlab.__file__).parent
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CELL_LINE = re.compile(r"Cell In\[(\d+)\], line (\d+)")
_PACKAGE_LINE = re.compile(r"fragmentlab/((?:[a-z_]+/)*[a-z_]+\.py):(\d+)")
_SYSTEM_ERROR = re.compile(r"\[Errno (\d{1,3})\]")
_EXCEPTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")


def sanitized(notebook: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the notebook that may be written; ``parameters`` is what may be printed of the injected ones."""
    metadata = {
        key: notebook["metadata"][key] for key in _KEPT_NOTEBOOK_METADATA if key in notebook["metadata"]
    }
    cells = [cell for cell in notebook["cells"] if not _is_error_marker(cell)]
    sources = ["".join(cell["source"]) for cell in cells if not _is_injected(cell)]

    def message(text: str) -> str:
        return only_own_words(for_terminal(text), " ".join(sources))[:MESSAGE_LIMIT]

    return {
        "cells": [_cell(cell, parameters, message) for cell in cells],
        "metadata": metadata,
        "nbformat": notebook["nbformat"],
        "nbformat_minor": notebook["nbformat_minor"],
    }


def without_outputs(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook as if never run: for one whose process left nothing."""
    cells = [
        {**cell, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else dict(cell)
        for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def reached_footer(notebook: Mapping[str, Any]) -> bool:
    """Whether the closing cell ran: it is the last code cell and its output holds the footer."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return bool(code) and any(FOOTER_TYPE in output.get("data", {}) for output in code[-1]["outputs"])


def failures(notebook: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The error outputs of a sanitized notebook, in order."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                yield output


def _is_error_marker(cell: Mapping[str, Any]) -> bool:
    return any(tag.startswith("papermill-error-cell") for tag in cell["metadata"].get("tags", []))


def _is_injected(cell: Mapping[str, Any]) -> bool:
    return "injected-parameters" in cell["metadata"].get("tags", [])


def _cell(
    cell: Mapping[str, Any], parameters: Mapping[str, str], message: Callable[[str], str]
) -> dict[str, Any]:
    kept = {key: value for key, value in cell.items() if key not in ("metadata", "outputs", "attachments")}
    kept["metadata"] = {key: cell["metadata"][key] for key in _KEPT_CELL_METADATA if key in cell["metadata"]}
    if _is_injected(cell):
        kept["source"] = "\n".join(
            ["# Parameters", *(f"# {name}: {value}" for name, value in parameters.items())]
        )
    if cell["cell_type"] == "code":
        kept["outputs"] = [
            kept_output for output in cell["outputs"] if (kept_output := _output(output, message))
        ]
    return kept


def _output(output: Mapping[str, Any], message: Callable[[str], str]) -> dict[str, Any] | None:
    match output["output_type"]:
        case "error":
            return _error(output, message)
        case "stream" if output["name"] == "stdout":
            return {"output_type": "stream", "name": "stdout", "text": output["text"]}
        case "display_data" | "execute_result":
            data = {kind: output["data"][kind] for kind in _KEPT_OUTPUT_TYPES if kind in output["data"]}
            count = {"execution_count": output["execution_count"]} if "execution_count" in output else {}
            return (
                {"output_type": output["output_type"], "data": data, "metadata": {}, **count}
                if data
                else None
            )
    return None


def _error(output: Mapping[str, Any], message: Callable[[str], str]) -> dict[str, Any]:
    name = output["ename"] if _EXCEPTION_NAME.fullmatch(output["ename"]) else "Exception"
    kind = getattr(builtins, name, None)
    said = ""
    if name in OWN_EXCEPTIONS:
        said = message(output["evalue"])
    elif (
        isinstance(kind, type) and issubclass(kind, OSError) and (e := _SYSTEM_ERROR.match(output["evalue"]))
    ):
        said = os.strerror(int(e[1]))
    where = list(dict.fromkeys(_places(output["traceback"])))
    summary = f"{name}: {said}" if said else f"{name} (its message may quote data and is not shown)"
    return {"output_type": "error", "ename": name, "evalue": said, "traceback": [summary, *where]}


def _places(traceback: list[str]) -> Iterator[str]:
    for frame in traceback:
        plain = _ANSI.sub("", frame)
        if match := _CELL_LINE.search(plain):
            yield f"  cell [{match[1]}], line {match[2]}"
        elif (match := _PACKAGE_LINE.search(plain)) and (_PACKAGE / match[1]).is_file():
            yield f"  fragmentlab/{match[1]}, line {match[2]}"
