"""What a gateway's author meets: reads in, a result out, misuse refused, and nothing heavy imported."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragmentlab.assembler import CATEGORIES, Assembler, Limits, Tools, assemble
from fragmentlab.assembler.limits import LIMIT_ENTRIES
from tests.assembler.wire import call, chunk, fragment, in_reads, response, sse

BODY = response(call(0, "A", "f", '{"a":'), fragment(0, None, None, '"é😀"}'), call(3, "B", "g"))


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_a_refused_response_counts_the_same_in_any_reads(seed: int, most: int) -> None:
    """Comments after the first fault count nowhere, wherever the reads end."""
    bad = sse(chunk(fragment(0, "A", "f", "")), chunk(fragment(0, "B")), chunk(finish="stop"))
    noted = b": before\n\n:\n" + bad.replace(b"\n\n", b"\n: in\n\n: between\n: two\n")
    assembler = Assembler()
    for read in in_reads(noted, seed, most):
        assembler.feed(read)
    result = assembler.finish()
    assert result.counts["comments"] == 6
    assert result == assemble(noted)


def test_one_call_form() -> None:
    """The one-call form gives what the incremental one gives."""
    assembler = Assembler()
    for read in in_reads(BODY, seed=1):
        assembler.feed(read)
    assert assembler.done
    assert assembler.finish() == assemble(BODY)


@given(st.integers(0, 1 << 20), st.integers(1, 60), st.booleans())
def test_any_reads(seed: int, most: int, diagnose: bool) -> None:
    """Any regrouping of reads gives the same result, timeline and counts included."""
    whole = assemble(BODY, diagnose=diagnose)
    assembler = Assembler(diagnose=diagnose)
    for read in in_reads(BODY, seed, most):
        assembler.feed(read)
    assert assembler.finish() == whole
    assert [(c.index, c.id, c.name, c.arguments) for c in whole.calls] == [
        (0, "A", "f", '{"a":"é😀"}'),
        (3, "B", "g", "{}"),
    ]


def test_fault_is_known_at_once() -> None:
    """A gateway can stop reading at the first fault, and what follows changes nothing."""
    assembler = Assembler()
    assembler.feed(sse(chunk(fragment(0, None)), done=False))
    fault = assembler.fault
    assert fault is not None
    assert (fault.category, fault.event, fault.fragment, fault.call) == ("identity.missing", 1, 1, 1)
    assembler.feed(BODY)
    result = assembler.finish(end="clean")
    assert (result.faults, result.calls, assembler.done) == ((fault,), (), False)


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda: Assembler(rules="strict"), "unknown rule set"),
        (lambda: Assembler(framing="ndjson"), "framing must be"),  # type: ignore[arg-type]
        (lambda: Assembler(limits={"event": 1}), "unknown limit"),
        (lambda: Assembler(limits={"events": -1}), "limit events must be"),
        (lambda: Assembler(limits={"events": True}), "limit events must be"),
        (lambda: Assembler(limits={"events": 1.5}), "limit events must be"),  # type: ignore[dict-item]
        (lambda: Assembler(tools="save_report"), "tools are a list"),
        (lambda: Assembler(tools={"name": "f"}), "tools are a list"),  # type: ignore[arg-type]
        (lambda: Assembler(tools=[3]), "a tool is"),  # type: ignore[list-item]
        (lambda: Assembler(tools=[{"schema": {}}]), "a tool is"),
        (lambda: Assembler(tools=[{"name": "f", "schema": {"type": "objekt"}}]), "not a valid JSON Schema"),
        (lambda: Assembler(tools=[{"name": "f", "schema": 7}]), "not a valid JSON Schema"),
        (lambda: Assembler().finish(end="closed"), "end must be"),  # type: ignore[arg-type]
    ],
)
def test_misuse(misuse: Any, message: str) -> None:
    """Bad configuration is one ValueError that says what may be given."""
    with pytest.raises(ValueError, match=message):
        misuse()


def test_a_response_ends_once() -> None:
    """After finish the assembler takes nothing more: its state belongs to one response."""
    assembler = Assembler()
    assembler.finish()
    with pytest.raises(ValueError, match="use a new Assembler"):
        assembler.feed(b"")
    with pytest.raises(ValueError, match="use a new Assembler"):
        assembler.finish()


def test_unknown_end_is_refused_before_the_response_ends() -> None:
    """A misspelt end is an error of the caller's, and the response can still be finished."""
    assembler = Assembler()
    assembler.feed(BODY)
    with pytest.raises(ValueError, match="end must be"):
        assembler.finish(end="ok")  # type: ignore[arg-type]
    assert assembler.finish().outcome == "accepted"


def test_results_are_frozen() -> None:
    """A result and its parts cannot be changed by who receives them."""
    result = assemble(response(call(0, "A"), fragment(0, "B")), diagnose=True)
    for part in (result, result.faults[0], result.timeline[0], assemble(BODY).calls[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.index = 1  # type: ignore[union-attr]


def test_tools_compiled_once() -> None:
    """Compiled tools serve many responses."""
    tools = Tools(["f", {"name": "g", "schema": {"required": ["a"]}}])
    results = [assemble(BODY, tools=tools) for _ in range(2)]
    assert [result.category for result in results] == ["proposal.arguments_schema"] * 2
    assert assemble(BODY, tools=Tools(["f", "g"])).outcome == "accepted"


@pytest.mark.parametrize(("limit", "entry"), LIMIT_ENTRIES.items())
def test_limits_are_data(limit: str, entry: dict[str, Any]) -> None:
    """Each limit has its default in the data file and names a category that is explained."""
    assert getattr(Limits(), limit) == entry["default"]
    assert entry["category"] is None or entry["category"] in CATEGORIES


PROBE = """
import sys
from fragmentlab.assembler import Assembler
assembler = Assembler()
assembler.feed(sys.stdin.buffer.read())
result = assembler.finish()
allowed = sys.stdlib_module_names | {"fragmentlab", "jiter", "typing_extensions", "__main__"}
loaded = {name.split(".")[0] for name in sys.modules} - before - allowed
inside = {name for name in sys.modules if name.startswith("fragmentlab.")} - set(
    name for name in sys.modules if name.startswith("fragmentlab.assembler"))
print(result.outcome, sorted(loaded), sorted(inside))
"""


def test_importable_alone() -> None:
    """The assembler loads the standard library and jiter, and no other part of the kit."""
    source = "import sys; before = {name.split('.')[0] for name in sys.modules}\n" + PROBE
    done = subprocess.run(
        [sys.executable, "-c", source], input=BODY, capture_output=True, timeout=60, check=True
    )
    assert done.stdout.decode().strip() == "accepted [] []"


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_buffer_that_is_used_again_is_a_read_too(kind: Any) -> None:
    """A view into the caller's buffer is taken as it was when fed, whatever is written into it later."""
    body = response(call(0, "a", "f", ""), *[fragment(0, None, None, piece) for piece in ("{", "}")])
    assembler, buffer = Assembler(), bytearray(7)
    for start in range(0, len(body), len(buffer)):
        size = len(body[start : start + len(buffer)])
        buffer[:size] = body[start : start + size]
        assembler.feed(memoryview(buffer)[:size] if kind is memoryview else buffer[:size])
        buffer[:] = b"#" * len(buffer)
    assert assembler.finish() == assemble(body)
