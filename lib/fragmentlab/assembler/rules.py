"""Identity rules as tables, and the invariants that decide whether a table may serve execution.

Source: docs/design.md, section 3.

A table maps (identity, what the fragment says) to one of three actions: ``keep`` leaves the identity as it
is, ``set`` takes what the fragment says, ``reject:CATEGORY`` refuses the response.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, get_args

from .categories import CATEGORIES

SCHEMA = "fragmentlab-rules-v1"
Identity = Literal["absent", "empty", "established"]
IDENTITIES: tuple[Identity, ...] = get_args(Identity)
IncomingKind = Literal["omitted", "null", "empty_string", "string", "number", "boolean", "array", "object"]
INCOMING_KINDS: tuple[IncomingKind, ...] = get_args(IncomingKind)
COLUMNS = (
    "omitted", "null", "empty_string", "same_string", "other_string", "number", "boolean", "array", "object",
)  # fmt: skip
"""The table's columns: an incoming ``string`` is split into the same and another one than is known."""
IMPOSSIBLE = frozenset({("absent", "same_string"), ("empty", "same_string")})
"""Cells that no fragment can reach: nothing nonempty is known that a string could equal."""
CELLS = tuple((i, c) for i in IDENTITIES for c in COLUMNS if (i, c) not in IMPOSSIBLE)
INVARIANTS = MappingProxyType(
    {
        "established_cleared": "an established identity is never cleared",
        "established_changed": "an established identity is never changed",
        "identity_invented": "no identity appears that was not on the wire",
        "null_keeps_nothing": "null keeps only what is established",
    }
)
"""Invariant name -> what it demands. That none comes from another index or response holds for every table:
a table only ever sees one index of one response (wrappers that break this live with the qualification
code)."""

DEFAULT_RULES = "keep-established"


class RulesError(ValueError):
    """A rule table that cannot be used; the message names the cell and never quotes an unknown value."""


@dataclass(frozen=True)
class RuleSet:
    """A checked rule table.

    ``violations`` holds (invariant, identity, column) of each cell that breaks an invariant.
    """

    name: str
    note: str = field(repr=False)
    cells: MappingProxyType[str, MappingProxyType[str, str]]
    violations: tuple[tuple[str, str, str], ...] = field(default=())

    @property
    def executable(self) -> bool:
        """Whether the table breaks no invariant, so that its accepted calls may go on to execution."""
        return not self.violations

    def action(self, identity: str, column: str) -> str:
        """Return ``keep``, ``set`` or ``reject:CATEGORY`` of one cell."""
        return self.cells[identity][column]


def identity_of(call_id: str | None) -> Identity:
    """Name the identity that an ID (None, empty or nonempty) stands for."""
    if call_id is None:
        return "absent"
    return "established" if call_id else "empty"


def check_invariants(rules: RuleSet) -> tuple[tuple[str, str, str], ...]:
    """Enumerate every cell and return (invariant, identity, column) for each that breaks an invariant."""
    return tuple(_violations(rules))


def _violations(rules: RuleSet) -> Iterator[tuple[str, str, str]]:
    for identity, column in CELLS:
        action = rules.action(identity, column)
        if action == "keep":
            if column == "null" and identity != "established":
                yield "null_keeps_nothing", identity, column
        elif action == "set":
            if column in ("number", "boolean", "array", "object"):
                yield "identity_invented", identity, column
            if identity == "established" and column in ("omitted", "null", "empty_string"):
                yield "established_cleared", identity, column
            elif identity == "established" and column != "same_string":
                yield "established_changed", identity, column
            elif column == "null":
                yield "null_keeps_nothing", identity, column


def rules_from_json(text: str | bytes) -> RuleSet:
    """Parse and check a rule table.

    Raises RulesError, which names the cell that is missing, impossible or unknown.
    """
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise RulesError("the rules are not one JSON document without repeated keys") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise RulesError(f'the rules need "schema": "{SCHEMA}"')
    if unknown := data.keys() - {"schema", "name", "note", "cells"}:
        raise RulesError(f"{len(unknown)} unknown field(s); known are schema, name, note and cells")
    name, note, cells = data.get("name"), data.get("note", ""), data.get("cells")
    if not (isinstance(name, str) and name and name.isascii() and name.replace("-", "").isalnum()):
        raise RulesError("name must be letters, digits and hyphens")
    if not isinstance(note, str):
        raise RulesError("note must be a string")
    if not isinstance(cells, dict):
        raise RulesError("cells must be an object of identities")
    _check_cells(cells)
    frozen = MappingProxyType({i: MappingProxyType(dict(cells[i])) for i in IDENTITIES})
    rules = RuleSet(name, note, frozen)
    return RuleSet(name, note, frozen, check_invariants(rules))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def _check_cells(cells: dict[str, Any]) -> None:
    if cells.keys() - set(IDENTITIES):
        raise RulesError(f"unknown identity; the identities are {', '.join(IDENTITIES)}")
    for identity in IDENTITIES:
        row = cells.get(identity)
        if not isinstance(row, dict):
            raise RulesError(f"the row {identity} is missing")
        if row.keys() - set(COLUMNS):
            raise RulesError(f"unknown column in row {identity}; the columns are {', '.join(COLUMNS)}")
        for column in COLUMNS:
            _check_cell(identity, column, row)


def _check_cell(identity: str, column: str, row: dict[str, Any]) -> None:
    where = f"cell {identity} / {column}"
    if (identity, column) in IMPOSSIBLE:
        if column in row:
            raise RulesError(f"{where} can never occur: nothing nonempty is known that a string could equal")
        return
    if column not in row:
        raise RulesError(f"{where} is missing")
    action = row[column]
    if action in ("keep", "set"):
        return
    if not isinstance(action, str) or not action.startswith("reject:"):
        raise RulesError(f"{where} has an unknown action; use keep, set or reject:CATEGORY")
    if action.removeprefix("reject:") not in CATEGORIES:
        raise RulesError(f"{where} rejects with an unknown category; see categories.json")


def _load_shipped() -> dict[str, RuleSet]:
    folder = files(__package__).joinpath("rules")
    tables = (rules_from_json(f.read_bytes()) for f in folder.iterdir() if f.name.endswith(".json"))
    return {rules.name: rules for rules in sorted(tables, key=lambda r: (r.name != DEFAULT_RULES, r.name))}


SHIPPED: MappingProxyType[str, RuleSet] = MappingProxyType(_load_shipped())
"""The shipped rule sets by name, the default first."""


def load_rules(rules: str | RuleSet) -> RuleSet:
    """Return a shipped rule set by name, or the given one; raise RulesError for an unknown name."""
    if isinstance(rules, RuleSet):
        return rules
    if rules not in SHIPPED:
        raise RulesError(f"unknown rule set; the shipped ones are {', '.join(SHIPPED)}")
    return SHIPPED[rules]
