"""What is written as an event stream is read back the same, and other modules know nothing of its lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragmentlab
from fragmentlab.assembler import assemble
from fragmentlab.wire.events import DONE, body, event, has_comments, looks_like_events, payloads
from fragmentlab.wire.fragments import choices_of, chunk, delta, fragment, fragments_of, pieces

_DATA_LINE = re.compile(r"(?<![\w` ])data:(?!image)")
FIRST = fragment(0, {"name": "f", "arguments": ""}, id="c1", type="function")
CALL = [chunk(delta(FIRST)), chunk(delta(fragment(0, {"arguments": "{}"}, id=None))), chunk({}, "tool_calls")]


@pytest.mark.parametrize(
    ("data", "name", "written"),
    [
        ("[DONE]", None, DONE),
        (b"\xff", None, b"data: \xff\n\n"),
        ("a\nb", "ping", b"event: ping\ndata: a\ndata: b\n\n"),
        ({"a": "é"}, None, 'data: {"a":"é"}\n\n'.encode()),
        ({"a": "\ud800"}, None, b'data: {"a":"\\ud800"}\n\n'),
    ],
)
def test_event(data, name, written):
    """An event is its name, a line for each line of its data, and a blank line."""
    assert event(data, name) == written


def test_a_written_call_is_accepted():
    """The chunks that the kit makes are a response that the assembler accepts."""
    assert assemble(body(CALL), end="clean").outcome == "accepted"


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), max_size=5))
def test_events_are_read_as_written(texts):
    """The data of each event comes back, whatever it says."""
    assert [data.decode() for data in payloads(body(texts, done=False), "sse")] == texts


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b"data:1\r\rdata: 2\r\ndata:3", [b"1", b"2\n3"]),
        (b"\xef\xbb\xbfevent: x\ndata: 1\n\n: comment\n\ndata\n\n", [b"1"]),
        (b"", []),
    ],
)
def test_payloads_of_any_line_ends(text, data):
    """Line ends, a byte order mark and a cut last event are read as the assembler reads them."""
    assert list(payloads(text, "sse")) == data


def test_payloads_of_json_lines():
    """Each line of JSON Lines is one event's data."""
    assert list(payloads(b'{"a":1}\n\n{"b":2}', "jsonl")) == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize(
    ("text", "events", "comments"),
    [
        (b"data: {}\n\n", True, False),
        (b"\xef\xbb\xbfdata: [DONE]", True, False),
        (b": ping\r\rdata:{", True, True),
        (b"some data: {}", False, False),
        (b"data: words\n\n", False, False),
        (b"", False, False),
    ],
)
def test_recognising(text, events, comments):
    """An event stream is told by a data line that could be JSON, wherever its lines end."""
    assert (looks_like_events(text), has_comments(text)) == (events, comments)


@pytest.mark.parametrize(
    "other",
    [
        None,
        1,
        "choices",
        [],
        {},
        {"choices": {}},
        {"choices": [None, {"delta": []}, {"delta": {"tool_calls": {}}}]},
    ],
)
def test_walks_pass_over_what_is_no_chunk(other):
    """Whatever a document is, the walks end without a fragment."""
    assert list(fragments_of(other)) == []
    assert all(isinstance(choice, dict) for choice in choices_of(other))


@given(st.text(max_size=40), st.one_of(st.integers(1, 9), st.lists(st.integers(1, 9))), st.booleans())
def test_pieces_join_to_the_text(text, sizes, halves):
    """Pieces are the text, cut; halves of a surrogate pair join again."""
    joined = "".join(pieces(text, sizes, halves=halves))
    assert joined.encode("utf-16", "surrogatepass").decode("utf-16") == text


def _constants(tree: ast.AST) -> Iterator[str]:
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docs:
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("latin-1")


def _walks(tree: ast.AST) -> bool:
    """Whether fragments are taken from a delta."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "delta.get"
        and ast.unparse(node.args[0]) == "'tool_calls'"
        for node in ast.walk(tree)
    )


def test_the_wire_form_has_one_home():
    """Only wire/ and the assembler know data lines and the walk to the fragments of a chunk.

    What importing searches in other text (logs, tables, archives) is no event stream yet.
    """
    lib = Path(fragmentlab.__file__).parent
    knows, walks = set(), set()
    for path in lib.rglob("*.py"):
        module = path.relative_to(lib).as_posix()
        if module.startswith("assembler/"):
            continue
        tree = ast.parse(path.read_bytes())
        if any(_DATA_LINE.search(text) for text in _constants(tree)):
            knows.add(module)
        if _walks(tree):
            walks.add(module)
    assert {module for module in knows if not module.startswith("corpus/importing/")} == {"wire/events.py"}
    assert walks == {"wire/fragments.py", "wire/observing.py"}
