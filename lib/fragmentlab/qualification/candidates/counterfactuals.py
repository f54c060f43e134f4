"""Rule sets made wrong on purpose, to measure the harm of a reading. None may be executed.

Two are tables. Four are what no table can express: they take every null as no update, and give a call that
ends without an ID one from elsewhere. They live apart from the assembler, which imports nothing of this
package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from fragmentlab.assembler import Assembler, Limits, Result, RuleSet
from fragmentlab.assembler.assembler import End, Framing
from fragmentlab.assembler.calls import CallState
from fragmentlab.assembler.proposal import AnyTools
from fragmentlab.assembler.rules import rules_from_json

_PLACEHOLDER = "\ue000fragmentlab-no-id-"
"""Begins what stands for an ID while the proposal is checked; a private-use character keeps it apart."""
Earlier = Mapping[int, str]
"""Index -> the ID known of it when the earlier response ended."""
Fill = Callable[[CallState, Sequence[CallState], Earlier], str | None]
"""(the call that ended without an ID, all calls by arrival, the earlier response) -> the ID it is given."""


def _generated(call: CallState, calls: Sequence[CallState], earlier: Earlier) -> str | None:
    return f"generated-{call.ordinal}"


def _of_previous_call(call: CallState, calls: Sequence[CallState], earlier: Earlier) -> str | None:
    return next((o.id for o in reversed(calls) if o.ordinal < call.ordinal and o.id), None)


def _of_same_name(call: CallState, calls: Sequence[CallState], earlier: Earlier) -> str | None:
    return next((o.id for o in calls if o is not call and o.id and o.name == call.name), None)


def _of_earlier_response(call: CallState, calls: Sequence[CallState], earlier: Earlier) -> str | None:
    return earlier.get(call.index)


@dataclass(frozen=True)
class Description:
    """What a counterfactual does; ``fill`` is None for a plain table."""

    does: str
    rules: RuleSet
    fill: Fill | None = field(default=None, repr=False)


def _table(name: str) -> RuleSet:
    return rules_from_json(files(__package__).joinpath("harmful_rules", f"{name}.json").read_bytes())


def _filling(source: str, fill: Fill) -> Description:
    return Description(f"gives a call without an ID {source}", _EVERY_NULL, fill)


_EVERY_NULL = _table("accept-every-null")
COUNTERFACTUALS: Mapping[str, Description] = MappingProxyType(
    {
        "accept-every-null": Description("takes null as no update even where no ID is known", _EVERY_NULL),
        "generate-id": _filling("an invented one", _generated),
        "borrow-previous": _filling("that of the call before it", _of_previous_call),
        "match-name": _filling("that of a call of the same tool", _of_same_name),
        "inherit-response": _filling("that of its index in the earlier response", _of_earlier_response),
        "last-wins": Description("lets another nonempty ID overwrite the known one", _table("last-wins")),
    }
)
"""Name -> what it does."""


class Counterfactual:
    """One wrong reading with the signature of ``assemble``; it sees consecutive responses in order.

    ::

        Counterfactual("generate-id").assemble(body).calls

    ``earlier`` is all that it keeps between responses; most keep nothing. Raises KeyError for a name that is
    not in COUNTERFACTUALS.
    """

    def __init__(self, name: str, earlier: Earlier = MappingProxyType({})) -> None:
        self.name = name
        self.earlier = earlier
        self._description = COUNTERFACTUALS[name]

    def assemble(
        self,
        body: bytes,
        *,
        tools: AnyTools | None = None,
        limits: Limits | Mapping[str, int] | None = None,
        framing: Framing = "sse",
        end: End = "unknown",
        diagnose: bool = False,
    ) -> Result:
        """Return what this reading makes of one response; ``executable`` is False whatever it is."""
        assembler = _Filling(self._description.rules, tools, limits, diagnose, framing)
        assembler.fill, assembler.earlier = self._description.fill, self.earlier
        assembler.feed(body)
        result = assembler.finish(end)
        if self._description.fill is _of_earlier_response:
            self.earlier = assembler.known_ids()
        calls = tuple(
            dataclasses.replace(call, id=given, alias="given")
            if (given := assembler.given.get(call.id))
            else call
            for call in result.calls
        )
        return dataclasses.replace(result, rules=self.name, executable=False, calls=calls)


class _Filling(Assembler):
    """The assembler with the step it must never have: identities completed before the proposal is checked."""

    fill: Fill | None = None
    earlier: Earlier = MappingProxyType({})

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
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
        if self.fill is not None:
            calls = list(self._calls.by_index.values())
            found = [(call, self.fill(call, calls, self.earlier)) for call in calls if not call.id]
            for call, given in found:
                if given:
                    call.id = f"{_PLACEHOLDER}{call.ordinal}"
                    self.given[call.id] = given
        super()._check_proposal()
