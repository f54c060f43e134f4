"""The suite's checks of any assembler: run on the kit's own and on the deliberately broken ones.

An assembler here is any function from the bytes of one response to a Result. Each check says which of the
PROMISES a result breaks, from what was on the wire alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fragmentlab.assembler import Result
from tests.assembler.wire import OMITTED, fragment, response

Assemble = Callable[[bytes], Result]
PROMISES = {
    "merged": "no call holds bytes of another, and none is left out",
    "invented": "no identity appears that was not on the wire of the same index",
    "cleared": "an established identity is never cleared or changed",
    "executed": "a refused or unfinished response yields no call",
    "refused": "a response that breaks no rule is accepted",
}
SAYS: tuple[Any, ...] = (OMITTED, None, "", "A", "B", 7, True, [], {})
"""All incoming kinds; of strings two, so that one can be another than is known."""


@dataclass(frozen=True)
class Sequence:
    """One response: per fragment (index, what it says of the ID)."""

    steps: tuple[tuple[int, Any], ...]

    def body(self, **end: Any) -> bytes:
        """The response's bytes. Each index's arguments list the positions of its own fragments."""
        first = {index: at for at, (index, _) in reversed(list(enumerate(self.steps)))}
        last = {index: at for at, (index, _) in enumerate(self.steps)}
        fragments = []
        for at, (index, says) in enumerate(self.steps):
            piece = '{"p":"' * (first[index] == at) + f"<{at}>" + '"}' * (last[index] == at)
            name = f"f{index}" if first[index] == at else OMITTED
            fragments.append(fragment(index, says, name, piece))
        return response(*fragments, **end)

    def calls(self) -> dict[int, tuple[str, str]]:
        """Index -> (name, arguments) of what was sent on it."""
        own: dict[int, list[int]] = {}
        for at, (index, _) in enumerate(self.steps):
            own.setdefault(index, []).append(at)
        return {
            index: (f"f{index}", '{"p":"' + "".join(f"<{at}>" for at in ats) + '"}')
            for index, ats in own.items()
        }

    def said(self, index: int) -> list[Any]:
        """What the fragments of one index say, in order."""
        return [says for i, says in self.steps if i == index]


def sequences(most: int) -> Iterator[Sequence]:
    """Every sequence of one to ``most`` fragments over two indices and all incoming kinds.

    Indices and IDs are only labels, so the first fragment is of index 0 and the first string is "A".
    """
    steps = list(itertools.product((0, 1), SAYS))
    for length in range(1, most + 1):
        for chosen in itertools.product(steps, repeat=length):
            strings = [says for _, says in chosen if says in ("A", "B")]
            if chosen[0][0] == 0 and strings[:1] != ["B"]:
                yield Sequence(chosen)


def broken_promises(sequence: Sequence, result: Result, is_allowed: Callable[[list[Any]], bool]) -> set[str]:
    """Which promises a finished response's result breaks; ``is_allowed`` judges one index's IDs in order."""
    if result.outcome != "accepted":
        broken = {"executed"} if result.calls else set()
        said = [sequence.said(index) for index in sequence.calls()]
        ids = [next((s for s in each if isinstance(s, str) and s), None) for each in said]
        if all(map(is_allowed, said)) and None not in ids and len(set(ids)) == len(ids):
            broken.add("refused")
        return broken
    broken = set()
    sent = sequence.calls()
    if {call.index: (call.name, call.arguments) for call in result.calls} != sent or len(result.calls) != len(
        sent
    ):
        broken.add("merged")
    for call in result.calls:
        said = sequence.said(call.index)
        strings = [says for says in said if isinstance(says, str) and says]
        if call.id not in strings:
            broken.add("invented")
        elif strings != [call.id] * len(strings):
            broken.add("cleared")
        if not is_allowed(said):
            broken.add("executed")
    if len({call.id for call in result.calls}) < len(result.calls):
        broken.add("executed")
    return broken


def is_allowed_by_design(said: list[Any]) -> bool:
    """docs/design.md, section 3 in words: null only after a nonempty ID, "" only before it, one string."""
    known = False
    for says in said:
        if says is None and not known:
            return False
        if says == "" and known:
            return False
        if says is not None and says is not OMITTED and not isinstance(says, str):
            return False
        known = known or bool(isinstance(says, str) and says)
    return known and len({says for says in said if isinstance(says, str) and says}) == 1


UNFINISHED: dict[str, dict[str, Any]] = {
    "no finish, no [DONE]": {"finish": None, "done": False},
    "no finish": {"finish": None},
    "length": {"finish": "length"},
    "content filter": {"finish": "content_filter"},
    "unknown finish": {"finish": "halted"},
}


def promises_broken_anywhere(assemble: Assemble, most: int = 2) -> set[str]:
    """All promises that an assembler breaks over every short sequence and every way to end unfinished."""
    broken: set[str] = set()
    for sequence in sequences(most):
        broken |= broken_promises(sequence, assemble(sequence.body()), is_allowed_by_design)
    whole = Sequence(((0, "A"), (1, "B"), (0, None)))
    for end in UNFINISHED.values():
        result = assemble(whole.body(**end))
        if result.outcome == "accepted" or result.calls:
            broken.add("executed")
    return broken
