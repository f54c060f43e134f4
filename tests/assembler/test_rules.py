"""Rule tables: every cell of the shipped ones, the invariants, and bad files one by one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from fragmentlab.assembler import CATEGORIES, assemble
from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.assembler.rules import (
    CELLS,
    COLUMNS,
    DEFAULT_RULES,
    IDENTITIES,
    IMPOSSIBLE,
    INVARIANTS,
    SHIPPED,
    RulesError,
    check_invariants,
    load_rules,
    rules_from_json,
)
from tests.assembler.oracle import DESIGN_TABLE
from tests.assembler.wire import OMITTED, fragment, response

SETUP: dict[str, list[Any]] = {"absent": [OMITTED], "empty": [""], "established": ["A"]}
SAYS: dict[str, Any] = {
    "omitted": OMITTED,
    "null": None,
    "empty_string": "",
    "same_string": "A",
    "other_string": "B",
    "number": 7,
    "boolean": True,
    "array": ["A"],
    "object": {"id": "A"},
}


def as_json(name: str = DEFAULT_RULES) -> dict[str, Any]:
    """A shipped rule set as the JSON that a person would edit."""
    cells = {i: dict(SHIPPED[name].cells[i]) for i in IDENTITIES}
    return {"schema": "fragmentlab-rules-v1", "name": name, "note": "", "cells": cells}


def test_shipped_names() -> None:
    """The three shipped rule sets are there, the default first, all of them executable."""
    assert list(SHIPPED) == ["keep-established", "empty-continuation", "reject-null"]
    assert DEFAULT_RULES == "keep-established"
    assert all(rules.executable for rules in SHIPPED.values())


def test_twenty_five_cells() -> None:
    """Three identities by nine columns, without the two that nothing can reach."""
    assert len(CELLS) == len(IDENTITIES) * len(COLUMNS) - len(IMPOSSIBLE) == 25


def expected_action(rules: str, identity: str, column: str) -> str:
    """The table of docs/design.md, and how the other two shipped rule sets differ from it."""
    action = DESIGN_TABLE[identity, column]
    if rules == "reject-null":
        if (identity, column) == ("established", "null"):
            return f"reject:{COMPOUND}"
        return f"reject:{COMPOUND}" if action.startswith("reject:identity.") else action
    if rules == "empty-continuation" and (identity, column) == ("established", "empty_string"):
        return "keep"
    return action


@pytest.mark.parametrize("rules", SHIPPED)
@pytest.mark.parametrize(("identity", "column"), CELLS)
def test_cell(rules: str, identity: str, column: str) -> None:
    """The table says what docs/design.md says, and the assembler does that, with its bounded diagnostic."""
    action = SHIPPED[rules].action(identity, column)
    expected = expected_action(rules, identity, column)
    assert action == expected
    fragments = [fragment(0, says) for says in SETUP[identity]] + [fragment(0, SAYS[column], "f", "{}")]
    result = assemble(response(*fragments, fragment(0, OMITTED)), rules=rules, diagnose=True)
    row = result.timeline[1]
    assert (row.previous_identity, row.decision) == (identity, action.split(":")[0])
    if action.startswith("reject:"):
        fault = result.faults[0]
        kind = "string" if column in ("same_string", "other_string") else column
        assert result.category == fault.category == row.category == action.removeprefix("reject:")
        assert (fault.stage, fault.event, fault.fragment, fault.call) == ("fragment", 2, 2, 1)
        assert (fault.incoming_kind, fault.incoming_empty) == (kind, column == "empty_string")
        assert (fault.previous_identity, fault.next_identity, fault.had_id) == (
            identity,
            identity,
            identity == "established",
        )
    else:
        after = identity if action == "keep" else {"empty_string": "empty"}.get(column, "established")
        assert row.next_identity == after
        assert result.category == (None if after == "established" else "proposal.id_missing")


@pytest.mark.parametrize(("identity", "column"), CELLS)
@pytest.mark.parametrize("action", ["keep", "set"])
def test_invariant_of_each_cell(identity: str, column: str, action: str) -> None:
    """Each cell set to keep or set breaks exactly the invariants that follow from its meaning."""
    data = as_json()
    data["cells"][identity][column] = action
    rules = rules_from_json(json.dumps(data))
    broken = {name for name, i, c in rules.violations if (i, c) == (identity, column)}
    expected: set[str] = set()
    if column == "null" and identity != "established":
        expected = {"null_keeps_nothing"}
    elif action == "set" and column in ("number", "boolean", "array", "object"):
        expected = {"identity_invented"} | ({"established_changed"} if identity == "established" else set())
    elif action == "set" and identity == "established":
        cleared = column in ("omitted", "null", "empty_string")
        expected = (
            {"established_cleared"}
            if cleared
            else {"established_changed"}
            if column != "same_string"
            else set()
        )
    elif action == "set" and identity == "empty" and column == "omitted":
        expected = set()
    assert broken == expected
    assert broken <= INVARIANTS.keys()
    assert rules.executable == (not expected)
    assert check_invariants(rules) == rules.violations


def test_violations_are_reported_by_every_result() -> None:
    """A result says that its rule set must not serve execution."""
    data = as_json()
    data["cells"]["established"]["other_string"] = "set"
    body = response(fragment(0, "A", "f", "{}"), fragment(0, "B"))
    result = assemble(body, rules=rules_from_json(json.dumps(data)))
    assert (result.outcome, result.executable) == ("accepted", False)


def edited(**changes: Any) -> str:
    return json.dumps(as_json() | changes)


def without_cell(identity: str, column: str) -> str:
    data = as_json()
    del data["cells"][identity][column]
    return json.dumps(data)


def with_cell(identity: str, column: str, action: Any) -> str:
    data = as_json()
    data["cells"].setdefault(identity, {})[column] = action
    return json.dumps(data)


def without_row() -> str:
    data = as_json()
    del data["cells"]["empty"]
    return json.dumps(data)


ACTION = "cell absent / null has an unknown action"
BAD = {
    "not JSON": ("{", "not one JSON document"),
    "not UTF-8": (b"\xff", "not one JSON document"),
    "too deep": ("[" * 100_000, "not one JSON document"),
    "key twice": ('{"schema": "fragmentlab-rules-v1", "schema": "fragmentlab-rules-v1"}', "repeated keys"),
    "array": ("[]", '"schema": "fragmentlab-rules-v1"'),
    "other schema": (edited(schema="fragmentlab-rules-v2"), '"schema": "fragmentlab-rules-v1"'),
    "unknown field": (edited(cell={}), "unknown field"),
    "no name": (edited(name=""), "name must be"),
    "name with a path": (edited(name="../x"), "name must be"),
    "note of another type": (edited(note=3), "note must be a string"),
    "cells of another type": (edited(cells=[]), "cells must be an object"),
    "row missing": (without_row(), "the row empty is missing"),
    "row of another type": (edited(cells=as_json()["cells"] | {"empty": "keep"}), "the row empty is missing"),
    "unknown identity": (with_cell("known", "null", "keep"), "unknown identity"),
    "unknown column": (with_cell("absent", "string", "keep"), "unknown column in row absent"),
    "unknown action": (with_cell("absent", "null", "drop"), ACTION),
    "action in another case": (with_cell("absent", "null", "Keep"), ACTION),
    "action of another type": (with_cell("absent", "null", ["keep"]), ACTION),
    "reject without a category": (with_cell("absent", "null", "reject"), ACTION),
    "unknown category": (
        with_cell("empty", "array", "reject:x"),
        "cell empty / array rejects with an unknown",
    ),
    "impossible cell": (with_cell("absent", "same_string", "keep"), "absent / same_string can never occur"),
    "other impossible cell": (
        with_cell("empty", "same_string", "set"),
        "empty / same_string can never occur",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_bad_file(text: str | bytes, message: str) -> None:
    """A bad rule file is refused with the place named and nothing of an unknown value quoted."""
    with pytest.raises(RulesError) as caught:
        rules_from_json(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("identity", "column"), CELLS)
def test_missing_cell_is_named(identity: str, column: str) -> None:
    """Every cell must be there, and the message names the one that is not."""
    with pytest.raises(RulesError, match=f"cell {identity} / {column} is missing"):
        rules_from_json(without_cell(identity, column))


def test_unknown_name_is_not_quoted() -> None:
    """An unknown rule set is answered with the shipped names, not with what was asked."""
    with pytest.raises(RulesError) as caught:
        load_rules("sk-canary")
    assert "canary" not in str(caught.value)
    assert all(name in str(caught.value) for name in SHIPPED)


def test_rules_are_unchangeable() -> None:
    """A checked table cannot be edited afterwards, nor through the data it came from."""
    data = as_json()
    rules = rules_from_json(json.dumps(data))
    before = copy.deepcopy({i: dict(row) for i, row in rules.cells.items()})
    data["cells"]["absent"]["null"] = "keep"
    with pytest.raises(TypeError):
        rules.cells["absent"]["null"] = "keep"  # type: ignore[index]
    assert {i: dict(row) for i, row in rules.cells.items()} == before


@pytest.mark.parametrize("category", CATEGORIES)
def test_any_category_can_be_the_refusal(category: str) -> None:
    """A table may refuse with any known category, and that is what the result says."""
    rules = rules_from_json(with_cell("established", "other_string", f"reject:{category}"))
    result = assemble(response(fragment(0, "A", "f", "{}"), fragment(0, "B")), rules=rules)
    assert result.category == category
