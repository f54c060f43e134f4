"""What the model checker drives: a rule table in the kit's assembler, or a counterfactual."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fragmentlab.assembler import Result, RuleSet
from fragmentlab.corpus.streams import Stream
from fragmentlab.qualification.candidates.counterfactuals import counterfactual

Next = Callable[[bytes], Result]
"""Takes one response, diagnosing. Called again, it takes another one from the same point."""


class Checked(Protocol):
    """What is model checked: a name, and what it makes of a response, the first or one after another."""

    @property
    def name(self) -> str: ...

    def after(self, earlier: bytes | None) -> Next: ...


@dataclass(frozen=True)
class TableUnderTest:
    """A rule table in the kit's assembler."""

    rules: RuleSet

    @property
    def name(self) -> str:
        return self.rules.name

    def after(self, earlier: bytes | None) -> Next:
        if earlier is not None:
            self._assemble(earlier)
        return self._assemble

    def _assemble(self, body: bytes) -> Result:
        return Stream("", body, end="clean", framed="sse").assemble(self.rules, diagnose=True)


@dataclass(frozen=True)
class CounterfactualUnderTest:
    """A counterfactual, one object for both responses."""

    name: str

    def after(self, earlier: bytes | None) -> Next:
        subject = counterfactual(self.name)
        if earlier is not None:
            subject.assemble(earlier, end="clean")
        return lambda body: copy.copy(subject).assemble(body, diagnose=True, end="clean")
