"""Cost grows with the bytes and with nothing else: work and memory are counted, not timed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from fragmentlab.assembler import Assembler, Limits, assemble
from tests.assembler.wire import call, chunk, fragment, response, sse
from tests.assembler.work import calls_made, peak_bytes

PIECE = "x" * 20


def one_long_call(fragments: int) -> bytes:
    middle = [fragment(0, None, None, PIECE) for _ in range(fragments)]
    return response(fragment(0, "A", "f", '{"a":"'), *middle, fragment(0, arguments='"}'))


def interleaved(fragments: int) -> bytes:
    middle = [fragment(at % 100, arguments=" ") for at in range(fragments)]
    return response(*[call(index, f"id{index}") for index in range(100)], *middle)


def many_in_one_event(fragments: int) -> bytes:
    return sse(chunk(call(), *[fragment(0, arguments=" ") for _ in range(fragments)]), chunk(finish="stop"))


def padded(fragments: int) -> bytes:
    chunks = [chunk(fragment(0, arguments=" ")) | {"obfuscation": "p" * (at % 30)} for at in range(fragments)]
    return sse(chunk(call()), *chunks, chunk(finish="stop"))


def split_name(fragments: int) -> bytes:
    names = [fragment(0, name="n" if at < 1000 else "") for at in range(fragments)]
    return response(call(name=""), *names)


def split_surrogates(fragments: int) -> bytes:
    pieces = ["\ud83d", "\ude00"] * (fragments // 2)
    body = json.dumps
    chunks = [chunk(fragment(0, arguments=piece)) for piece in pieces]
    return sse(
        chunk(call(arguments='{"a":"')),
        *map(body, chunks),
        chunk(fragment(0, arguments='"}')),
        chunk(finish="stop"),
    )


SHAPES = [one_long_call, interleaved, many_in_one_event, padded, split_name, split_surrogates]
WIDE = Limits.of({"event_bytes": 1 << 24})


@pytest.mark.parametrize("diagnose", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_work_is_linear_to_ten_thousand_fragments(shape: Callable[[int], bytes], diagnose: bool) -> None:
    """Ten times the fragments cost at most eleven times the calls."""
    small, large = shape(1_000), shape(10_000)
    assert assemble(large, limits=WIDE, diagnose=diagnose).outcome == "accepted"
    few = calls_made(lambda: assemble(small, limits=WIDE, diagnose=diagnose))
    assert calls_made(lambda: assemble(large, limits=WIDE, diagnose=diagnose)) <= 11 * few


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_reads_of_any_size(size: int) -> None:
    """Small reads cost a bounded amount each, however long the line they are part of has become."""

    def work(length: int) -> int:
        body = sse(chunk(call(arguments='{"a":"' + "x" * length + '"}')), chunk(finish="stop"))

        def run() -> None:
            assembler = Assembler()
            for at in range(0, len(body), size):
                assembler.feed(body[at : at + size])
            assert assembler.finish().outcome == "accepted"

        return calls_made(run)

    assert work(100_000) <= 11 * work(10_000)


def test_memory_of_a_long_call() -> None:
    """Ten times the fragments hold at most eleven times the memory, and a small multiple of what was sent."""
    small, large = one_long_call(1_000), one_long_call(10_000)
    held = peak_bytes(lambda: assemble(large))
    assert held <= 11 * peak_bytes(lambda: assemble(small))
    assert held <= 4 * len(large)


@pytest.mark.parametrize("line", [b": ", b"data: ", b"unknown: ", b"", b"event: ping\ndata: "])
def test_memory_of_an_endless_line(line: bytes) -> None:
    """A line that never ends holds at most the limit, whatever field it is."""
    assembler = Assembler(limits={"event_bytes": 1 << 16})
    reads = [b"x" * 4096] * 1000

    def run() -> None:
        assembler.feed(line)
        for read in reads:
            assembler.feed(read)

    assert peak_bytes(run) < 1 << 19


def test_nothing_is_kept_after_the_first_fault() -> None:
    """Once refused, more input holds no memory and does no decoding."""
    assembler = Assembler()
    assembler.feed(sse("{", done=False))
    assert assembler.fault is not None
    more = sse(*[chunk(fragment(0, "A", "f", PIECE))] * 5_000)
    assert calls_made(lambda: assembler.feed(more)) < 10
    assert peak_bytes(lambda: assembler.feed(more)) < 10_000


def test_arguments_past_the_limit_are_not_kept() -> None:
    """The diagnosing mode goes on counting, and drops what passed the limit."""
    assembler = Assembler(diagnose=True, limits={"arguments_bytes": 1000, "timeline_rows": 0})
    more = sse(*[chunk(fragment(0, "A", "f" if not at else "", "x" * 1000)) for at in range(500)], done=False)
    assert peak_bytes(lambda: assembler.feed(more)) < 4 * len(more)
    result = assembler.finish()
    assert [fault.category for fault in result.faults] == ["limit.arguments_bytes", "completion.truncated"]
    assert result.counts["arguments_bytes"] == 500_000


def test_a_huge_index_allocates_nothing() -> None:
    """An index is a label: a billion of them is refused, a sparse one costs one call."""
    assert peak_bytes(lambda: assemble(response(call(10**9)))) < 200_000
    assert peak_bytes(lambda: assemble(response(call(127)))) < 200_000


def test_diagnosis_is_bounded() -> None:
    """A stream of nothing but faults lists as many as the limit says and counts the rest."""
    body = response(*[fragment("x", "A")] * 500)
    result = assemble(body, diagnose=True, limits={"diagnosed_faults": 10, "timeline_rows": 20})
    assert (len(result.faults), len(result.timeline)) == (10, 20)
    assert (result.counts["omitted_faults"], result.counts["omitted_rows"]) == (490, 480)
