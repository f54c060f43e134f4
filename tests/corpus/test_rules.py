"""Rule sets by name or file, and what a file may call itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler.rules import SHIPPED, RulesError, rules_from_json
from fragmentlab.corpus.rules import find_rules
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder


def write(folder: Path, name: str, cells: dict[str, dict[str, str]]) -> str:
    table = {"schema": "fragmentlab-rules-v1", "name": name, "note": "", "cells": cells}
    (folder / "rules.json").write_text(json.dumps(table))
    return str(folder / "rules.json")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_changed_table_does_not_bear_a_shipped_name(tmp_path: Path, name: str) -> None:
    """What an altered copy decides is never read as the shipped rule set's; a true copy keeps the name."""
    cells = {identity: dict(row) for identity, row in SHIPPED[name].cells.items()}
    assert find_rules(write(tmp_path, name, cells)).name == name
    cells["absent"]["omitted"] = "reject:identity.missing"
    altered = find_rules(write(tmp_path, name, cells))
    assert altered.name == f"{name}-altered"
    assert altered.cells == cells
    assert find_rules(write(tmp_path, "mine", cells)).name == "mine"


def _without(*path: str) -> dict[str, Any]:
    table = json.loads((data_folder("rules") / "empty-clears.json").read_bytes())
    inner = table
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return table


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (_without("schema"), 'needs "schema"'),
        (_without("name"), "missing required field name"),
        (_without("cells", "absent"), "cells: "),
        (_without("cells", "established", "same_string"), "cells.established: "),
        ({**_without("note"), "canary": 1}, "unknown field"),
        ({**_without("note"), "note": ["canary"]}, "note: expected str"),
        ({**_without("note"), "name": "canary name!"}, "name must be"),
    ],
)
def test_unusable_rules_are_one_line_with_the_place(
    tmp_path: Path, table: dict[str, Any], place: str
) -> None:
    """The path of the fault is named, nothing is quoted, and the assembler's own loader refuses it too."""
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(table))
    with pytest.raises(InputError, match=f"rules file .*{re.escape(place)}") as raised:
        find_rules(str(path))
    assert "canary" not in str(raised.value)
    with pytest.raises(RulesError):
        rules_from_json(path.read_bytes())
