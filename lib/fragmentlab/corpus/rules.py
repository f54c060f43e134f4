"""Rule sets by name or file: the shipped ones, and candidates under ``data/rules`` or anywhere else."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.rules import SCHEMA, SHIPPED, RulesError, rules_from_json
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder, find_path, read_bytes
from fragmentlab.formats import StrictStruct, canonical, decode

_MAX_BYTES = 1 << 16
_ACTION = {"pattern": "^(keep|set|reject:[A-Za-z0-9_.]+)$"}

Action = Annotated[str, Meta(description="keep, set or reject:CATEGORY.", extra_json_schema=_ACTION)]


class UnestablishedRow(StrictStruct, frozen=True):
    """What is done where nothing nonempty is known of a call's ID, by what a fragment says."""

    omitted: Action
    null: Action
    empty_string: Action
    other_string: Action
    number: Action
    boolean: Action
    array: Action
    object: Action


class EstablishedRow(UnestablishedRow, frozen=True, kw_only=True):
    """What is done where a nonempty ID is known, by what a fragment says."""

    same_string: Action


class Cells(StrictStruct, frozen=True):
    """The table: one row per identity."""

    absent: UnestablishedRow
    empty: UnestablishedRow
    established: EstablishedRow


class RulesDocument(StrictStruct, frozen=True, tag_field="schema", tag=SCHEMA):
    """A rule set. The assembler's own loader reads the same, so that it works alone."""

    name: Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9-]+$"})]
    cells: Cells
    note: str = ""


def find_rules(name_or_file: str) -> RuleSet:
    """Return a shipped rule set by name, or the one in a file; raise InputError saying what is wrong with it.

    A file that bears a shipped rule set's name without being it is named ``...-altered``, so that nothing
    that it decides is read as the shipped one's.
    """
    if name_or_file in SHIPPED:
        return SHIPPED[name_or_file]
    path = find_path(name_or_file, "rules")
    if path.suffix != ".json" and len(path.parts) == 1 and not path.exists():
        raise InputError(f"unknown rule set {name_or_file}; use {', '.join(SHIPPED)} or a rules file")
    data = read_bytes(path, _MAX_BYTES, "no rule table is that large")
    decode(data, RulesDocument, f"rules file {name_or_file}")
    try:
        rules = rules_from_json(data)
    except RulesError as error:
        raise InputError(f"rules file {name_or_file}: {error}") from None
    if rules.name in SHIPPED and rules.cells != SHIPPED[rules.name].cells:
        return replace(rules, name=f"{rules.name}-altered")
    return rules


def table_sha256(rules: RuleSet) -> str:
    """The hash of a rule set's table, by which two tables of one name are told apart."""
    cells = {identity: dict(row) for identity, row in rules.cells.items()}
    return hashlib.sha256(canonical(cells).encode()).hexdigest()


def recorded_name(rules: RuleSet) -> str:
    """The name under which a rule set is recorded: that of a table of the kit, or ``candidate-`` and a hash.

    Someone's own name may say too much.
    """
    ours = SHIPPED.get(rules.name)
    if ours is None and rules.name in {path.stem for path in data_folder("rules").glob("*.json")}:
        ours = find_rules(str(data_folder("rules") / f"{rules.name}.json"))
    same = ours is not None and ours.cells == rules.cells
    return rules.name if same else f"candidate-{table_sha256(rules)[:12]}"
