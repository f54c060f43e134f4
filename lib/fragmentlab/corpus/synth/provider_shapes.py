"""Provider shapes: what each provider and server was seen to do, as facts with their source."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder

ID_STYLES = ("omitted", "null", "empty_string", "repeated")
"""How a later fragment of a call can carry its ID."""


@dataclass(frozen=True)
class Shape:
    """One entry of a shapes file; the fields are explained in data/schemas/shapes.schema.json."""

    name: str
    provider: str | None
    server: str | None
    streams_seen: int | None
    sources: tuple[str, ...]
    note: str
    continuation_id: str
    continuation_name: str
    type: str
    role: str
    content: str
    first_chunk: str
    arguments: str
    first_arguments: str
    index_base: int | None
    parallel: str
    finish: str
    finish_reason: str
    finish_key: str
    usage: str
    comments: bool
    done: bool
    chunk_id: str
    object: bool
    padding: tuple[str, ...]

    @property
    def has_continuations(self) -> bool:
        """Whether a call takes more than one fragment, so that a control and a target can differ."""
        return self.continuation_id != "none"


def load_shapes(path: str | Path | None = None) -> tuple[Shape, ...]:
    """Read a shapes file, by default data/shapes.json; raise InputError where it is not in the format."""
    path = data_folder() / "shapes.json" if path is None else Path(path)
    shown = for_terminal(str(path))
    try:
        document = json.loads(path.read_bytes())
    except OSError:
        raise InputError(f"{shown} cannot be read; name a shapes file") from None
    except (ValueError, RecursionError):
        raise InputError(f"{shown} is not JSON; see data/schemas/shapes.schema.json") from None
    _check(document, shown)
    return tuple(
        Shape(**entry | {"sources": tuple(entry["sources"]), "padding": tuple(entry["padding"])})
        for entry in document["shapes"]
    )


def _check(document: Any, shown: str) -> None:
    from jsonschema import Draft202012Validator

    schema = json.loads((data_folder() / "schemas" / "shapes.schema.json").read_bytes())
    error = next(iter(Draft202012Validator(schema).iter_errors(document)), None)
    if error is not None:
        where = "/".join(str(step) for step in error.absolute_path if isinstance(step, int)) or "the top"
        raise InputError(
            f"{shown}: entry {where} does not follow data/schemas/shapes.schema.json ({error.validator})"
        )
    names = [entry["name"] for entry in document["shapes"]]
    if len(set(names)) != len(names):
        raise InputError(f"{shown}: two shapes have one name")
