"""Assessing a candidate: cells, departures, movements and the three questions come from rows and search."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler import RuleSet, assemble
from fragmentlab.assembler.rules import CELLS, DEFAULT_RULES, IDENTITIES, SHIPPED, rules_from_json
from fragmentlab.corpus.batches import write_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.qualification.candidates.assessment import Assessment, assess, differing_cells
from fragmentlab.qualification.candidates.bench import BenchRow, bench, cells_met
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS
from fragmentlab.qualification.candidates.modelcheck import Check, check_model, checkable_table
from fragmentlab.qualification.runs.sources import open_sources
from tests.assembler.wire import call, fragment, response

BODIES = {
    "plain": response(call(0, "A"), fragment(0)),
    "null": response(call(0, "A"), fragment(0, None), fragment(0, None)),
    "empty": response(call(0, "A"), fragment(0, "")),
    "empty and text": response(call(0, "A", arguments=""), fragment(0, "", arguments="{")),
    "conflict": response(call(0, "A"), fragment(0, ""), fragment(0, "B")),
    "changed": response(call(0, "A"), fragment(0, "B")),
    "null first": response(fragment(0, None), call(0, "A")),
    "same": response(call(0, "A"), fragment(0, "A")),
}


def changed(name: str, *cells: tuple[str, str, str]) -> RuleSet:
    table = {i: dict(SHIPPED[DEFAULT_RULES].cells[i]) for i in IDENTITIES}
    for identity, column, action in cells:
        table[identity][column] = action
    return rules_from_json(json.dumps({"schema": "fragmentlab-rules-v1", "name": name, "cells": table}))


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    streams = [
        Stream(stream_id(body), body, provider="openai", end="clean", evidence="captured")
        for body in BODIES.values()
    ]
    return write_batch(
        tmp_path_factory.mktemp("batches") / "small",
        streams,
        name="small",
        evidence="captured",
        provenance="test",
        licence="MIT",
        scrubbed=True,
    )


def rows_of(batch: Path, *tables: RuleSet, wrong: Any = ()) -> dict[str, BenchRow]:
    rows = bench(open_sources([batch]), tables, wrong)
    return dict(zip(BODIES, rows, strict=True))


def assessed(batch: Path, candidate: RuleSet) -> Assessment:
    return assess(candidate, list(rows_of(batch, candidate).values()), searched(candidate))


def searched(candidate: RuleSet) -> Check:
    return check_model(checkable_table(candidate), responses=1)


def test_cells_met() -> None:
    """Each fragment meets the cell of what is known of its own index; fragments of no call meet none."""
    body = response(
        call(0, "A"), fragment(0, None), fragment(1, ""), fragment(0, "A"), fragment(0, "B"), fragment(1, 7),
        fragment("x", "A"), fragment(1, "C"), fragment(1, ""),
    )  # fmt: skip
    result = assemble(body, diagnose=True)
    assert cells_met(result.timeline) == {
        0: [
            ("absent", "other_string"),
            ("established", "null"),
            ("established", "same_string"),
            ("established", "other_string"),
        ],
        1: [
            ("absent", "empty_string"),
            ("empty", "number"),
            ("empty", "other_string"),
            ("established", "empty_string"),
        ],
    }


def test_bench(batch: Path) -> None:
    """A row holds the stream's cells, its evidence and a verdict under each rule set and counterfactual."""
    row = rows_of(batch, SHIPPED["reject-null"], wrong=COUNTERFACTUALS)["null"]
    assert (row.evidence, row.provider, row.kind, row.fragments) == ("captured", "openai", "batch", 3)
    assert row.met == Counter({("absent", "other_string"): 1, ("established", "null"): 2})
    assert list(row.rulings) == [DEFAULT_RULES, "reject-null", *COUNTERFACTUALS]
    assert (row.rulings[DEFAULT_RULES].outcome, row.rulings["reject-null"].category) == (
        "accepted",
        "TOOL_FRAGMENT_ID",
    )


