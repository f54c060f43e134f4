"""What is tolerated is counted, what it hides is flagged, in any reads."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest

from fragmentlab.assembler import Assembler, assemble
from tests.assembler.wire import call, chunk, fragment, in_reads, response, sse

WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant"}, "finish_reason": "stop"}]}
REPEATED = sse(WHOLE, done=False)
PROGRESS = b'event: progress\ndata: {"percent": 1}\n\n'
OPEN, FINISH = sse(chunk(call()), done=False), sse(chunk(finish="tool_calls"))
COUNTED: dict[str, tuple[bytes, dict[str, int]]] = {
    "named event": (OPEN + PROGRESS * 2 + FINISH, {"named_event": 2}),
    "a bare JSON line": (OPEN + b'{"error":1}\n\n' + FINISH, {"ignored_line": 1}),
    "an error field": (OPEN + b"error: x\n\nerror\n\n" + FINISH, {"ignored_line": 2}),
    "no other field": (OPEN + b"errors: x\n\n [1]\n\n" + FINISH, {}),
    "repeated message": (OPEN + REPEATED + FINISH, {"repeated_message": 1, "repeated_finish": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "counted"), COUNTED.values(), ids=COUNTED)
def test_counted_in_any_reads(body: bytes, counted: dict[str, int]) -> None:
    """The stream is accepted, and each oddity is counted once."""
    assert assemble(body, end="clean").tolerances == counted
    for seed in range(5):
        assembler = Assembler()
        for read in in_reads(body, seed, most=9):
            assembler.feed(read)
        assert assembler.finish("clean") == assemble(body, end="clean")


FLAGGED: dict[str, tuple[bytes, str, dict[str, Any]]] = {
    "message": (sse(WHOLE), "protocol.not_chat_completions", {"message_not_delta": True}),
    "text completion": (sse({"choices": [{"text": "x"}]}), "protocol.not_chat_completions", {}),
    "named only": (PROGRESS, "protocol.not_chat_completions", {}),
    "error line": (OPEN + b"error: x\n", "completion.truncated", {"ignored_error_line": True}),
    "error line, cut": (OPEN + b'{"error"', "completion.truncated", {"ignored_error_line": True}),
    "gzip": (gzip.compress(OPEN), "completion.truncated", {"compressed": "gzip"}),
    "cut": (response(call(arguments='{"a":"\\u00')), "proposal.arguments_invalid_json", {"ends_early": True}),
    "more": (response(call(arguments="{} {}")), "proposal.arguments_invalid_json", {"more_follows": True}),
    "neither": (response(call(arguments="{a}")), "proposal.arguments_invalid_json", {}),
    "null": (response(call(arguments="null")), "proposal.arguments_not_object", {"found": "null"}),
    "root": (sse("[]"), "event.invalid_chunk", {"field": "root"}),
    "choice": (sse({"choices": [1]}), "event.invalid_chunk", {"field": "choice"}),
    "function": (response(fragment(0, "A", function=1)), "fragment.invalid", {"field": "function"}),
}


@pytest.mark.parametrize(("body", "category", "flags"), FLAGGED.values(), ids=FLAGGED)
def test_flagged(body: bytes, category: str, flags: dict[str, Any]) -> None:
    """The first fault carries the flags that its explanation needs, in either mode and any reads."""
    for diagnose in (False, True):
        assembler = Assembler(diagnose=diagnose)
        for read in in_reads(body, 3, most=4):
            assembler.feed(read)
        fault = assembler.finish().faults[0]
        assert (fault.category, fault.flags) == (category, flags)


def test_the_first_named_event_is_the_fault_before_how_the_stream_ended() -> None:
    """Its ordinal is told, and the transport's end comes after it."""
    result = assemble(b"event: ping\ndata: 1\n\n" + PROGRESS * 2, end="aborted", diagnose=True)
    assert [(fault.category, fault.event) for fault in result.faults] == [
        ("protocol.not_chat_completions", 2),
        ("completion.transport_error", None),
    ]


def test_endless_data_lines_hold_no_more_than_the_limit() -> None:
    """Line feeds that join data lines count, so lines without data end too."""
    assembler = Assembler(limits={"event_bytes": 1 << 16})
    tracemalloc.start()
    for _ in range(40):
        assembler.feed(b"data\n" * 4096)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert assembler.fault is not None and assembler.fault.category == "limit.event_bytes"
    assert peak < 1 << 21


def test_only_an_accepted_response_is_executable() -> None:
    """Neither a refused one nor one without calls is, under any rule set."""
    text = sse(chunk(content="x"), chunk(finish="stop"))
    bodies = {"accepted": response(call()), "rejected": response(call(0, None)), "no_calls": text}
    for outcome, body in bodies.items():
        result = assemble(body)
        assert (result.outcome, result.executable) == (outcome, outcome == "accepted")
        assert json.loads(json.dumps(result.to_json()))["executable"] is result.executable
