"""Fragments to calls: indices, names, arguments and tolerances that the identity rules do not decide."""

from __future__ import annotations

from typing import Any

import pytest

from fragmentlab.assembler import assemble
from tests.assembler.wire import OMITTED, call, chunk, fragment, response, sse


def outcome(*fragments: Any, **options: Any) -> str | None:
    """The category, or the outcome where there is none."""
    result = assemble(response(*fragments), **options)
    return result.category or result.outcome


INDEX = {
    "0": (0, "accepted"),
    "127": (127, "accepted"),
    "-0": (-0, "accepted"),
    "128": (128, "fragment.index_out_of_range"),
    "10**30": (10**30, "fragment.index_out_of_range"),
    "-1": (-1, "fragment.index_invalid"),
    "-10**30": (-(10**30), "fragment.index_invalid"),
    "1.0": (1.0, "fragment.index_invalid"),
    "true": (True, "fragment.index_invalid"),
    "text": ("0", "fragment.index_invalid"),
    "array": ([0], "fragment.index_invalid"),
    "null": (None, "fragment.index_missing"),
    "omitted": (OMITTED, "fragment.index_missing"),
}


@pytest.mark.parametrize(("index", "expected"), INDEX.values(), ids=INDEX.keys())
def test_index(index: Any, expected: str) -> None:
    """An index is an integer from 0 to 127, never guessed and never converted."""
    assert outcome(call(index)) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("-0", None), ("1e0", "fragment.index_invalid"), ("1.0", "fragment.index_invalid")]
)
def test_index_as_written(text: str, expected: str | None) -> None:
    """Minus zero is zero; a number written as a float is none of the integers."""
    item = '{"index":%s,"id":"A","function":{"name":"f","arguments":"{}"}}'
    event = '{"choices":[{"delta":{"tool_calls":[' + item + "]}}]}"
    assert assemble(sse(event % text, chunk(finish="stop"))).category == expected


def test_output_is_ordered_by_index() -> None:
    """Sparse indices that come in any order are accepted, and leave in ascending order."""
    result = assemble(response(call(5, "C"), call(1, "A"), call(127, "Z")))
    assert [c.index for c in result.calls] == [1, 5, 127]
    assert [c.alias for c in result.calls] == ["B", "A", "C"]
    assert result.tolerances["sparse_index"] == 1


def test_by_default_every_index_may_hold_a_call() -> None:
    """As many calls as there are indices are within the default limit."""
    assert len(assemble(response(*(call(index, f"id-{index}") for index in range(128)))).calls) == 128


FUNCTION = {
    "function missing": ({}, None),
    "function null": ({"function": None}, None),
    "name null": ({"function": {"name": None}}, None),
    "arguments null": ({"function": {"arguments": None}}, None),
    "function text": ({"function": "f"}, "fragment.invalid"),
    "function array": ({"function": []}, "fragment.invalid"),
    "function false": ({"function": False}, "fragment.invalid"),
    "name number": ({"function": {"name": 1}}, "fragment.name_type"),
    "arguments object": ({"function": {"arguments": {}}}, "fragment.arguments_type"),
    "arguments false": ({"function": {"arguments": False}}, "fragment.arguments_type"),
    "both wrong": ({"function": {"name": [], "arguments": []}}, "fragment.name_type"),
    "type null": ({"type": None}, None),
    "type empty": ({"type": ""}, None),
    "type in capitals": ({"type": "FUNCTION"}, None),
    "other type": ({"type": "custom"}, "protocol.tool_type"),
    "type number": ({"type": 1}, "protocol.tool_type"),
    "type false": ({"type": False}, "protocol.tool_type"),
}


@pytest.mark.parametrize(("fields", "category"), FUNCTION.values(), ids=FUNCTION.keys())
def test_function(fields: dict[str, Any], category: str | None) -> None:
    """Null and missing add nothing; another JSON type is refused."""
    result = assemble(response(call(), fragment(0, **fields)))
    assert result.category == category
    if category is None:
        assert (result.calls[0].name, result.calls[0].arguments) == ("f", "{}")


@pytest.mark.parametrize("item", [None, 3, "f", [], True])
def test_fragment_not_an_object(item: Any) -> None:
    """A fragment that is no object is refused, null too."""
    assert outcome(call(), item) == "fragment.invalid"


def test_order_within_a_fragment() -> None:
    """Of several faults in one fragment the first in order is primary; diagnosing lists them all."""
    bad = {"index": 0, "id": 7, "type": "custom", "function": {"name": 1, "arguments": 2}}
    result = assemble(response(bad), diagnose=True)
    assert [fault.category for fault in result.faults] == [
        "identity.unsupported_type",
        "protocol.tool_type",
        "fragment.name_type",
        "fragment.arguments_type",
        "proposal.id_missing",
        "proposal.name_missing",
    ]
    assert assemble(response(bad)).category == "identity.unsupported_type"


