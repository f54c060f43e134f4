"""Rule sets made wrong on purpose, to measure the harm of a reading. None may be executed.

Two are tables. Four are what no table can express: they take every null as no update, and give a call that
ends without an ID one from elsewhere. They live apart from the assembler, which imports nothing of this
package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from fragmentlab.assembler import (
    Assembler,
    End,
    Framing,
    Limits,
    Result,
    RuleSet,
    Tool,
    Tools,
    rules_from_json,
)
from fragmentlab.assembler.calls import CallState


def _table(name: str) -> RuleSet:
    return rules_from_json(files(__package__).joinpath("harmful_rules", f"{name}.json").read_bytes())


_EVERY_NULL = _table("accept-every-null")
_LAST_WINS = _table("last-wins")
_PLACEHOLDER = "\ue000fragmentlab-no-id-"
"""Begins what stands for an ID while the proposal is checked; a private-use character keeps it apart."""
Earlier = Mapping[int, str]
"""Index -> the ID known of it when the earlier response ended."""
Fill = Callable[[CallState, Iterable[CallState], Earlier], str | None]
"""(the call that ended without an ID, all calls by arrival, the earlier response) -> the ID it is given."""


def _generated(call: CallState, calls: Iterable[CallState], earlier: Earlier) -> str | None:
    return f"generated-{call.ordinal}"


def _of_previous_call(call: CallState, calls: Iterable[CallState], earlier: Earlier) -> str | None:
    before = [other.id for other in calls if other.ordinal < call.ordinal and other.id]
    return before[-1] if before else None


def _of_same_name(call: CallState, calls: Iterable[CallState], earlier: Earlier) -> str | None:
    return next(
        (other.id for other in calls if other is not call and other.id and other.name == call.name), None
    )


def _of_earlier_response(call: CallState, calls: Iterable[CallState], earlier: Earlier) -> str | None:
    return earlier.get(call.index)


@dataclass(frozen=True)
class Description:
    """What a counterfactual does; ``fill`` is None for a plain table."""

    name: str
    does: str
    rules: RuleSet
    fill: Fill | None = field(default=None, repr=False)


COUNTERFACTUALS: Mapping[str, Description] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Description(
                "accept-every-null", "takes null as no update even where no ID is known", _EVERY_NULL
            ),
            Description("generate-id", "gives a call without an ID an invented one", _EVERY_NULL, _generated),
            Description(
                "borrow-previous",
                "gives a call without an ID that of the call before it",
                _EVERY_NULL,
                _of_previous_call,
            ),
            Description(
                "match-name",
                "gives a call without an ID that of a call of the same tool",
                _EVERY_NULL,
                _of_same_name,
            ),
            Description(
                "inherit-response",
                "gives a call without an ID that of its index in the earlier response",
                _EVERY_NULL,
                _of_earlier_response,
            ),
            Description("last-wins", "lets another nonempty ID overwrite the known one", _LAST_WINS),
        )
    }
)
"""Name -> what it does."""


class Counterfactual:
    """One wrong reading with the signature of ``assemble``; it sees consecutive responses in order."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self._earlier: dict[int, str] = {}

    @property
    def name(self) -> str:
        return self.description.name

    def forget(self) -> None:
        """Begin anew: the next response has none before it."""
        self._earlier = {}

    def assemble(
        self,
        body: bytes,
        *,
        tools: Tools | Iterable[str | Tool | Mapping[str, Any]] | None = None,
        limits: Limits | Mapping[str, int] | None = None,
        framing: Framing = "sse",
        end: End = "unknown",
        diagnose: bool = False,
    ) -> Result:
        """Return what this reading makes of one response; ``executable`` is False whatever it is."""
        assembler = _Filling(self.description, self._earlier, tools, limits, diagnose, framing)
        assembler.feed(body)
        result = assembler.finish(end)
        self._earlier = assembler.known_ids()
        calls = tuple(
            dataclasses.replace(call, id=given, alias="given")
            if (given := assembler.given.get(call.id))
            else call
            for call in result.calls
        )
        return dataclasses.replace(result, rules=self.name, executable=False, calls=calls)


def counterfactual(name: str) -> Counterfactual:
    """Return a new counterfactual that saw no response yet; KeyError for a name not in COUNTERFACTUALS."""
    return Counterfactual(COUNTERFACTUALS[name])


class _Filling(Assembler):
    """The assembler with the step it must never have: identities completed before the proposal is checked."""

    def __init__(
        self,
        description: Description,
        earlier: Earlier,
        tools: Tools | Iterable[str | Tool | Mapping[str, Any]] | None,
        limits: Limits | Mapping[str, int] | None,
        diagnose: bool,
        framing: Framing,
    ) -> None:
        super().__init__(description.rules, tools, limits, diagnose, framing)
        self._fill = description.fill
        self._before = dict(earlier)
        self.given: dict[str, str] = {}
        """Placeholder -> ID. Clients that fill in an ID do not look whether it is taken, so the check for
        duplicates sees a placeholder of the call's own."""

    def known_ids(self) -> dict[int, str]:
        """Index -> the ID that came over the wire."""
        return {
            index: call.id
            for index, call in self._calls.by_index.items()
            if call.id and call.id not in self.given
        }

    def _check_proposal(self) -> None:
        if self._fill is not None:
            calls = list(self._calls.by_index.values())
            found = {call.index: self._fill(call, calls, self._before) for call in calls if not call.id}
            for call in calls:
                if given := found.get(call.index):
                    call.id = f"{_PLACEHOLDER}{call.ordinal}"
                    self.given[call.id] = given
        super()._check_proposal()
