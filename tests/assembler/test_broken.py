"""The suite's checks can fail: each broken assembler is caught, and the naive one without faults is not."""

from __future__ import annotations

from functools import partial

import pytest

from fragmentlab.assembler import Result, assemble
from fragmentlab.assembler.rules import SHIPPED
from tests.assembler.broken import FAULTS, naive
from tests.assembler.checks import promises_broken_anywhere
from tests.assembler.test_canaries import leaks


@pytest.mark.parametrize("fault", FAULTS)
def test_caught(fault: str) -> None:
    """An assembler that merges, invents, clears, drops a protection or executes a cut response is caught."""

    def assembler(body: bytes) -> Result:
        return naive(body, fault)

    assert promises_broken_anywhere(assembler) >= FAULTS[fault]


def test_right_ones_pass() -> None:
    """The checks find nothing in the naive assembler without faults, nor in the kit's."""
    assert promises_broken_anywhere(naive) == set()
    assert promises_broken_anywhere(assemble) == set()


@pytest.mark.parametrize("rules", sorted(set(SHIPPED) - {"keep-established"}))
def test_other_rule_sets_differ_in_what_they_refuse(rules: str) -> None:
    """Against the default's promises one refuses more, the other accepts an empty continuation."""
    broken = promises_broken_anywhere(partial(assemble, rules=rules))
    assert broken == ({"refused"} if rules == "reject-null" else {"executed"})


def test_leak_is_caught() -> None:
    """The canary search finds a value that a diagnostic would quote."""
    assert leaks('{"category": "identity.conflict", "id": "CANARY-id"}') == ["CANARY-id"]
