"""``expectations.json``: flips that a reviewer declared, so that only what nobody expected fails.

    {"schema": "fragmentlab-expectations-v1",
     "declarations": [{"stream" | "category" | "batch": ..., "from": ..., "to": ...,
                       "reason": ..., "reviewer": ...}]}

``from`` and ``to`` are states (``rejected`` alone means any category). A removed or changed stream is
declared from
``recorded`` to ``removed`` or ``changed``, by stream or by batch. A declaration by category never excuses a
vector whose expected rejection was accepted: that takes one that names the stream.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragmentlab.corpus.streams import reason
from fragmentlab.display import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.qualification.comparing.comparison import Comparison, Flip, Key

SCHEMA = "fragmentlab-expectations-v1"
DEFAULT_FILE = "expectations.json"
_SELECTORS = ("stream", "category", "batch")
_FIELDS = frozenset({*_SELECTORS, "from", "to", "reason", "reviewer"})
_STATE = re.compile(
    r"accepted(:other_calls)?|no_calls|(rejected|failed)(:[A-Za-z0-9_.+/-]{1,120})?", re.ASCII
)
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class Declaration:
    """One declared move of one stream, of all streams with a category, or the absence of a batch."""

    selector: str
    value: str
    before: str
    after: str
    reason: str
    reviewer: str

    def covers(self, flip: Flip) -> bool:
        """Whether it declares this flip."""
        if not (_fits(self.before, flip.base or "added") and _fits(self.after, flip.target)):
            return False
        if self.selector == "stream":
            return flip.stream == self.value
        return self.selector == "category" and self.value in flip.categories and not flip.against_vector

    def covers_absence(self, key: Key, after: str) -> bool:
        """Whether it declares a stream ``removed`` or ``changed``."""
        return self.after == after and self.value == {"batch": key[0], "stream": key[1]}.get(self.selector)

    @property
    def text(self) -> str:
        """What it declares, in one line."""
        return f"{self.selector} {self.value}: {self.before} to {self.after}"


def load_expectations(path: Path) -> list[Declaration]:
    """Read the declarations; raise InputError naming the one that cannot be used, without quoting it."""
    shown = for_terminal(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {reason(error)}") from None
    try:
        content = json.loads(data, object_pairs_hook=_once) if len(data) <= _MAX_BYTES else None
    except (ValueError, RecursionError):
        content = None
    if (
        not isinstance(content, dict)
        or content.get("schema") != SCHEMA
        or content.keys() - {"schema", "declarations"}
    ):
        raise InputError(f'{shown} needs "schema": "{SCHEMA}" and "declarations", each key once')
    declarations = content.get("declarations")
    if not isinstance(declarations, list):
        raise InputError(f"{shown}: declarations must be an array")
    return [
        _declaration(item, f"{shown}, declaration {number}") for number, item in enumerate(declarations, 1)
    ]


def proposal(comparison: Comparison, flips: list[Flip]) -> str:
    """The text of an expectations file for these flips and absences; reason and reviewer are left to be
    filled in."""
    moves = [{"stream": f.stream, "from": f.base or "added", "to": f.target} for f in flips]
    for word, keys in (("removed", comparison.removed), ("changed", comparison.changed)):
        moves += [{"stream": key[1], "from": "recorded", "to": word} for key in keys]
    declarations = [{**move, "reason": "", "reviewer": ""} for move in moves]
    return json.dumps({"schema": SCHEMA, "declarations": declarations}, indent=1) + "\n"


def _declaration(item: Any, where: str) -> Declaration:
    if not isinstance(item, dict) or not all(isinstance(value, str) for value in item.values()):
        raise InputError(f"{where} must be an object of strings")
    if item.keys() - _FIELDS:
        raise InputError(f"{where} has an unknown field; known are {', '.join(sorted(_FIELDS))}")
    selectors = [name for name in _SELECTORS if name in item]
    if len(selectors) != 1:
        raise InputError(f"{where} needs exactly one of {', '.join(_SELECTORS)}")
    if missing := [name for name in ("from", "to", "reason", "reviewer") if not item.get(name, "").strip()]:
        raise InputError(f"{where}: {', '.join(missing)} must be filled in")
    _check_move(selectors[0], item["from"], item["to"], where)
    return Declaration(
        selectors[0], item[selectors[0]], item["from"], item["to"], item["reason"], item["reviewer"]
    )


def _check_move(selector: str, before: str, after: str, where: str) -> None:
    absence = before == "recorded" and after in ("removed", "changed")
    if absence and selector != "category":
        return
    if selector == "batch" or not (
        (_STATE.fullmatch(before) or before == "added") and _STATE.fullmatch(after)
    ):
        raise InputError(
            f"{where}: from and to must be states such as accepted or rejected:CATEGORY, "
            "or, for a stream or batch, recorded and removed or changed"
        )


def _fits(declared: str, state: str) -> bool:
    return declared == state or (declared in ("rejected", "failed") and state.startswith(f"{declared}:"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)
