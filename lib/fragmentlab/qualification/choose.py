"""Which subject a run puts to the test, as plain data that a worker process can build it from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fragmentlab.corpus.rules import find_rules
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS, Counterfactual
from fragmentlab.subjects.assembler import AssemblerSubject, CounterfactualSubject
from fragmentlab.subjects.command import CommandSubject
from fragmentlab.subjects.interface import Subject
from fragmentlab.subjects.process import Bounds

RECONSTRUCTIONS: Mapping[str, str] = {
    "reject-null": "our reconstruction of the rule before the repair, made later and not a record of the past"
}
"""Rule sets whose runs must never be taken for history -> what is said of them."""


@dataclass(frozen=True)
class Choice:
    """A subject to be built: a rule table, a counterfactual's name, or a command with its bounds."""

    rules: str | None = None
    command: tuple[str, ...] | None = field(default=None, repr=False)
    long_lived: bool = False
    bounds: Bounds = field(default_factory=Bounds)
    categories: frozenset[str] = frozenset()

    def build(self) -> Subject:
        """Make the subject. Raises InputError for rules that are unknown or unusable."""
        if self.command is not None:
            return CommandSubject(
                self.command, long_lived=self.long_lived, bounds=self.bounds, categories=self.categories
            )
        assert self.rules is not None
        if self.rules in COUNTERFACTUALS:
            return CounterfactualSubject(self.rules, Counterfactual(self.rules).assemble)
        return AssemblerSubject(find_rules(self.rules))

    @property
    def reconstruction(self) -> str | None:
        """What must be said of a run under these rules, if anything."""
        return RECONSTRUCTIONS.get(self.rules or "")