def test_name_pieces_are_joined() -> None:
    """Name pieces concatenate; a known name repeated is unknown, with a flag that says so."""
    assert outcome(call(name="look"), fragment(0, name="_up"), tools=["look_up"]) == "accepted"
    result = assemble(response(call(name="look_up"), fragment(0, name="look_up")), tools=["look_up"])
    assert (result.category, result.faults[0].flags) == ("proposal.name_unknown", {"name_repeated": True})


@pytest.mark.parametrize(
    ("pieces", "category"),
    [
        (("\ud83d", "\ude00"), None),
        (("\ud83d", "", "\ude00"), None),
        (("\ude00", "\ud83d"), "invalid_unicode"),
        (("\ud83d",), "invalid_unicode"),
    ],
)
def test_surrogate_halves(pieces: tuple[str, ...], category: str | None) -> None:
    """Halves split over fragments join, in names and in arguments; one left alone is refused."""
    name = [fragment(0, name=piece) for piece in pieces]
    assert outcome(call(name="f"), *name) == (f"proposal.name_{category}" if category else "accepted")
    inside = [fragment(0, arguments=piece) for piece in pieces]
    ends = call(arguments='{"a":"'), fragment(0, arguments='"}')
    assert outcome(ends[0], *inside, ends[1]) == (
        f"proposal.arguments_{category}" if category else "accepted"
    )


def test_arguments_bytes_of_a_joined_pair() -> None:
    """A pair of halves counts the four bytes that it becomes, exactly at the limit."""
    fragments = [call(arguments='{"a":"\ud83d'), fragment(0, arguments='\ude00"}')]
    assert outcome(*fragments, limits={"arguments_bytes": 12}) == "accepted"
    assert outcome(*fragments, limits={"arguments_bytes": 11}) == "limit.arguments_bytes"


def test_arguments_bytes_of_halves_apart() -> None:
    """Halves with text between them join to nothing, and count three bytes each."""
    pieces = [call(arguments="\ud83d"), fragment(0, arguments="x"), fragment(0, arguments="\ude00")]
    assert assemble(response(*pieces)).counts["arguments_bytes"] == 7


ARGUMENTS = {
    "": "proposal.arguments_empty",
    " ": "proposal.arguments_invalid_json",
    "{": "proposal.arguments_invalid_json",
    '{"a":NaN}': "proposal.arguments_invalid_json",
    '{"a":Infinity}': "proposal.arguments_invalid_json",
    "{}{}": "proposal.arguments_invalid_json",
    "[]": "proposal.arguments_not_object",
    "null": "proposal.arguments_not_object",
    '{"a":1,"a":2}': "proposal.arguments_duplicate_key",
    '{"x":{"a":1,"\\u0061":2}}': "proposal.arguments_duplicate_key",
    '{"a":"\\ud800"}': "proposal.arguments_invalid_unicode",
    '{"a":"\\ud800","a":1}': "proposal.arguments_invalid_unicode",
    "[" * 65 + "]" * 65: "proposal.arguments_not_object",
    '{"a":' * 65 + "1" + "}" * 65: "limit.depth",
    '{"a":' * 64 + "1" + "}" * 64: "accepted",
    '{"a":1e309}': "limit.number",
    '{"a":%s}' % ("1" * 4301): "limit.number",
    '{"a":0.%s}' % ("1" * 4299): "accepted",
    '{"a":1e-999}': "accepted",
    ' {"a": 1}\n': "accepted",
}


@pytest.mark.parametrize(("arguments", "expected"), ARGUMENTS.items(), ids=range(len(ARGUMENTS)))
def test_arguments(arguments: str, expected: str) -> None:
    """Arguments are one JSON object without doubt, or their category says why not."""
    assert outcome(call(arguments=arguments)) == expected


def test_calls_are_checked_by_ascending_index() -> None:
    """A fault of a later index comes after one of an earlier index, whatever came first on the wire."""
    assert outcome(call(2, "A", ""), call(1, "B", arguments="")) == "proposal.arguments_empty"
    result = assemble(response(call(2, "A"), call(1, "A")))
    assert (result.category, result.faults[0].call) == ("proposal.id_duplicate", 1)


def test_limit_of_calls() -> None:
    """One call more than the limit is refused at its first fragment."""
    assert outcome(call(0, "A"), call(1, "B"), limits={"calls": 2}) == "accepted"
    assert outcome(call(0, "A"), call(1, "B"), fragment(2), limits={"calls": 2}) == "limit.calls"


def test_null_continuations_are_counted() -> None:
    """Exactly the nulls that met an established identity count, and padding is counted by field."""
    nulls = [fragment(0, None, None, None, type=None), fragment(0, None, function=None)]
    result = assemble(response(call(), *nulls))
    assert result.counts["null_continuations"] == 2
    assert result.tolerances == {
        "null_padding.arguments": 1,
        "null_padding.function": 1,
        "null_padding.id": 2,
        "null_padding.name": 1,
        "null_padding.type": 1,
    }


def test_repeated_id_is_a_tolerance() -> None:
    """The same ID on every fragment is kept once and counted."""
    result = assemble(response(call(0, "A"), fragment(0, "A"), fragment(0, "A")))
    assert (result.calls[0].id, result.tolerances["repeated_id"]) == ("A", 2)