def test_rows_hold_no_raw_value(batch: Path) -> None:
    """What is kept of a stream's calls is a count and a digest."""
    rows = rows_of(batch, wrong=["generate-id"])
    assert "generated-" not in repr(rows)
    assert rows["plain"].rulings[DEFAULT_RULES].digest == rows["same"].rulings[DEFAULT_RULES].digest
    assert rows["plain"].rulings[DEFAULT_RULES].digest != rows["changed"].rulings[DEFAULT_RULES].digest


def test_a_counterfactual_sees_a_source_from_its_beginning(batch: Path) -> None:
    """No memory reaches from one source into the next."""
    sources = open_sources([batch])
    once = [row.rulings["inherit-response"] for row in bench(sources, [], ["inherit-response"])]
    twice = [row.rulings["inherit-response"] for row in bench([*sources, *sources], [], ["inherit-response"])]
    assert twice == once * 2


def test_worked_example(batch: Path) -> None:
    """empty-continuation recovers what only its cell refused, moves no accepted call and breaks nothing."""
    found = assessed(batch, SHIPPED["empty-continuation"])
    (cell,) = found.cells
    assert (cell.identity, cell.column, cell.after) == ("established", "empty_string", "keep")
    assert (cell.met["captured"], cell.calls, cell.calls_with_other_ids) == (3, 3, 1)
    directions = Counter(departure.direction for departure in found.departures)
    assert directions == {"recovered": 1, "other category": 1}
    moved = [(m.layer, m.moved) for m in found.movements]
    assert moved == [("permission", 1), ("permission", 0), ("execution", 0), ("recovery", 1), ("recovery", 1)]
    assert found.safe
    assert found.stages == {"fragment": 2}
    assert found.moved_elsewhere == 0


def test_safe_actions_of_the_worked_example(batch: Path) -> None:
    """An empty string may be kept in every state, and may be taken in every state but the established one."""
    found = assessed(batch, SHIPPED["empty-continuation"])
    assert [(s.identity, s.keep, s.set) for s in found.safe_actions] == [
        ("absent", None, None),
        ("empty", None, None),
        ("established", None, "established_cleared"),
    ]


def test_reject_null_loses(batch: Path) -> None:
    """The older rule loses the valid stream and names its compound category elsewhere."""
    found = assessed(batch, SHIPPED["reject-null"])
    assert [departure.row.met["established", "null"] for departure in found.departed("lost")] == [2]
    assert {departure.after.category for departure in found.departed("other category")} == {
        "TOOL_FRAGMENT_ID"
    }
    assert found.movements[1].moved == 1
    assert found.safe


def test_unsafe_candidate(batch: Path) -> None:
    """A candidate that lets another ID overwrite is unsafe by its cell, by search, and by the calls that it
    moves."""
    found = assessed(batch, changed("overwrites", ("established", "other_string", "set")))
    assert not found.safe
    assert [f.invariant for f in found.check.findings] == ["established_changed"]
    assert len(found.departed("recovered")) == 1


def test_calls_that_move_are_seen(batch: Path) -> None:
    """Where both accept, other calls count as a movement of execution."""
    candidate = changed("stricter", ("established", "null", "reject:identity.conflict"))
    rows = rows_of(batch, candidate)
    row = rows["plain"]
    other = row.rulings["stricter"].__class__("accepted", None, 1, "0" * 64, ())
    moved = BenchRow(**{**vars(row), "rulings": {**row.rulings, "stricter": other}})
    found = assess(candidate, [moved], searched(candidate))
    assert [departure.direction for departure in found.departures] == ["other calls"]
    assert found.movements[2].moved == 1


def test_no_difference(batch: Path) -> None:
    """The default assessed against itself differs in no cell, and no stream departs."""
    found = assessed(batch, SHIPPED[DEFAULT_RULES])
    assert (found.cells, found.departures, found.safe_actions) == ((), (), ())
    assert found.safe


@pytest.mark.parametrize(("identity", "column"), CELLS)
def test_differing_cells(identity: str, column: str) -> None:
    """A changed cell is named, and no other."""
    action = SHIPPED[DEFAULT_RULES].action(identity, column)
    other = "keep" if action != "keep" else "reject:identity.conflict"
    assert differing_cells(changed("one", (identity, column, other))) == [(identity, column)]
