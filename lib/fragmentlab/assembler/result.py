"""What comes out of one response: bounded diagnostics, and the calls of an accepted one."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .rules import Identity, IncomingKind

Outcome = Literal["accepted", "rejected", "no_calls"]
Stage = Literal["event", "choice", "fragment", "completion", "proposal"]


@dataclass(frozen=True)
class Fault:
    """One bounded diagnostic (docs/design.md, section 5): no raw argument, ID, name or content is ever in it.

    Ordinals count from 1: ``event`` over events with data, ``fragment`` over the response's fragments,
    ``call`` over its indices in the order of their first fragment. None means that the fact does not apply.
    """

    category: str
    stage: Stage
    event: int | None = None
    fragment: int | None = None
    call: int | None = None
    incoming_kind: IncomingKind | None = None
    incoming_empty: bool | None = None
    had_id: bool | None = None
    previous_identity: Identity | None = None
    next_identity: Identity | None = None
    flags: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the facts that apply, flags beside them."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "flags"}
        return {name: value for name, value in named.items() if value is not None} | self.flags


@dataclass(frozen=True)
class Call:
    """One assembled call of an accepted response; ``repr`` shows lengths only."""

    index: int
    id: str
    name: str
    arguments: str
    alias: str

    def to_json(self, reveal: bool = False) -> dict[str, Any]:
        """Return the raw call if a person asked for it, otherwise its alias and lengths (in characters)."""
        if reveal:
            return {"index": self.index, "id": self.id, "name": self.name, "arguments": self.arguments}
        return {
            "index": self.index,
            "id": self.alias,
            "name_length": len(self.name),
            "arguments_length": len(self.arguments),
        }

    def __repr__(self) -> str:
        return f"Call(index={self.index}, id={self.alias}, {len(self.name)}, {len(self.arguments)})"


@dataclass(frozen=True)
class FragmentRow:
    """One row of the timeline: a fragment and what it did.

    ``decision`` is keep, set or reject; ``id_alias`` names the ID known afterwards and ``incoming_alias`` the
    one the fragment says (A, B, ... in the order of appearance within the response); sizes are UTF-8 bytes
    that the fragment added.
    """

    event: int
    fragment: int
    index: int | None
    incoming_kind: IncomingKind | None
    previous_identity: Identity | None
    next_identity: Identity | None
    decision: str
    category: str | None
    name_bytes: int
    arguments_bytes: int
    id_alias: str | None
    incoming_alias: str | None


@dataclass(frozen=True)
class Result:
    """The outcome of one response, with its faults or calls.

    ``outcome`` is ``accepted``, ``rejected`` with the first fault's category, or ``no_calls``; ``executable``
    is true only where it was accepted under a rule set that breaks no invariant.
    """

    outcome: Outcome
    category: str | None
    rules: str
    executable: bool
    faults: tuple[Fault, ...]
    calls: tuple[Call, ...]
    counts: dict[str, Any]
    tolerances: dict[str, int]
    timeline: tuple[FragmentRow, ...] = ()

    def to_json(self, reveal: bool = False) -> dict[str, Any]:
        """Return what ``fragmentlab assemble --json`` prints."""
        return {
            "outcome": self.outcome,
            "category": self.category,
            "rules": self.rules,
            "executable": self.executable,
            "faults": [fault.to_json() for fault in self.faults],
            "calls": [call.to_json(reveal) for call in self.calls],
            "counts": self.counts,
            "tolerances": self.tolerances,
        }


def alias(number: int) -> str:
    """Return the alias of the number-th ID from 0: A..Z, AA, AB, ..."""
    name = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(65 + letter) + name
    return name
