"""Model checking: the known counterexamples are found, the default has none, and every flipped cell is
judged."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler import Assembler, Result, RuleSet, assemble
from fragmentlab.assembler.rules import (
    CELLS,
    COLUMNS,
    DEFAULT_RULES,
    IDENTITIES,
    IMPOSSIBLE,
    SHIPPED,
    RulesError,
    rules_from_json,
)
from fragmentlab.corpus.vector_check import check
from fragmentlab.corpus.vectors import load_vectors
from fragmentlab.qualification.candidates.assessment import _broken_by
from fragmentlab.qualification.candidates.counterexamples import counterexample_file, file_text
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS, Counterfactual
from fragmentlab.qualification.candidates.modelcheck import (
    CHECKED_INVARIANTS,
    MAX_FRAGMENTS,
    Checkable,
    check_all,
    check_model,
    check_shipped,
    checkable_table,
)
from fragmentlab.qualification.candidates.sequences import KINDS, SYMBOLS, Step, response_of
from tests.assembler.broken import naive

KNOWN = {
    "accept-every-null": {"null_keeps_nothing"},
    "generate-id": {"identity_invented", "null_keeps_nothing"},
    "borrow-previous": {"identity_borrowed", "null_keeps_nothing"},
    "match-name": {"identity_borrowed", "null_keeps_nothing"},
    "inherit-response": {"identity_inherited", "identity_borrowed", "null_keeps_nothing"},
    "last-wins": {"established_changed"},
}


def flipped(identity: str, column: str, action: str) -> str:
    cells = {i: dict(SHIPPED[DEFAULT_RULES].cells[i]) for i in IDENTITIES}
    cells[identity][column] = action
    return json.dumps({"schema": "fragmentlab-rules-v1", "name": "flipped", "note": "", "cells": cells})


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_rule_sets_break_nothing(name: str) -> None:
    """No sequence breaks an invariant under a shipped rule set, and no longer one can."""
    found = check_shipped(name)
    assert found.findings == ()
    assert found.closed
    expected = {
        "keep-established": (),
        "reject-null": ("refuses more", "names another category"),
        "empty-continuation": ("accepts more", "names another category"),
    }
    assert found.differs == expected[name]


@pytest.mark.parametrize("name", COUNTERFACTUALS)
def test_known_counterexamples(name: str) -> None:
    """The checker finds the harm that each counterfactual is known for, in a response that it accepts."""
    found = check_shipped(name)
    assert {finding.invariant for finding in found.findings} == KNOWN[name]
    assert all(finding.accepted for finding in found.findings)
    assert KNOWN[name] <= CHECKED_INVARIANTS.keys()


@pytest.mark.parametrize("name", COUNTERFACTUALS)
def test_counterexamples_are_real(name: str) -> None:
    """Replayed, each counterexample is accepted by its counterfactual and refused by the default."""
    for finding in check_shipped(name).findings:
        subject = Counterfactual(name)
        if finding.earlier:
            assert assemble(response_of(finding.earlier)).outcome == "accepted"
            subject.assemble(response_of(finding.earlier))
        assert subject.assemble(response_of(finding.steps)).outcome == "accepted"
        assert assemble(response_of(finding.steps)).outcome == "rejected"


@pytest.mark.parametrize("action", ["keep", "set", "reject:identity.conflict"])
@pytest.mark.parametrize(("identity", "column"), CELLS)
def test_flipped_cell(identity: str, column: str, action: str) -> None:
    """A table with one flipped cell is unsafe exactly where its cell says so, or differs only in refusals."""
    rules = rules_from_json(flipped(identity, column, action))
    found = check_model(checkable_table(rules), responses=1)
    assert found.closed or not found.safe
    assert found.safe == rules.executable
    assert {finding.invariant for finding in found.findings} >= {name for name, _, _ in rules.violations}
    if found.safe and action == SHIPPED[DEFAULT_RULES].action(identity, column):
        assert found.differs == ()
    if action != "reject:identity.conflict":
        named = _broken_by((identity, column), action)
        assert named == next((finding.invariant for finding in found.findings), None)
    if found.safe and action.startswith("reject"):
        assert "accepts more" not in found.differs


@pytest.mark.parametrize(("identity", "column"), sorted(IMPOSSIBLE))
def test_flipped_impossible_cell(identity: str, column: str) -> None:
    """The two cells that nothing can reach cannot even be written down."""
    with pytest.raises(RulesError, match=f"cell {identity} / {column} can never occur"):
        rules_from_json(flipped(identity, column, "keep"))
    assert len(CELLS) + len(IMPOSSIBLE) == len(IDENTITIES) * len(COLUMNS) == 27


def every_sequence(length: int) -> Any:
    says = [*KINDS, *SYMBOLS]
    letters = [Step(index, said) for index in (0, 1) for said in says]
    return itertools.product(letters, repeat=length)


@pytest.mark.parametrize("name", ["last-wins", "borrow-previous", "accept-every-null"])
def test_merging_states_loses_nothing(name: str) -> None:
    """Trying every sequence of three one by one finds no identity that the merged search would not have
    found."""
    table = COUNTERFACTUALS[name].rules
    worst = set()
    for length in (1, 2, 3):
        for steps in every_sequence(length):
            result = Counterfactual(name).assemble(response_of(steps))
            if result.outcome != "accepted":
                continue
            for call in result.calls:
                said = [step.says for step in steps if step.index == call.index and step.says in SYMBOLS]
                if call.id not in said:
                    worst.add("identity_borrowed")
                elif set(said) != {call.id}:
                    worst.add("established_changed")
    assert worst <= KNOWN[name]
    assert worst == KNOWN[name] - {"null_keeps_nothing"}
    assert not table.executable


@pytest.mark.parametrize("name", ["keep-established", "borrow-previous", "inherit-response"])
def test_each_body_once_finds_the_same(name: str) -> None:
    """A search that really takes both responses, one after the other, each time, finds the same."""

    def after(earlier: bytes | None) -> Any:
        def take(body: bytes) -> Any:
            if name in SHIPPED:
                for taken in filter(None, (earlier, body)):
                    result = assemble(taken, rules=name, diagnose=True, end="clean")
                return result
            subject = Counterfactual(name)
            for taken in filter(None, (earlier, body)):
                result = subject.assemble(taken, diagnose=True, end="clean")
            return result

        return take

    assert check_model(Checkable(name, after)) == check_shipped(name)


def test_shortest() -> None:
    """No shorter response does the harm of last-wins or of borrow-previous."""
    for name in ("last-wins", "borrow-previous"):
        for steps in every_sequence(1):
            result = Counterfactual(name).assemble(response_of(steps))
            assert result.outcome != "accepted" or [c.id for c in result.calls] == [steps[0].says]
        assert {len(finding.steps) for finding in check_shipped(name).findings} == {2}


def mixing(body: bytes) -> Result:
    """Put all arguments into the first call."""
    return with_timeline(body, "one_buffer")


def yielding(body: bytes) -> Result:
    """Hand out the calls of a refused response."""
    calls = naive(body, "accepts_every_null", "ignores_the_finish", "stringifies").calls
    return Result("rejected", "x", "yielding", False, (), calls, {}, {}, with_timeline(body).timeline)


def with_timeline(body: bytes, *faults: str) -> Result:
    assembler = Assembler(diagnose=True)
    assembler.feed(body)
    timeline = assembler.finish("clean").timeline
    result = naive(body, *faults)
    return Result(result.outcome, result.category, "naive", False, (), result.calls, {}, {}, timeline)


@pytest.mark.parametrize(("take", "invariant"), [(mixing, "call_mixed"), (yielding, "refusal_yields_call")])
def test_other_invariants_can_fail(take: Any, invariant: str) -> None:
    """What no table can break is found in an assembler that breaks it."""
    found = check_model(Checkable("wrong", lambda earlier: take), responses=1)
    assert invariant in {finding.invariant for finding in found.findings}


def test_unsafe_candidate() -> None:
    """The example under data/rules is caught: its empty string clears an ID, after which another is taken."""
    from fragmentlab.corpus.rules import find_rules

    rules = find_rules(str(Path(__file__).parents[3] / "data" / "rules" / "empty-clears.json"))
    assert not rules.executable
    (finding,) = check_model(checkable_table(rules), responses=1).findings
    assert finding.invariant == "established_cleared"
    assert [step.says for step in finding.steps] == ["A", "empty_string", "A"]


def test_everything_is_searched() -> None:
    """Everything shipped and every counterfactual is searched, and a candidate that is neither."""
    assert list(check_all([SHIPPED["reject-null"]])) == [*SHIPPED, *COUNTERFACTUALS]
    candidate: RuleSet = rules_from_json(flipped("established", "null", "reject:identity.conflict"))
    assert list(check_all([candidate])) == [*SHIPPED, "flipped", *COUNTERFACTUALS]


def test_size() -> None:
    """A search stands for every sequence of one to six of twenty different fragments."""
    found = check_shipped(DEFAULT_RULES)
    assert found.sequences == sum(20**length for length in range(1, MAX_FRAGMENTS + 1)) == 67_368_420


def test_committed_vectors(root: Path, tmp_path: Path) -> None:
    """The committed counterexamples are those that the search finds now, and they agree."""
    text = file_text(counterexample_file(check_shipped(name) for name in COUNTERFACTUALS))
    committed = root / "data" / "vectors" / "counterexample.json"
    assert committed.read_text() == text, "run fragmentlab maintain counterexamples"
    file = load_vectors(committed)
    assert [mismatch for vector in file.vectors for mismatch in check(vector)] == []
    assert {v.expect.outcome for v in file.vectors if "counterexample" in v.flags} == {"rejected"}


def test_command(root: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    """One rules file gives its own counterexamples as vectors, its path printed; a safe one gives none."""
    out, write = tmp_path / "found.json", ("maintain", "counterexamples", "--out")
    unsafe = root / "data" / "rules" / "empty-clears.json"
    done = command(*write, out, "--rules", unsafe)
    assert (done.status, done.out) == (0, f"{out}\n")
    (vector,) = load_vectors(out).vectors
    assert (vector.expect.category, check(vector)) == ("identity.conflict", [])
    assert command(*write, tmp_path / "none.json", "--rules", "reject-null").status == 1
    assert not (tmp_path / "none.json").exists()
    assert command(*write, out, "--rules", "no-such").status == 2
    assert command(*write, tmp_path / "no" / "dir.json", "--rules", unsafe).status == 2
