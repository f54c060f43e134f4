"""``expectations.json``: flips that a reviewer declared, so that only what nobody expected fails.

    {"schema": "fragmentlab-expectations-v1",
     "declarations": [{"stream" | "category" | "batch": ..., "from": ..., "to": ...,
                       "reason": ..., "reviewer": ...}]}

``from`` and ``to`` are states (``rejected`` alone means any category). A removed or changed stream is
declared from ``recorded`` to ``removed`` or ``changed``, by stream or by batch. A declaration by category
never excuses a vector whose expected rejection was accepted: that takes one that names the stream.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from msgspec import Meta

from fragmentlab.files import read_bytes
from fragmentlab.formats import StrictStruct, decode
from fragmentlab.qualification.comparing.comparison import ABSENT, category_of

DEFAULT_FILE = "expectations.json"
_STATE = re.compile(r"accepted(:other_calls)?|no_calls|(rejected|failed)(:[A-Za-z0-9_.+/-]{1,120})?")
_MAX_BYTES = 16 << 20

State = Annotated[
    str,
    Meta(
        description="accepted, accepted:other_calls, no_calls, rejected, rejected:CATEGORY, failed or "
        "failed:subject.REASON; before, also added or recorded; after, also removed or changed."
    ),
]
Selector = Annotated[str, Meta(description="Exactly one of stream, category and batch says what moves.")]
Filled = Annotated[str, Meta(extra_json_schema={"pattern": r"\S"})]


class Declaration(StrictStruct, frozen=True, rename={"before": "from", "after": "to"}, kw_only=True):
    """One declared move of one stream, of all streams with a category, or the absence of a batch."""

    stream: Selector | None = None
    category: Selector | None = None
    batch: Selector | None = None
    before: State
    after: State
    reason: Filled
    reviewer: Filled

    def __post_init__(self) -> None:
        if (self.stream, self.category, self.batch).count(None) != 2:
            raise ValueError("a declaration needs exactly one of stream, category and batch")
        if not (self.reason.strip() and self.reviewer.strip()):
            raise ValueError("reason and reviewer must be filled in")
        if self.before == "recorded" and self.after in ABSENT and self.category is None:
            return
        known = (_STATE.fullmatch(self.before) or self.before == "added") and _STATE.fullmatch(self.after)
        if self.batch is not None or not known:
            raise ValueError(
                "from and to must be states such as accepted or rejected:CATEGORY, "
                "or, for a stream or batch, recorded and removed or changed"
            )

    def covers(self, move: Any) -> bool:
        """Whether it declares this move, a row of ``Comparison.moves``."""
        if not (_fits(self.before, move.base) and _fits(self.after, move.target)):
            return False
        if self.category is not None:
            moved = (category_of(move.base), category_of(move.target))
            return self.category in moved and not move.against_vector
        return move.batch == self.batch or move.stream == self.stream

    @property
    def text(self) -> str:
        """What it declares, in one line."""
        selectors = {"stream": self.stream, "category": self.category, "batch": self.batch}
        what = next(f"{name} {value}" for name, value in selectors.items() if value is not None)
        return f"{what}: {self.before} to {self.after}"


class Expectations(StrictStruct, frozen=True, tag_field="schema", tag="fragmentlab-expectations-v1"):
    """Flips between runs that a reviewer declared; a comparison fails for every other one."""

    declarations: tuple[Declaration, ...]


@dataclass(frozen=True)
class Declared:
    """The declarations of a file, and its hash: what decided a verdict can be told from another file."""

    declarations: tuple[Declaration, ...] = ()
    sha256: str | None = None


def load_expectations(path: Path) -> Declared:
    """Read the declarations; raise InputError with the place of one that cannot be used."""
    data = read_bytes(path, _MAX_BYTES)
    return Declared(decode(data, Expectations, str(path)).declarations, hashlib.sha256(data).hexdigest())


def proposal(moves: pd.DataFrame) -> str:
    """Return an expectations file for these moves, reason and reviewer left to be filled in."""
    declarations = [
        {"stream": move.stream, "from": move.base, "to": move.target, "reason": "", "reviewer": ""}
        for move in moves.itertuples()
    ]
    document = {"schema": Expectations.__struct_config__.tag, "declarations": declarations}
    return json.dumps(document, indent=1) + "\n"


def _fits(declared: str, state: str) -> bool:
    return declared == state or (declared in ("rejected", "failed") and state.startswith(f"{declared}:"))
