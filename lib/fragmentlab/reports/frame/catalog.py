"""Where the notebooks are and what they say of themselves: title, question, cells."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragmentlab.errors import InputError
from fragmentlab.files import kit_folder, read_bytes

FOLDER_VARIABLE = "FRAGMENTLAB_NOTEBOOKS"
"""Tells a kernel which folder the running notebook came from, where that is not the repository's."""
MAX_NOTEBOOK_BYTES = 256 << 20
_NAME = re.compile(r"\d\d-[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class Notebook:
    """One notebook file, with the title and the question of its first cell."""

    path: Path
    title: str
    question: str

    @property
    def name(self) -> str:
        return self.path.stem


def notebooks_folder(option: str | None) -> Path:
    """The folder that was asked for, or the kit's own. Raises InputError where there is none."""
    folder = Path(option) if option else kit_folder() / "notebooks"
    if folder.is_dir():
        return folder
    if option:
        raise InputError(f"no folder of notebooks at {option}")
    raise InputError("no notebooks beside this installation: give their folder with --notebooks DIR")


def list_notebooks(folder: Path) -> list[Notebook]:
    """The folder's notebooks named like ``01-what-it-asks.ipynb``, in order. Raises InputError for none."""
    paths = sorted(path for path in folder.glob("*.ipynb") if _NAME.fullmatch(path.stem))
    if not paths:
        raise InputError("no notebook named like 01-what-it-asks.ipynb in the notebooks folder")
    return [_described(path) for path in paths]


def select_notebooks(notebooks: list[Notebook], only: Sequence[str]) -> list[Notebook]:
    """Keep those whose number or name is in ``only`` (all, when it is empty)."""
    chosen = [n for n in notebooks if not only or n.name in only or n.name.split("-")[0] in only]
    matched = {key for n in chosen for key in (n.name, n.name.split("-")[0])}
    if not set(only) <= matched:
        raise InputError(f"--only takes a number or a name of: {', '.join(n.name for n in notebooks)}")
    return chosen


def find_notebook(name: str) -> Path:
    """The file of the notebook that a kernel is running, by its name without ``.ipynb``."""
    given = os.environ.get(FOLDER_VARIABLE)
    for folder in (given, kit_folder() / "notebooks", Path.cwd()):
        path = Path(folder or "") / f"{name}.ipynb"
        if path.is_file():
            return path
    raise InputError(f"the notebook file is not found; set {FOLDER_VARIABLE} to its folder")


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook's JSON. Raises InputError where the file is none."""
    try:
        notebook: dict[str, Any] = json.loads(read_bytes(path, MAX_NOTEBOOK_BYTES))
        for cell in notebook["cells"]:
            if not isinstance(cell["cell_type"], str) or not isinstance(cell["metadata"], dict):
                raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path.name} is not a readable notebook") from None
    return notebook


def code_cells(notebook: dict[str, Any], tag: str) -> Iterator[str]:
    """Sources of the code cells that carry a tag."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and tag in cell["metadata"].get("tags", []):
            yield "".join(cell["source"])


def _described(path: Path) -> Notebook:
    first = next((cell for cell in read_notebook(path)["cells"] if cell["cell_type"] == "markdown"), None)
    lines = "".join(first["source"]).split("\n\n") if first else []
    heading = lines[0].removeprefix("# ").strip() if lines and lines[0].startswith("# ") else path.stem
    question = " ".join(lines[1].replace("*", "").split()) if len(lines) > 1 else ""
    return Notebook(path, heading, question)
