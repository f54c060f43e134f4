"""Counterfactuals: each does its harm, none can be executed, and the assembler knows nothing of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from fragmentlab.assembler import Result
from fragmentlab.assembler.rules import DEFAULT_RULES, SHIPPED, RulesError, load_rules
from fragmentlab.errors import InputError
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS, Counterfactual
from tests.assembler.wire import OMITTED, call, chunk, fragment, response, sse

NAMES = ["accept-every-null", "generate-id", "borrow-previous", "match-name", "inherit-response", "last-wins"]
WHOLE = response(call(0, "A"))
ANONYMOUS = response(call(0, OMITTED))
SECOND_IS_NULL = response(call(0, "A", "f"), call(1, None, "f"))
OTHER_TOOL = response(call(0, "A", "g"), call(1, None, "f"))
CHANGED = response(call(0, "A"), fragment(0, "B"))
EMPTIED = response(call(0, "A"), fragment(0, ""))
NULL_FIRST = response(fragment(0, None), call(0, "A"))


def ids(result: Result) -> Any:
    """The calls' IDs, or the category of a refusal."""
    return result.category or [c.id for c in result.calls]


HARM = {
    ("accept-every-null", NULL_FIRST): ["A"],
    ("accept-every-null", ANONYMOUS): "proposal.id_missing",
    ("accept-every-null", CHANGED): "identity.conflict",
    ("generate-id", NULL_FIRST): ["A"],
    ("generate-id", ANONYMOUS): ["generated-1"],
    ("generate-id", SECOND_IS_NULL): ["A", "generated-2"],
    ("generate-id", CHANGED): "identity.conflict",
    ("borrow-previous", SECOND_IS_NULL): ["A", "A"],
    ("borrow-previous", OTHER_TOOL): ["A", "A"],
    ("borrow-previous", ANONYMOUS): "proposal.id_missing",
    ("borrow-previous", response(call(1, "B"), call(0, OMITTED))): ["B", "B"],
    ("borrow-previous", response(call(0, OMITTED), call(1, "B"))): "proposal.id_missing",
    ("match-name", SECOND_IS_NULL): ["A", "A"],
    ("match-name", OTHER_TOOL): "proposal.id_missing",
    ("match-name", ANONYMOUS): "proposal.id_missing",
    ("inherit-response", ANONYMOUS): "proposal.id_missing",
    ("inherit-response", NULL_FIRST): ["A"],
    ("last-wins", CHANGED): ["B"],
    ("last-wins", EMPTIED): ["A"],
    ("last-wins", NULL_FIRST): "identity.missing",
    ("last-wins", ANONYMOUS): "proposal.id_missing",
}


def test_names() -> None:
    """There are two tables and four wrappers."""
    assert sorted(COUNTERFACTUALS) == sorted(NAMES)
    assert sum(entry.fill is not None for entry in COUNTERFACTUALS.values()) == 4


@pytest.mark.parametrize(
    ("case", "expected"), HARM.items(), ids=[f"{n}-{i}" for i, (n, _) in enumerate(HARM)]
)
def test_harm(case: tuple[str, bytes], expected: Any) -> None:
    """Each gives the identity that its reading gives, and refuses what it does not touch."""
    name, body = case
    for diagnose in (False, True):
        assert ids(Counterfactual(name).assemble(body, diagnose=diagnose)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_other_protections_stay(name: str) -> None:
    """Only the identity rule is wrong: what ends unfinished, repeats an ID or breaks its arguments is
    refused."""
    subject = Counterfactual(name)
    for body, category in [
        (sse(chunk(call()), done=False), "completion.truncated"),
        (response(call(), finish="length"), "completion.length"),
        (response(call(0, "A"), call(1, "A")), "proposal.id_duplicate"),
        (response(call(0, "A", arguments="{")), "proposal.arguments_invalid_json"),
        (response(call(0, 7)), "identity.unsupported_type"),
    ]:
        assert ids(subject.assemble(body)) == category
    assert ids(subject.assemble(WHOLE, tools=["g"])) == "proposal.name_unknown"


def test_inherit_response_sees_consecutive_responses() -> None:
    """The ID of the same index in the response before it is inherited, and of no response before that."""
    subject = Counterfactual("inherit-response")
    assert ids(subject.assemble(WHOLE)) == ["A"]
    assert ids(subject.assemble(ANONYMOUS)) == ["A"]
    assert ids(subject.assemble(ANONYMOUS)) == "proposal.id_missing"
    subject.assemble(WHOLE)
    assert ids(subject.assemble(response(call(1, OMITTED)))) == "proposal.id_missing"
    subject.assemble(WHOLE)
    subject = Counterfactual("inherit-response")
    assert ids(subject.assemble(ANONYMOUS)) == "proposal.id_missing"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"inherit-response"}))
def test_no_other_has_a_memory(name: str) -> None:
    """Every other counterfactual gives the same for a response whatever came before it."""
    subject = Counterfactual(name)
    fresh = [ids(Counterfactual(name).assemble(body)) for body in (ANONYMOUS, SECOND_IS_NULL, CHANGED)]
    subject.assemble(response(call(0, "Z"), call(1, "Y")))
    assert [ids(subject.assemble(body)) for body in (ANONYMOUS, SECOND_IS_NULL, CHANGED)] == fresh


@pytest.mark.parametrize("name", NAMES)
def test_never_executable(name: str) -> None:
    """Every result says so, also of a response that every rule set accepts, and bears the counterfactual's
    name."""
    for body in (WHOLE, ANONYMOUS, CHANGED):
        result = Counterfactual(name).assemble(body)
        assert (result.executable, result.rules) == (False, name)


@pytest.mark.parametrize("name", NAMES)
def test_the_assembler_does_not_know_them(name: str) -> None:
    """No name reaches the assembler's rule sets."""
    assert name not in SHIPPED
    with pytest.raises(RulesError):
        load_rules(name)


def test_the_assembler_cannot_import_them() -> None:
    """Importing the assembler loads nothing of this package."""
    source = "import sys, fragmentlab.assembler; print([m for m in sys.modules if 'qualification' in m])"
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_the_runtime_refuses_them(name: str) -> None:
    """The runtime takes neither the table of one, naming the invariant that it breaks, nor its name."""
    from fragmentlab.runtime.gateway import executable_rules

    broken = {invariant for invariant, _, _ in COUNTERFACTUALS[name].rules.violations}
    with pytest.raises(InputError) as caught:
        executable_rules(COUNTERFACTUALS[name].rules)
    assert all(invariant in str(caught.value) for invariant in broken)
    with pytest.raises((RulesError, InputError)):
        executable_rules(name)


def test_diagnostics_show_no_given_id() -> None:
    """A given ID is shown as given, never by its text or placeholder, unless asked for."""
    result = Counterfactual("borrow-previous").assemble(SECOND_IS_NULL, diagnose=True)
    assert [c["id"] for c in result.to_json()["calls"]] == ["A", "given"]
    assert "fragmentlab-no-id" not in str(result.to_json(reveal=True)) + repr(result)


def test_default_refuses_what_each_lets_through() -> None:
    """Whatever a counterfactual accepts above, the default rule set refuses."""
    from fragmentlab.assembler import assemble

    for (name, body), expected in HARM.items():
        if isinstance(expected, list):
            assert assemble(body, rules=DEFAULT_RULES).outcome == "rejected", name
