"""A state machine: the assembler, fed in random reads, against the independent oracle after every step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fragmentlab.assembler import Assembler
from tests.assembler.oracle import Oracle
from tests.assembler.wire import OMITTED, chunk, fragment, in_reads, sse

INDICES = st.sampled_from([0, 0, 0, 1, 1, 7, 127, 128, -1, None, True, 1.0, "0", 10**9])
IDS = st.sampled_from([OMITTED, OMITTED, None, None, "", "A", "A", "A", "B", "null", 0, True, [], {}, 1.5])
NAMES = st.sampled_from([OMITTED, None, "", "look", "_up", "f"])
PIECES = st.sampled_from([OMITTED, None, "", "{", "}", '{"a":', "1}", "{}", '"é😀"', "[]"])


class Response(RuleBasedStateMachine):
    """One response: fragments, a finish, the end marker, in any order; every read boundary is arbitrary."""

    @initialize(tools=st.sampled_from([None, [], ["f", "look_up"]]))
    def start(self, tools: list[str] | None) -> None:
        self.assembler = Assembler(tools=tools)
        self.oracle = Oracle(tools=tools)
        self.done = False

    def send(self, *events: Any, done: bool = False, seed: int) -> None:
        for read in in_reads(sse(*events, done=done), seed):
            self.assembler.feed(read)

    @precondition(lambda self: not self.done)
    @rule(index=INDICES, id=IDS, name=NAMES, piece=PIECES, seed=st.integers(0, 99))
    def fragment(self, index: Any, id: Any, name: Any, piece: Any, seed: int) -> None:
        sent = fragment(index, id, name, piece)
        self.send(chunk(sent), seed=seed)
        self.oracle.add(sent)

    @precondition(lambda self: not self.done)
    @rule(index=st.integers(0, 2), seed=st.integers(0, 99))
    def whole_call(self, index: int, seed: int) -> None:
        sent = [fragment(index, f"id{index}", "f", '{"a":'), fragment(index, None, None, "1}")]
        self.send(chunk(sent[0]), chunk(sent[1]), seed=seed)
        for each in sent:
            self.oracle.add(each)

    @precondition(lambda self: not self.done)
    @rule(reason=st.sampled_from(["stop", "tool_calls"]), seed=st.integers(0, 99))
    def finish(self, reason: str, seed: int) -> None:
        self.send(chunk(finish=reason), seed=seed)
        if self.oracle.category is None and self.oracle.finish != "tool_calls":
            self.oracle.finish = reason

    @rule(seed=st.integers(0, 99))
    def noise(self, seed: int) -> None:
        for read in in_reads(b": note\r\n\r\nevent: ping\ndata: {}\n\n", seed):
            self.assembler.feed(read)

    @precondition(lambda self: not self.done)
    @rule(seed=st.integers(0, 99))
    def end_marker(self, seed: int) -> None:
        self.send(done=True, seed=seed)
        self.done = True

    @invariant()
    def first_fault_agrees(self) -> None:
        if hasattr(self, "assembler"):
            fault = self.assembler.fault
            assert (fault.category if fault else None) == self.oracle.category

    end = "clean"

    def teardown(self) -> None:
        if hasattr(self, "assembler"):
            result = self.assembler.finish(end=self.end)  # type: ignore[arg-type]
            calls = [(c.index, c.id, c.name, c.arguments) for c in result.calls]
            assert (result.outcome, result.category, calls) == self.oracle.end(self.done, self.end)


class Aborted(Response):
    """The same, where the transport always breaks."""

    end = "aborted"


TestCleanEnd = Response.TestCase
TestAbortedEnd = Aborted.TestCase
TestCleanEnd.settings = settings(max_examples=200, stateful_step_count=12, deadline=None)
TestAbortedEnd.settings = settings(max_examples=50, stateful_step_count=8, deadline=None)
