"""Faults in words: each true of its stream, each from the categories' file, and none with a raw value."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler import CATEGORIES, Fault, Result, assemble, explain
from fragmentlab.assembler.categories import FOLLOWING
from fragmentlab.assembler.explanations import case_of, remarks
from fragmentlab.commands.explain import explanations_page
from fragmentlab.corpus.streams import framing_of
from fragmentlab.corpus.vectors import load_vectors, vector_paths
from tests.assembler.wire import call, chunk, fragment, response, sse
from tests.assembler.work import calls_made

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
MESSAGE = {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]}
ERROR = {"error": {"code": 401}}


def named(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


SENTENCES: dict[str, tuple[bytes, str]] = {
    "another ID": (response(call(), fragment(0, "B")), "another ID, B, where A is known"),
    "a second call": (response(call(), call(0, "B")), "a second call, B, on the index of A"),
    "fresh IDs": (
        response(call(arguments="{"), *[fragment(0, i, None, " ") for i in ("B", "C")], fragment(0, None)),
        "a fresh ID in each fragment of one call",
    ),
    "empty ID": (response(call(), fragment(0, "", None, " ")), "the empty string where A is known"),
    "null first": (response(call(0, None)), "null where no ID is known"),
    "null after empty": (
        response(call(0, ""), fragment(0, None)),
        "null after an empty ID, so none is known",
    ),
    "arguments elsewhere, null": (
        response(call(arguments=""), fragment(1, None, None, "{}")),
        "arguments under another index than the call's opening",
    ),
    "arguments elsewhere, omitted": (
        response(call(arguments=""), fragment(1, arguments="{}")),
        "arguments under another index than the call",
    ),
    "a number": (response(call(0, 7)), "an ID of the type number, where only a string is defined"),
    "error instead": (sse(ERROR, done=False), "an error instead of an answer"),
    "error in mid-stream": (sse(chunk(call()), ERROR), "an error inside the stream"),
    "error field": (
        sse(chunk(call()), done=False) + b"error: {}\n\ndata: [DONE]\n\n",
        "no finish reason, and an error in a line that the standard ignores",
    ),
    "unframed error": (
        sse(chunk(call()), done=False) + b'{"error":{}}\n\n',
        "the stream is cut, and an error stands in a line that the standard ignores",
    ),
    "pings": (b"event: ping\n\n" * 3, "only pings came, and no answer"),
    "nothing": (b"<html></html>", "not one event came"),
    "cut": (sse(chunk(call()), done=False), "no finish reason and no [DONE]: the stream is cut"),
    "gzip": (gzip.compress(response(call())), "compressed bytes (gzip) instead of an event stream"),
    "message": (sse(MESSAGE), "a whole message instead of deltas: the answer was not streamed"),
    "named": (
        named("message_start", {"type": "x"}),
        "an event stream of another protocol: its events have names and no choices",
    ),
    "joined": (
        b'data: {"a":1}\ndata: {"b":2}\n\n',
        "several documents in one event: the blank lines between events were lost",
    ),
    "stripped": (response(), "finished with tool_calls, but no call came"),
    "stripped to null": (
        sse(chunk(tool_calls=None), chunk(finish="tool_calls")),
        "finished with tool_calls, but every tool_calls was null",
    ),
    "ends early": (response(call(arguments='{"a":')), "arguments that end in the middle"),
    "more follows": (response(call(arguments="{}"), fragment(0, arguments='{"a":1}')),
                     "whole arguments, followed by more"),
    "sent again": (
        response(call(arguments='{"a":'), fragment(0, arguments="1}"), fragment(0, arguments='{"a":1}')),
        "the arguments, then all of them once more",
    ),
    "null arguments": (response(call(arguments="null")), "null for arguments"),
    "encoded twice": (
        response(call(arguments='"{}"')),
        "a string for arguments: they were encoded twice",
    ),
    "delta of text": (
        sse({"choices": [{"delta": "x"}]}),
        "a delta that is neither an object nor null",
    ),
    "one call for a list": (
        sse({"choices": [{"delta": {"tool_calls": {}}}]}),
        "tool_calls that are neither an array nor null",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "headline"), SENTENCES.values(), ids=SENTENCES)
def test_the_headline_names_the_point(body: bytes, headline: str) -> None:
    """The first fault is put into the words that are true of it, with a cause and a next step."""
    result = assemble(body, diagnose=True)
    told = explain(result.faults[0], result)
    assert told.headline == headline
    assert told.causes and told.next_steps and not told.follows


def test_what_follows_from_the_first_fault_is_said_to() -> None:
    """`Send {}` is not advised after decoded arguments, nor `look for a limit` after an error."""
    decoded = assemble(response(call(0, "A", 1, {"a": 1})), diagnose=True)
    assert [explain(fault, decoded).follows for fault in decoded.faults] == [False, False, True]
    failed = assemble(sse(chunk(call()), ERROR, done=False), diagnose=True)
    first, last = (explain(fault, failed) for fault in failed.faults)
    assert (first.follows, last.follows, last.next_steps) == (False, True, (FOLLOWING,))


def test_without_a_timeline_the_words_are_still_true() -> None:
    """The mode that serves execution names no alias."""
    result = assemble(response(call(), fragment(0, "B")))
    assert explain(result.faults[0], result).headline == "another ID where one is known"


def test_a_name_that_repeats_itself_is_pointed_out() -> None:
    """Without known tools it is no fault, and said; with them the category says it."""
    body = response(call(name="look_up"), fragment(0, name="look_up"))
    assert len(remarks(assemble(body))) == 1
    assert remarks(assemble(response(call(name="look_up")))) == ()
    known = assemble(body, tools=["look_up"], diagnose=True)
    assert explain(known.faults[0], known).headline == "a known name, written several times in a row"
    assert remarks(known) == ()


def occurring() -> Iterator[tuple[str, Result]]:
    """Every vector, recording and reported file at hand, with its result."""
    for path in vector_paths([ROOT / "data" / "vectors"]):
        for vector in load_vectors(path).vectors:
            body = b"".join(vector.reads)
            yield (
                vector.id,
                assemble(body, tools=vector.known_tools, limits=vector.limits, end=vector.end, diagnose=True),
            )
    for pattern in ("captured/**/*.sse", "local-captures/**/*.sse", "found/*.sse"):
        for path in sorted(SHARED.glob(pattern)):
            body = path.read_bytes()
            yield str(path), assemble(body, framing=framing_of(body), diagnose=True)


def test_each_flag_combination_that_occurs_has_its_sentence() -> None:
    """Whatever flags a fault carries, its explanation is the case that names them, or another's more to the
    point."""
    seen: set[str] = set()
    for name, result in occurring():
        for fault in result.faults:
            assert explain(fault, result).headline
            if fault.flags:
                case = case_of(CATEGORIES[fault.category], _facts(fault))
                assert case is not None, (name, fault.category, fault.flags)
                assert fault.flags.keys() == case.when.keys(), (name, fault.category, fault.flags)
                seen |= fault.flags.keys()
    assert seen >= {"ends_early", "more_follows", "message_not_delta", "ignored_error_line", "field", "found",
                    "joined_events", "name_repeated"}  # fmt: skip


def _facts(fault: Fault) -> dict[str, Any]:
    return {"incoming_kind": fault.incoming_kind, **fault.flags}


def test_the_page_of_the_docs_is_current() -> None:
    """docs/explanations.md is what `fragmentlab maintain explanations` writes."""
    assert (ROOT / "docs" / "explanations.md").read_text(encoding="utf-8") == explanations_page()


def test_every_case_and_what_follows_speaks_of_what_there_is() -> None:
    """A case's placeholders can be filled, and what follows names categories or families."""
    families = {name.partition(".")[0] + "." for name in CATEGORIES}
    for category in CATEGORIES.values():
        assert {name for names in category.follows.values() for name in names} <= CATEGORIES.keys() | families
        for words in (category, *category.cases):
            assert words.headline and words.causes and words.next_steps
            assert "{" not in words.headline.format(known="", incoming="", incoming_kind="", compressed="")


def test_explaining_every_fault_is_linear() -> None:
    """Ten times the faults cost at most about ten times the work."""

    def work(fragments: int) -> int:
        result = assemble(response(*[fragment(0, f"id{n}") for n in range(fragments)]), diagnose=True)
        return calls_made(lambda: [explain(fault, result) for fault in result.faults])

    assert work(2000) <= 11 * work(200)
