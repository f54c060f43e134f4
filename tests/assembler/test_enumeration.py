"""Every sequence of up to three fragments over two indices and all incoming kinds, against the invariants."""

from __future__ import annotations

import pytest

from fragmentlab.assembler import assemble
from fragmentlab.assembler.rules import SHIPPED
from tests.assembler.checks import (
    UNFINISHED,
    Sequence,
    broken_promises,
    is_allowed_by_design,
    promises_broken_anywhere,
    sequences,
)
from tests.assembler.oracle import Oracle
from tests.assembler.wire import OMITTED


def test_every_sequence_of_three() -> None:
    """No sequence breaks a promise, and the oracle gives each the same outcome and category.

    Two fragments reach every state that the rules know, which model checking proves; the third leaves it.
    """
    count = accepted = 0
    for sequence in sequences(3):
        result = assemble(sequence.body())
        assert not broken_promises(sequence, result, is_allowed_by_design), sequence
        oracle = Oracle()
        for index, says in sequence.steps:
            function = {"name": "f", "arguments": "{}"}
            oracle.add({"index": index, "function": function} | ({} if says is OMITTED else {"id": says}))
        oracle.finish = "tool_calls"
        expected = _identity_outcome(oracle)
        assert (result.outcome, result.category) == expected, sequence
        count += 1
        accepted += result.outcome == "accepted"
    assert (count, accepted) == (2_282, 41)


def _identity_outcome(oracle: Oracle) -> tuple[str, str | None]:
    """The oracle's outcome where names and arguments are known to be good."""
    if oracle.category:
        return "rejected", oracle.category
    seen: set[str] = set()
    for _, call in sorted(oracle.calls.items()):
        if not call.get("id"):
            return "rejected", "proposal.id_missing"
        if call["id"] in seen:
            return "rejected", "proposal.id_duplicate"
        seen.add(call["id"])
    return "accepted", None


@pytest.mark.parametrize("rules", SHIPPED)
def test_timeline_keeps_the_invariants(rules: str) -> None:
    """In every sequence of three, past its faults too, an established identity never changes."""
    for sequence in sequences(3):
        result = assemble(sequence.body(), rules=rules, diagnose=True)
        known: dict[int | None, str | None] = {}
        for row in result.timeline:
            before = known.get(row.index)
            assert (row.previous_identity == "established") == (before is not None), sequence
            if before is not None:
                assert (row.next_identity, row.id_alias) == ("established", before), sequence
            elif row.next_identity == "established":
                assert row.id_alias == row.incoming_alias is not None, sequence
            known[row.index] = row.id_alias
        if result.outcome == "rejected":
            assert not result.calls


@pytest.mark.parametrize("end", UNFINISHED)
def test_unfinished_sequences(end: str) -> None:
    """However good its fragments, a response that ended unfinished yields no call."""
    for sequence in sequences(2):
        result = assemble(sequence.body(**UNFINISHED[end]))
        assert (result.outcome, result.calls) == ("rejected", ()), sequence


def test_diagnosing_never_accepts_more() -> None:
    """Both modes give the same outcome and primary category for every sequence of three."""
    for sequence in sequences(3):
        plain, diagnosed = assemble(sequence.body()), assemble(sequence.body(), diagnose=True)
        assert (plain.outcome, plain.category, plain.calls) == (
            diagnosed.outcome,
            diagnosed.category,
            diagnosed.calls,
        )
        assert plain.faults == diagnosed.faults[:1]


def test_two_responses_share_nothing() -> None:
    """What the first response established is unknown in the second."""
    assert assemble(Sequence(((0, "A"),)).body()).outcome == "accepted"
    assert assemble(Sequence(((0, None),)).body()).category == "identity.missing"
    assert assemble(Sequence(((0, OMITTED),)).body()).category == "proposal.id_missing"


def test_checks_run_over_the_assembler() -> None:
    """The same checks that catch the broken assemblers find nothing here."""
    assert promises_broken_anywhere(assemble, most=3) == set()
