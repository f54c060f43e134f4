"""Rule sets by name or file, and what a file may call itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fragmentlab.assembler import SHIPPED
from fragmentlab.corpus.rules import find_rules


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
