"""The growth benchmark runs, and its inputs are of the kinds that it names."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

GROWTH = Path(__file__).resolve().parents[1] / "benchmarks" / "growth.py"
CAME_TO = {
    "fragments": "accepted",
    "levels of nesting": "limit.depth",
    "schema: uniqueItems": "accepted",
    "schema: pattern": "proposal.arguments_schema",
    "bodies of one request": "streams: 20",
    "members of ZIP": "streams: 12",
    "nodes of YAML": "streams: 12",
    "rows of CSV": "streams: 1",
}
"""Rows at a hundredth of the usual sizes: what is refused too early would be timed for nothing."""


def test_growth_prints_a_row_per_knob(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row has three times, a ratio, a size and what its largest input came to."""
    monkeypatch.setattr(sys, "argv", [str(GROWTH), "--scale", "1", "--rounds", "1"])
    knobs = runpy.run_path(str(GROWTH), run_name="__main__")["KNOBS"]
    _, _, *rows = capsys.readouterr().out.splitlines()
    names = [(prepare.__name__, name) for prepare, of in knobs.items() for name in of]
    told = [re.fullmatch(r"(\w+) +(.+?) +[\d,]+((?: +[\d.,]+){6})  (\S.*)", line) for line in rows]
    assert [(match[1], match[2]) for match in told if match] == names
    came_to = {match[2]: match[4] for match in reversed(told) if match}
    assert {name: came_to[name] for name in CAME_TO} == CAME_TO
