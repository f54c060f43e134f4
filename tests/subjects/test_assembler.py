"""The kit's own assembler as a subject."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragmentlab.assembler import assemble
from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.vectors import load_vectors
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS, Counterfactual
from fragmentlab.subjects.assembler import LISTED_FAULTS, AssemblerSubject, CounterfactualSubject, raw_calls
from fragmentlab.subjects.interface import Subject


def _cases(root: Path) -> list[Stream]:
    vectors = load_vectors(root / "data/vectors/identity.json").vectors
    return [v.stream for v in vectors]


@pytest.mark.parametrize("rules", SHIPPED)
def test_the_outcome_is_that_of_the_serving_mode(root: Path, rules: str) -> None:
    """A subject says what ``assemble`` says, with all faults of a refused stream beside it."""
    subject = AssemblerSubject(SHIPPED[rules])
    for case in _cases(root):
        result = assemble(case.body, rules=rules, tools=case.tools, limits=case.limits, end=case.end)
        observation = subject.observe(case)
        assert (observation.outcome, observation.category) == (result.outcome, result.category)
        assert observation.calls == raw_calls(result)
        assert observation.faults[:1] == result.faults


def test_a_hostile_stream_does_not_fill_the_diagnostics() -> None:
    """No more faults are listed than a run keeps."""
    body = b"data: x\n\n" * 1000
    assert (
        len(AssemblerSubject(SHIPPED["keep-established"]).observe(Stream("s", body)).faults) == LISTED_FAULTS
    )


def _subjects() -> list[Subject]:
    wrong = [CounterfactualSubject(name, Counterfactual(name).assemble) for name in COUNTERFACTUALS]
    return [*(AssemblerSubject(rules) for rules in SHIPPED.values()), *wrong]


@pytest.mark.parametrize("subject", _subjects(), ids=lambda s: s.description["rules"])
def test_every_subject_meets_the_interface(root: Path, subject: Subject) -> None:
    """Each names itself, says whether it may execute, and takes any case."""
    assert subject.description["executable"] is (not subject.ordered)
    assert {subject.observe(case).outcome for case in _cases(root)} <= {"accepted", "rejected", "no_calls"}
    subject.close()


def test_a_counterfactual_is_never_executable() -> None:
    """What is wrong on purpose says so of itself."""
    assert not any(
        s.description["executable"] for s in _subjects() if s.description["kind"] == "counterfactual"
    )
