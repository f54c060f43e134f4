"""Each shape is seen where it stands, and nowhere else."""

from __future__ import annotations

import json

import pytest

from fragmentlab.wire.observing import SHAPES, observe


def body(*deltas, finish="tool_calls", done=True, **fields):
    chunks = [{"choices": [{"index": 0, "delta": delta}], **fields} for delta in deltas]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **fields})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + (
        "data: [DONE]\n\n" if done else ""
    )


def fragment(index=0, name=None, arguments="", **fields):
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    return {"tool_calls": [{"index": index, "function": function, **fields}]}


FIRST = fragment(name="f", id="c1", type="function")
SECOND_CALL = fragment(index=1, name="g", id="c2", type="function")
REST = fragment(arguments="{}")
CASES = {
    "id omitted": body(FIRST, REST),
    "id null": body(FIRST, fragment(id=None)),
    "id empty": body(FIRST, fragment(id="")),
    "id repeated": body(FIRST, fragment(id="c1")),
    "id other": body(FIRST, fragment(id="c9")),
    "first id missing": body(fragment(name="f", type="function", id=None), REST),
    "one fragment": body(FIRST),
    "name null": body(FIRST, {"tool_calls": [{"index": 0, "function": {"name": None}}]}),
    "name empty": body(FIRST, fragment(name="")),
    "name repeated": body(FIRST, fragment(name="f")),
    "type null": body(FIRST, fragment(type=None)),
    "type repeated": body(FIRST, fragment(type="function")),
    "type missing": body(fragment(name="f", id="c1"), REST),
    "no index": body({"tool_calls": [{"id": "c1", "type": "function"}]}),
    "negative index": body(fragment(index=-1, id="c1")),
    "base above 0": body(fragment(index=1, name="f", id="c1"), fragment(index=1)),
    "arguments null": body(FIRST, fragment(arguments=None)),
    "arguments not text": body(FIRST, fragment(arguments={})),
    "interleaved": body(FIRST, SECOND_CALL, REST, fragment(index=1, arguments="{}")),
    "several in a chunk": body({"tool_calls": FIRST["tool_calls"] + SECOND_CALL["tool_calls"]}),
    "role repeated": body({"role": "assistant"}, FIRST | {"role": "assistant"}),
    "role null": body({"role": "assistant"}, FIRST | {"role": None}),
    "tool_calls null": body({"tool_calls": None}, FIRST),
    "legacy function_call": body(FIRST | {"function_call": {"name": "f"}}),
    "empty choices": 'data: {"choices": []}\n\n' + body(FIRST),
    "finish with fragment": 'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c"}]},'
    ' "finish_reason": "stop"}]}\n\n',
    "finish repeated": body(FIRST) + body(),
    "finish stop": body(FIRST, finish="stop"),
    "no finish": body(FIRST, finish=None),
    "response id changes": body(FIRST, id="r1") + body(id="r2"),
    "comments": ": ping\n\n" + body(FIRST),
    "no [DONE]": body(FIRST, done=False),
}
BASIC = {"id omitted"}


def test_every_shape_has_a_case():
    """The vocabulary is closed, and each word of it is proven below."""
    assert list(CASES) == list(SHAPES)


@pytest.mark.parametrize("shape", CASES)
def test_a_shape_is_seen(shape):
    """The stream shows the shape; a plain one shows nothing but omitted IDs."""
    assert shape in observe(CASES[shape].encode(), "sse")
    assert observe(CASES[shape].replace("\n", "\r\n").encode(), "sse") == observe(
        CASES[shape].encode(), "sse"
    )
    assert shape in BASIC or shape not in observe(body(FIRST, REST).encode(), "sse")


def test_streams_without_fragments_show_nothing():
    """Text answers and broken events have no shape of a tool call."""
    assert observe(body({"content": "hi"}).encode(), "sse") == frozenset()
    assert observe(b"data: {\n\ndata: 5\n\ndata: [1]\n\n", "sse") == frozenset()


def test_json_lines_have_no_end_marker_to_miss():
    """A recording as JSON Lines says nothing of [DONE]."""
    line = json.dumps({"choices": [{"delta": FIRST, "finish_reason": "stop"}]})
    assert "no [DONE]" not in observe(line.encode(), "jsonl")
