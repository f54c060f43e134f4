"""Model checking: every sequence of fragments, in two consecutive responses, against the invariants.

Each step is taken by the assembler itself, on real bytes: once for each body and whatever the subject keeps
from the response before. Sequences that leave the same state behind (what is known of each index, where those
IDs were said, which invariants are already broken) are followed once, from the shortest of them; a refused
response is not followed, since nothing after a refusal can give a call. When no new state appears the search
is closed, and what it says holds for any length.

Source: docs/design.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial

from fragmentlab.assembler import Result, RuleSet
from fragmentlab.assembler.result import FragmentRow
from fragmentlab.assembler.rules import INVARIANTS, SHIPPED
from fragmentlab.corpus.streams import Stream
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS, Counterfactual
from fragmentlab.qualification.candidates.sequences import (
    KINDS,
    SYMBOLS,
    Step,
    Steps,
    response_of,
    sent_calls,
    strings_said,
)

MAX_FRAGMENTS = 6
CHECKED_INVARIANTS = {
    **INVARIANTS,
    "identity_borrowed": "no identity comes from another index",
    "identity_inherited": "no identity comes from another response",
    "call_mixed": "no call holds bytes of another",
    "refusal_yields_call": "a refused response yields no call",
    "calls_moved": "a response that keep-established accepts gives the same calls",
}
"""Invariant -> what it demands: those of a table, and those that only a run can break."""
DIFFERENCES = ("refuses more", "accepts more", "names another category")
LETTERS = 2 * (len(KINDS) + len(SYMBOLS))
"""Different fragments at each step."""
Next = Callable[[bytes], Result]
"""Takes one response, diagnosing. Called again, it takes another one from the same point."""
_Names = dict[str | None, str]
"""Alias in a timeline -> the ID that was said."""


@dataclass(frozen=True)
class Checkable:
    """What a search drives: a name, and what it makes of a response, the first (None) or one after another.

    ::

        check_model(checkable_table(rules)).findings
    """

    name: str
    after: Callable[[bytes | None], Next] = field(repr=False)


def checkable_table(rules: RuleSet) -> Checkable:
    """Return a rule table in the kit's assembler, as what a search drives.

    It keeps nothing between responses, so each body is assembled once, whatever came before it.
    """
    take = cache(lambda body: _stream(body).assemble(rules, diagnose=True))
    return Checkable(rules.name, lambda earlier: take)


def checkable_counterfactual(name: str) -> Checkable:
    """Return a counterfactual, as what a search drives; a body is assembled once for all that is kept."""

    @cache
    def take(kept: frozenset[tuple[int, str]], body: bytes) -> Result:
        return Counterfactual(name, dict(kept)).assemble(body, diagnose=True, end="clean")

    def after(earlier: bytes | None) -> Next:
        subject = Counterfactual(name)
        if earlier is not None:
            subject.assemble(earlier, end="clean")
        return partial(take, frozenset(subject.earlier.items()))

    return Checkable(name, after)


@dataclass(frozen=True)
class Finding:
    """The shortest sequence found that breaks an invariant.

    ``earlier`` is the response before it, empty where none is needed; ``accepted`` says that the response is
    accepted, not just that a step breaks it.
    """

    invariant: str
    earlier: Steps
    steps: Steps
    accepted: bool

    @property
    def rank(self) -> tuple[bool, int, Steps, Steps]:
        """Accepted ones first, then the shortest."""
        return not self.accepted, len(self.earlier) + len(self.steps), self.earlier, self.steps


@dataclass(frozen=True)
class Check:
    """The outcome of one search. ``closed`` says that no longer sequence could add anything."""

    name: str
    findings: tuple[Finding, ...]
    states: int
    steps_taken: int
    closed: bool
    differs: tuple[str, ...]
    """How responses fare otherwise than under keep-established: of DIFFERENCES."""

    @property
    def safe(self) -> bool:
        """Whether it differs from keep-established at most in which responses it refuses, and as what."""
        return not self.findings

    @property
    def sequences(self) -> int:
        """Sequences of one to MAX_FRAGMENTS fragments that the search stands for, of one response."""
        return sum(LETTERS**length for length in range(1, MAX_FRAGMENTS + 1))


_Known = tuple[str | None, str | None]
"""What is known of index 0 and 1: None before its first fragment, an identity, or the ID itself."""
_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Node:
    """A sequence to go on from; ``inherited`` is what was known when the response before it ended."""

    earlier: Steps
    inherited: _Known
    steps: Steps
    broken: frozenset[str]


@dataclass
class _Search:
    subject: Checkable
    findings: dict[str, Finding] = field(default_factory=dict)
    states: int = 0
    steps_taken: int = 0
    closed: bool = True
    differs: set[str] = field(default_factory=set)

    def run(self, responses: int) -> Check:
        ends: Iterable[tuple[_Known, Steps]] = [((None, None), ())]
        for _ in range(responses):
            ends = self._response(ends)
        return Check(
            self.subject.name,
            tuple(self.findings[name] for name in CHECKED_INVARIANTS if name in self.findings),
            self.states,
            self.steps_taken,
            self.closed,
            tuple(name for name in DIFFERENCES if name in self.differs),
        )

    def _response(self, earlier: Iterable[tuple[_Known, Steps]]) -> Iterable[tuple[_Known, Steps]]:
        """Search one response after each of the earlier ones; return the shortest way to each end."""
        ends: dict[_Key, tuple[_Known, Steps]] = {}
        level = [_Node(before, inherited, (), frozenset()) for inherited, before in earlier]
        seen: set[_Key] = set()
        for _ in range(MAX_FRAGMENTS):
            reached: list[_Node] = []
            for node in level:
                follow = self.subject.after(response_of(node.earlier) if node.earlier else None)
                for step in _next_steps(node):
                    taken = self._take(node, step, follow)
                    if taken is None or taken[0] in seen:
                        continue
                    key, next_node, known = taken
                    seen.add(key)
                    ends.setdefault(_end(known), (known, next_node.steps))
                    reached.append(next_node)
            self.states += len(reached)
            level = reached
        self.closed = self.closed and not level
        return ends.values()

    def _take(self, node: _Node, step: Step, follow: Next) -> tuple[_Key, _Node, _Known] | None:
        """Take one step; None where it refuses the response."""
        self.steps_taken += 1
        steps = (*node.steps, step)
        result, reference = follow(_body(steps)), _reference(steps)
        rows = result.timeline
        names: _Names = {
            row.incoming_alias: said.says for row, said in zip(rows, steps, strict=True) if row.incoming_alias
        }
        broken = node.broken
        if rows[-1].decision != "reject":
            broken |= set(_broken_by_step(rows, names, steps, node.earlier))
        at_end = set(_broken_at_end(result, reference, steps, node.earlier))
        self._note(node.earlier, steps, broken | at_end, result.outcome == "accepted")
        self._compare(result, reference)
        if rows[-1].decision == "reject":
            return None
        known = _both_known(result, names)
        refused = any(row.decision == "reject" for row in reference.timeline)
        other = ("refused", "refused") if refused else _both_known(reference, names)
        key = _state((*node.inherited, *known, *other), steps, strings_said(node.earlier))
        return (key, steps[0].index, broken), _Node(node.earlier, node.inherited, steps, broken), known

    def _note(self, earlier: Steps, steps: Steps, broken: Iterable[str], accepted: bool) -> None:
        for invariant in broken:
            finding = Finding(invariant, earlier, steps, accepted)
            held = self.findings.get(invariant)
            if held is None or finding.rank < held.rank:
                self.findings[invariant] = finding

    def _compare(self, result: Result, reference: Result) -> None:
        if (result.outcome, result.category) == (reference.outcome, reference.category):
            return
        if result.outcome == reference.outcome:
            self.differs.add("names another category")
        else:
            self.differs.add("refuses more" if reference.outcome == "accepted" else "accepts more")


def check_model(subject: Checkable, responses: int = 2) -> Check:
    """Search every sequence of up to MAX_FRAGMENTS fragments in each of so many consecutive responses."""
    return _Search(subject).run(responses)


@cache
def check_shipped(name: str) -> Check:
    """The search of a shipped rule set or counterfactual, made once a process."""
    return check_model(checkable_table(SHIPPED[name]) if name in SHIPPED else checkable_counterfactual(name))


def check_all(candidates: Iterable[RuleSet]) -> dict[str, Check]:
    """Search every shipped rule set, every counterfactual, and the candidates that are none of them."""
    own = [rules for rules in candidates if rules not in SHIPPED.values()]
    shipped, wrong = map(check_shipped, SHIPPED), map(check_shipped, COUNTERFACTUALS)
    checks = [*shipped, *(check_model(checkable_table(rules)) for rules in own), *wrong]
    return {check.name: check for check in checks}


def _stream(body: bytes) -> Stream:
    return Stream("", body, end="clean", framed="sse")


_body = lru_cache(maxsize=1 << 14)(response_of)


@lru_cache(maxsize=1 << 14)
def _reference(steps: Steps) -> Result:
    return _stream(_body(steps)).assemble(diagnose=True)


def _next_steps(node: _Node) -> Iterator[Step]:
    """Every next fragment up to symmetry: the first index is 0, IDs are named as they appear."""
    before = [*node.earlier, *node.steps]
    used = len(set(strings_said(before)))
    for index in (0, 1) if before else (0,):
        for says in (*KINDS, *SYMBOLS[: used + 1]):
            yield Step(index, says)


def _both_known(result: Result, names: _Names) -> _Known:
    return _known(result.timeline, names, 0), _known(result.timeline, names, 1)


def _known(rows: tuple[FragmentRow, ...], names: _Names, index: int) -> str | None:
    last = next((row for row in reversed(rows) if row.index == index), None)
    if last is None or last.next_identity is None:
        return None
    return names.get(last.id_alias, "an ID that nobody said") if last.id_alias else last.next_identity


def _state(facts: tuple[str | None, ...], steps: Steps, before: list[str]) -> _Key:
    """The facts with their IDs renamed, and of each ID in them where it was said."""
    order = dict.fromkeys(fact for fact in facts if fact in SYMBOLS)
    said = [
        (symbol in strings_said(steps, 0), symbol in strings_said(steps, 1), symbol in before)
        for symbol in order
    ]
    return *_renamed(facts), *said


def _renamed(facts: tuple[str | None, ...]) -> _Key:
    """IDs are only compared, so they are named by the order in which the facts hold them."""
    order = list(dict.fromkeys(fact for fact in facts if fact in SYMBOLS))
    return tuple(order.index(fact) if fact in order else fact for fact in facts)


def _end(known: _Known) -> _Key:
    """What a response leaves behind, the same for both numberings of its indices."""
    return min(_renamed(known), _renamed(known[::-1]), key=repr)


def _broken_by_step(
    rows: tuple[FragmentRow, ...], names: _Names, steps: Steps, earlier: Steps
) -> Iterator[str]:
    """Invariants that the last fragment breaks, from the identity before and after it."""
    row = rows[-1]
    before = next((r.id_alias for r in reversed(rows[:-1]) if r.index == row.index), None)
    if row.incoming_kind == "null" and row.previous_identity != "established":
        yield "null_keeps_nothing"
    if before is not None and row.id_alias is None:
        yield "established_cleared"
    elif before is not None and row.id_alias != before:
        yield "established_changed"
    if row.id_alias is not None and row.id_alias != before:
        said = names.get(row.id_alias)
        yield from _origin(said, steps, steps[-1].index, earlier)


def _broken_at_end(result: Result, reference: Result, steps: Steps, earlier: Steps) -> Iterator[str]:
    """Invariants that the outcome of the finished response breaks."""
    if result.outcome != "accepted":
        if result.calls:
            yield "refusal_yields_call"
        return
    if {call.index: (call.name, call.arguments) for call in result.calls} != sent_calls(steps):
        yield "call_mixed"
    for call in result.calls:
        yield from _origin(call.id, steps, call.index, earlier)
    if reference.outcome == "accepted" and _raw(reference) != _raw(result):
        yield "calls_moved"


def _origin(call_id: str | None, steps: Steps, index: int, earlier: Steps) -> Iterator[str]:
    """Say where an ID came from, unless it was said on its own index."""
    if call_id in strings_said(steps, index):
        return
    if call_id in strings_said(steps):
        yield "identity_borrowed"
    elif call_id in strings_said(earlier):
        yield "identity_inherited"
    else:
        yield "identity_invented"


def _raw(result: Result) -> list[tuple[int, str, str, str]]:
    return [(call.index, call.id, call.name, call.arguments) for call in result.calls]
