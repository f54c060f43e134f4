"""Taking repeated chunks by template gives what the full order of checks gives, whatever differs."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragmentlab.assembler import Assembler, Result
from fragmentlab.assembler.calls import CallState
from fragmentlab.assembler.continuation import Template, template_of

PIECES = ["", "a", '"city":', '\\"', "{", "é", "\ufffd", "日本", '":', "}}]}", "\t", "\\", "x" * 40, '"}}]},']
EXTRA: list[dict[str, Any]] = [
    {},
    {"usage": None, "obfuscation": "abc"},
    {"obfuscation": "x y"},
    {"arguments": "decoy"},
    {"model": "a:b", "p": "1"},
    {"error": None},
    {"created": 17, "obfuscation": "abc"},
    {"p": "ab", "created": 9, "model": "m"},
]
FRAGMENT_EXTRA: list[dict[str, Any]] = [
    {},
    {"id": None},
    {"id": None, "type": None},
    {"id": "call_1"},
    {"type": "function"},
    {"id": ""},
    {"id": "call_2"},
]
INSERTS = [
    b'"', b"\\", b"{", b"}", b"[", b",", b":", b" ",
    b"\\u0061", b'"id":1,', b'"arguments":"x",', b"\xff", b"\t",
    b"\r", b'"error":1,', b'"index":0,', b"null", b"\xc3\xa9",
]  # fmt: skip


def chunk(
    piece: str, extra: dict[str, Any], fragment: dict[str, Any], ensure_ascii: bool, spaced: bool
) -> bytes:
    function = {"arguments": piece, **({"name": None} if "type" in fragment else {})}
    delta = {"tool_calls": [{"index": 0, **fragment, "function": function}]}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    separators = (", ", ": ") if spaced else (",", ":")
    root = (
        {"id": "r", "choices": [choice], **extra}
        if "p" in extra
        else {**extra, "id": "r", "choices": [choice]}
    )
    return json.dumps(root, ensure_ascii=ensure_ascii, separators=separators).encode()


def outcome(reads: list[bytes], lessons: int, limits: dict[str, int]) -> Result:
    assembler = Assembler(tools=["t"], limits=limits)
    assembler._lessons = lessons
    for read in reads:
        assembler.feed(read)
    return assembler.finish("clean")


def vary(extra: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Give some of the members other values, as padding and timestamps have in every chunk."""
    values = {str: ["a", "b c", "", "é", '"', "x" * 30], int: [0, 1, 17, -1, 1.5, 10**30]}
    return {key: rng.choice(values.get(type(value), [value])) for key, value in extra.items()}


def same(extra: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Keep every value."""
    return extra


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], dict[str, int]]:
    """A call in many alike chunks, one of which was changed by hand, cut into reads."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    extra, fragment = rng.choice(EXTRA), rng.choice(FRAGMENT_EXTRA)
    style = (rng.random() < 0.5, rng.random() < 0.3)
    varied = rng.choice((same, vary))
    texts = [
        chunk(rng.choice(PIECES), varied(extra, rng), fragment, *style) for _ in range(rng.randrange(2, 9))
    ]
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(texts))
        text = texts[at]
        place = rng.randrange(len(text))
        size = rng.choice((0, 0, 1, 7))
        texts[at] = text[:place] + rng.choice((*INSERTS, b"")) + text[place + size :]
    if rng.random() < 0.3:
        texts.insert(
            rng.randrange(len(texts)), chunk("q", rng.choice(EXTRA), rng.choice(FRAGMENT_EXTRA), *style)
        )
    if rng.random() < 0.3:
        texts.insert(rng.randrange(len(texts) + 1), b"[DONE]")
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "t", "arguments": "{"}}
    head = json.dumps({"id": "r", "choices": [{"delta": {"tool_calls": [first]}}]}).encode()
    tail = b'{"choices":[{"delta":{},"finish_reason":"stop"}]}'
    body = b"".join(b"data: " + text + b"\n\n" for text in (head, *texts, tail, b"[DONE]"))
    limits = rng.choice(
        ({}, {}, {"events": rng.randrange(1, 12)}, {"arguments_bytes": rng.randrange(60)}, {"depth": 8})
    )
    cuts = sorted(rng.randrange(len(body)) for _ in range(rng.choice((0, 3))))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)], limits


@given(streams())
def test_a_template_changes_nothing(drawn: tuple[list[bytes], dict[str, int]]) -> None:
    """Outcome, fault, calls, counts and tolerances are the same with templates and without any."""
    reads, limits = drawn
    assert outcome(reads, 8, limits) == outcome(reads, 0, limits)


def test_templates_are_used() -> None:
    """The property above is about something: most chunks of a plain stream go by template."""
    body = b"".join(b"data: " + chunk(str(n), {"p": "abc"}, {}, False, False) + b"\n\n" for n in range(50))
    fragment = b'{"index":0,"id":"a","function":{"name":"t"}}'
    first = b'data: {"id":"r","choices":[{"delta":{"tool_calls":[' + fragment + b"]}}]}\n\n"
    assembler = Assembler()
    assembler.feed(first + body)
    assert assembler._template is not None
    assert assembler._template.hits == 49


def call_with(piece: str) -> CallState:
    call = CallState(1, 0)
    call.arguments.append(piece)
    return call


PLAIN = chunk("abc", {"obfuscation": "xyz"}, {}, False, False)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(b'"id"', b'"\\u0069d"'),
        PLAIN.replace(b'"obfuscation":"xyz"', b'"arguments":"abc"'),
        PLAIN.replace(b'"arguments"', b'"\\u0061rguments"'),
        PLAIN.replace(b'"abc"', b'"' + b"x" * 5000 + b'"'),
        PLAIN.replace(b'"arguments":"abc"', b'"arguments" : "abc"'),
    ],
)
def test_no_template_where_the_place_of_the_arguments_is_not_certain(text: bytes) -> None:
    """A second key of that name, an escaped spelling, unusual blanks or a very long piece make none."""
    assert template_of(PLAIN, call_with("abc"), {}) is not None
    assert template_of(text, call_with("abc"), {}) is None


@pytest.mark.parametrize("key", ["id", "error", "object", "usage", "choices"])
def test_padding_never_hides_a_deciding_key(key: str) -> None:
    """The last member's value may differ only where nobody decides by its key."""
    text = PLAIN.replace(b"obfuscation", key.encode())
    template = template_of(text, call_with("abc"), {})
    assert isinstance(template, Template)
    events = [(None, text.replace(b"xyz", b"uvw"), False), (None, text, False)]
    assert template.pieces(events, 0, 2) == []
    assert template.pieces(events, 1, 2) == ["abc"]


def test_what_varies_is_learned_from_the_last_template() -> None:
    """A timestamp that changed makes the next template fit any whole number there, and nothing else."""
    one, two = (chunk("abc", {"created": created, "p": "x"}, {}, False, False) for created in (1, 2))
    call = call_with("abc")
    template = template_of(two, call, {}, template_of(one, call, {}))
    assert isinstance(template, Template)
    for value, fits in [
        (b"345", True),
        (b"0", True),
        (b"01", False),
        (b"-1", False),
        (b"1.5", False),
        (b'"1"', False),
    ]:
        text = two.replace(b'"created":2', b'"created":' + value)
        assert template.pieces([(None, text, False)], 0, 1) == (["abc"] if fits else [])
