"""Hold the assembler to vectors: every replay, both modes, every rule set that a vector speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec import to_builtins
from msgspec.structs import astuple, replace

from fragmentlab.assembler import Assembler, Result, RuleSet
from fragmentlab.assembler.rules import DEFAULT_RULES, SHIPPED, load_rules
from fragmentlab.corpus.vectors import BYTE_BY_BYTE, Expectation, Rejected, Vector, replays
from fragmentlab.disclosure import for_terminal

_CALL_FIELDS = ("id", "name", "arguments")
_Difference = tuple[str, str, str, bool]
"""(fact, expected, got, is_raw) of a Mismatch."""


@dataclass(frozen=True)
class Mismatch:
    """One fact that is not as expected, with every replay that shows it the same way.

    ``expected`` and ``got`` are raw where ``is_raw``; only ``shown`` with ``reveal`` gives such values away.
    """

    vector: str
    rules: str
    fact: str
    expected: str = field(repr=False)
    got: str = field(repr=False)
    is_raw: bool = field(default=False, repr=False)
    replays: tuple[str, ...] = ()
    is_every_replay: bool = False

    def shown(self, reveal: bool = False) -> tuple[str, str]:
        """Return expected and got for a person: raw values only if asked for, otherwise their lengths."""
        if not self.is_raw:
            return self.expected, self.got
        if reveal:
            return ascii(self.expected), ascii(self.got)
        lengths = f"{len(self.expected)} characters", f"{len(self.got)} characters"
        return lengths if lengths[0] != lengths[1] else (lengths[0], f"{lengths[1]}, other text")

    def to_json(self, reveal: bool = False) -> dict[str, Any]:
        """Return the facts for a program, raw values only if asked for."""
        expected, got = (self.expected, self.got) if reveal else self.shown()
        facts = {"id": self.vector, "rules": self.rules, "fact": self.fact}
        return facts | {"expected": expected, "got": got, "replays": list(self.replays)}

    def text(self, reveal: bool = False) -> str:
        """Return one line: vector, rule set, fact, expected and got, and which replays."""
        expected, got = self.shown(reveal)
        place = f"{for_terminal(self.vector)} under {self.rules}"
        where = "every replay" if self.is_every_replay else ", ".join(self.replays)
        return f"{place}: {self.fact} should be {expected}, is {got} ({where})"


def expectations(vector: Vector, rules: str | RuleSet | None = None) -> Iterator[tuple[RuleSet, Expectation]]:
    """Yield each rule set to check with what it must give.

    Without ``rules``: the default rule set, and every shipped one in ``expect_under``. With ``rules``: that
    one alone, held to its own entry of ``expect_under``, otherwise to ``expect``, since few streams depend on
    the rule set. Where it rejects with one compound category only, that stands for any ``identity.*``.
    """
    if rules is None:
        yield SHIPPED[DEFAULT_RULES], vector.expect_under.get(DEFAULT_RULES, vector.expect)
        for name, expect in vector.expect_under.items():
            if name in SHIPPED and name != DEFAULT_RULES:
                yield SHIPPED[name], expect
        return
    rule_set = load_rules(rules)
    expect = vector.expect
    if isinstance(expect, Rejected):
        expect = replace(expect, category=_compounded(expect.category, rule_set))
    yield rule_set, vector.expect_under.get(rule_set.name, expect)


def unchecked(vector: Vector) -> int:
    """Count the expectations under rule sets that are not shipped; checking them needs that rules file."""
    return sum(name not in SHIPPED for name in vector.expect_under)


def check(vector: Vector, rules: str | RuleSet | None = None) -> list[Mismatch]:
    """Replay the vector, serving execution and diagnosing, and return what is not as expected.

    Byte by byte under the first rule set only: a rule set sees fragments, never reads.
    """
    found: list[Mismatch] = []
    reads = list(replays(vector))
    for rule_set, expect in expectations(vector, rules):
        where: dict[_Difference, list[str]] = {}
        for label, parts in reads:
            for diagnose in (False, True):
                for difference in _differences(expect, _observe(vector, parts, rule_set, diagnose)):
                    where.setdefault(difference, []).append(f"{label}, diagnosing" if diagnose else label)
        found += [
            Mismatch(vector.id, rule_set.name, *difference, tuple(labels), len(labels) == 2 * len(reads))
            for difference, labels in where.items()
        ]
        reads = [replay for replay in reads if replay[0] != BYTE_BY_BYTE]
    return found


def _compounded(category: str, rules: RuleSet) -> str:
    if not category.startswith("identity."):
        return category
    given = {action.partition(":")[2] for row in rules.cells.values() for action in row.values()} - {""}
    return given.pop() if len(given) == 1 else category


def _observe(vector: Vector, reads: list[bytes], rules: RuleSet, diagnose: bool) -> Result | str:
    """Return the result, or the name of an exception, which no stream may cause; its message may quote."""
    try:
        assembler = Assembler(rules, vector.known_tools, vector.stream.limits, diagnose)
        for read in reads:
            assembler.feed(read)
        return assembler.finish(vector.end)
    except Exception as error:
        return type(error).__name__


def _differences(expect: Expectation, result: Result | str) -> Iterator[_Difference]:
    """Yield what differs; of the calls and the diagnostic only where the outcome is as expected."""
    wanted = _outcome(expect.outcome, expect.category)
    if isinstance(result, str):
        yield "outcome", wanted, f"the exception {result}", False
        return
    outcome = _outcome(result.outcome, result.category)
    if outcome != wanted:
        yield "outcome", wanted, outcome, False
        return
    calls = [(call.id, call.name, call.arguments) for call in result.calls]
    wanted_calls = [astuple(call) for call in expect.calls]
    if len(calls) != len(wanted_calls):
        yield "number of calls", str(len(wanted_calls)), str(len(calls)), False
    elif calls != wanted_calls:
        for number, (left, right) in enumerate(zip(wanted_calls, calls, strict=True), 1):
            for name, should, has in zip(_CALL_FIELDS, left, right, strict=True):
                if should != has:
                    yield f"{name} of call {number}", should, has, True
    for name, fact in to_builtins(expect.diagnostic).items():
        has = getattr(result.faults[0], name)
        # A fault without an incoming string leaves incoming_empty out; that is no empty string.
        if (bool(has) if name == "incoming_empty" else has) != fact:
            yield name, _word(fact), _word(has), False


def _outcome(outcome: str, category: str | None) -> str:
    return f"{outcome} {category}" if category else outcome


def _word(fact: Any) -> str:
    return {True: "true", False: "false", None: "none"}.get(fact, fact)
