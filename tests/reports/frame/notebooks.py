"""Small notebooks for the tests, written the way that this repository's are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LIBRARY = "from fragmentlab.reports import *\n"
CLOSE = 'conclude(shows=["it ran"], not_shown=["anything else"])'


def markdown(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "text", "metadata": {}, "source": source}


def code(source: str, *tags: str) -> dict[str, Any]:
    metadata = {"tags": list(tags)} if tags else {}
    return {
        "cell_type": "code",
        "id": f"code-{abs(hash(source)) % 10**8}",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def write_notebook(
    folder: Path, name: str, *cells: dict[str, Any], parameters: str = "n: int = 3  # how many"
) -> Path:
    """Write ``folder/name.ipynb``: title, parameters, their check, the given cells."""
    check = code(f'{LIBRARY}p = check_parameters("{name}", globals())')
    head = [markdown(f"# Title of {name}\n\nWhat does {name} ask?"), code(parameters, "parameters"), check]
    path = folder / f"{name}.ipynb"
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": [*head, *cells], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
