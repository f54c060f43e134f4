"""One event's data to a chunk: the fast path never says anything that the exact path does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fragmentlab.assembler import Limits
from fragmentlab.assembler.chunks import (
    DECIDING_KEYS,
    InvalidEvent,
    _decode_exactly,
    decode_chunk,
    is_complete,
)
from tests.assembler.test_strictjson import same
from tests.assembler.wire import chunk, fragment

LIMITS = Limits()
STREAM = [
    chunk(fragment(0, "call_1", "look_up", "", type="function")),
    chunk(fragment(0, None, None, '{"city": "P')),
    chunk(fragment(0, arguments='ar\\"is", "n":1}'), fragment(1, "", "", "é😀\n")),
    chunk(content='say "a": 1'),
    chunk(finish="tool_calls", logprobs=None),
    {"choices": [], "usage": {"a": {"b": [1.5, 2]}}},
    chunk(
        fragment(0, arguments=': "a'), usage={"n": 1}, logprobs={"content": [{"token": '":', "top": [{}]}]}
    ),
    chunk(fragment(0, arguments=":", extra={"a": ":", "b": ['":']}), content=":"),
]
SPLICES = st.sampled_from(
    [
        b'"',
        b'":',
        b'":1,',
        b"\\",
        b'\\"',
        b"\\u0022",
        b"\\u003a",
        b"\\ud800",
        b" ",
        b" :",
        b"\t",
        b"\n",
        b"{",
        b"}",
    ]
    + [
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"-0",
        b"1e0",
        b"1" * 20,
        b"9" * 400,
        b"1E400",
        b"NaN",
        b"null",
        b"\xff",
        b"\xc3",
    ]
    + [b"\xef\xbb\xbf", b"\x00", b"{}", b"[" * 30 + b"]" * 30, '"é"'.encode(), b'"a":{"b":1,"b":2},']
    + [b'"%s":1,' % key.encode() for key in sorted(DECIDING_KEYS)]
    + [b'"%s":null,' % key.encode() for key in ("id", "index", "function", "arguments")]
    + [b'"\\u0069d":"x",', b'"content":"\\":\\":",', b'"tool_calls":[{"id":"y","id":"z"}],']
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A chunk's text with a few pieces put in, taken out or doubled."""
    base = draw(st.sampled_from(STREAM))
    text = json.dumps(
        base, ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([(",", ":"), None]))
    )
    data = text.encode()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.sampled_from([0, 0, 0, 1, 2, 7, 30])))
        middle = draw(st.sampled_from([b"", data[at:until] * 2])) if until > at else draw(SPLICES)
        data = data[:at] + middle + data[until:]
    return data


def outcome(decode: Any, data: bytes, limits: Limits = LIMITS) -> tuple[Any, ...]:
    try:
        return ("chunk", decode(data, limits))
    except InvalidEvent as refused:
        return ("refused", refused.category, refused.flags)


def assert_same(data: bytes) -> None:
    for depth in (64, 9, 5, 0):
        limits = Limits(depth=depth)
        fast, exact = outcome(decode_chunk, data, limits), outcome(_decode_exactly, data, limits)
        assert fast[0] == exact[0]
        if fast[0] == "chunk":
            assert same(fast[1], exact[1])
        else:
            assert fast == exact


@given(mutated())
@example(b'{"id":"a","x":"\\":","id":"b"}')
@example(b'{"choices":[{"delta":{"content":"\\u0022:","content":"x"}}]}')
@example(b'{"choices":[{"delta":{"tool_calls":[{"id":"a","id":"b","function":{"arguments":"\\u0022:"}}]}}]}')
@example(b'{"choices":[{"delta":{"content":"\\":"}}],"id" :1,"id":2}')
@example(b'{"choices":[{"delta":{"content":"\\":"}}],"id"\t:1,"id":2}')
@example(b'{"choices":[{"delta":{"content":"\\":"}}],"id"\n:1,"id":2}')
@example(b'{"choices":[{"delta":{"content":"\\":"}}],"id"\r:1,"id":2}')
@example(b'{"choices":[{"delta":{"content":1,"content":"\\":"}}]}')
@example(b'{"x":{"id":1,"id":2}}')
@example(b'{"x":":","id":1,"id":2}')
@example(b'{"x":{"y":"\\u003a"},"id":1,"id":2}')
@example(b'{"x":{"y":["\\u003a"]},"choices":[{"delta":{"content":"\\u003a","content":""}}],"id":1,"id":2}')
@example(b'{"x":{":":1,"\\":":2}}')
@example(b'{"x":{"y":":"},"id" :1,"id":2}')
@example(b'{"a":"\xff"}')
@example(b'{"a":18446744073709551616}')
def test_fast_path_equals_exact(data: bytes) -> None:
    """decode_chunk gives the exact parser's chunk or refusal for any text."""
    assert_same(data)


def test_usual_shapes_need_no_exact_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nested facts beside the fragments and pieces that begin with a colon are read by the fast path."""
    monkeypatch.setattr("fragmentlab.assembler.chunks._decode_exactly", None)
    for part in STREAM:
        data = json.dumps(part, separators=(",", ":")).encode()
        assert decode_chunk(data, LIMITS) == part


@given(st.lists(SPLICES, max_size=12).map(b"".join))
def test_fast_path_equals_exact_on_rubble(data: bytes) -> None:
    """The same for text that was never a chunk."""
    assert_same(data)
    assert_same(b"{" + data + b"}")


HOLDERS = {
    "root": "{%s}",
    "choice": '{"choices":[{%s}]}',
    "delta": '{"choices":[{"delta":{%s}}]}',
    "fragment": '{"choices":[{"delta":{"tool_calls":[{%s}]}}]}',
    "function": '{"choices":[{"delta":{"tool_calls":[{"function":{%s}}]}}]}',
}
ELSEWHERE = {
    "usage": '{"usage":{%s}}',
    "a list": '{"x":[{%s}]}',
    "a choice's logprobs": '{"choices":[{"logprobs":{%s}}]}',
    "a choice that is no array's": '{"choices":{"delta":{%s}}}',
    "the message": '{"choices":[{"message":{%s}}]}',
}


@pytest.mark.parametrize("spelling", ["plain", "escaped"])
@pytest.mark.parametrize("key", sorted(DECIDING_KEYS))
@pytest.mark.parametrize("holder", HOLDERS)
def test_deciding_key_twice(holder: str, key: str, spelling: str) -> None:
    """Each deciding key may stand once in each deciding object, however the second is spelt."""
    second = key if spelling == "plain" else f"\\u{ord(key[0]):04x}{key[1:]}"
    text = HOLDERS[holder] % f'"{key}":null,"{second}":null'
    assert outcome(decode_chunk, text.encode()) == ("refused", "event.duplicate_key", {})


@pytest.mark.parametrize("key", ["id", "arguments", "content", "x"])
@pytest.mark.parametrize("holder", ELSEWHERE)
def test_key_twice_elsewhere(holder: str, key: str) -> None:
    """Elsewhere a repeated key carries no meaning."""
    assert outcome(decode_chunk, (ELSEWHERE[holder] % f'"{key}":1,"{key}":2').encode())[0] == "chunk"


@pytest.mark.parametrize("holder", HOLDERS)
def test_other_key_twice(holder: str) -> None:
    """A key that decides nothing may repeat anywhere."""
    assert outcome(decode_chunk, (HOLDERS[holder] % '"content":1,"content":2').encode())[0] == "chunk"


@pytest.mark.parametrize(
    ("data", "category"),
    [
        (b"\xff", "event.invalid_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "event.invalid_utf8"),
        (b"{", "event.invalid_json"),
        (b"  ", "event.invalid_json"),
        (b'{"a":NaN}', "event.invalid_json"),
        (b'{"a":-Infinity}', "event.invalid_json"),
        (b"\xef\xbb\xbf{}", "event.invalid_json"),
        (b"[]", "event.invalid_chunk"),
        (b"null", "event.invalid_chunk"),
        (b"9" * 5000, "event.invalid_chunk"),
        (b'{"id":1,"id":2,"x":' + b"[" * 70 + b"]" * 70 + b"}", "limit.depth"),
        (b'{"x":' + b"[" * 63 + b"]" * 63 + b',"id":1,"id":2}', "event.duplicate_key"),
        (b"[" * 100_000, "event.invalid_json"),
        (b"[" * 100_000 + b"]" * 100_000, "event.invalid_chunk"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "limit.depth"),
    ],
)
def test_refusals_in_order(data: bytes, category: str) -> None:
    """UTF-8 comes before JSON, then the object, the depth and the duplicate keys."""
    assert outcome(decode_chunk, data)[1] == category


@pytest.mark.parametrize("levels", range(55, 70))
def test_depth_limit(levels: int) -> None:
    """Sixty-four open arrays and objects are the most, on either path."""
    for text in ('{"x":' + "[" * levels + "]" * levels + "}", '{"x":' * levels + "{}" + "}" * levels):
        found = outcome(decode_chunk, text.encode())
        assert found[0] == ("chunk" if levels + 1 <= 64 else "refused")


@pytest.mark.parametrize("data", [b'{"a":1}\n{"b":2}', b"{}[DONE]", b"{} {}", b"1 2"])
def test_joined_events(data: bytes) -> None:
    """Several documents in one event are named as events that lost their blank lines."""
    assert outcome(decode_chunk, data) == ("refused", "event.invalid_json", {"joined_events": True})


@pytest.mark.parametrize("data", [b"{}x", b"{", b"", b"[DONE] [", b"[" * 5000])
def test_not_joined(data: bytes) -> None:
    """Rubble is only invalid JSON."""
    assert outcome(decode_chunk, data)[2] == {}


@pytest.mark.parametrize(
    ("data", "complete"),
    [
        (b"{}", True),
        (b" [DONE]\t", True),
        (b'"a"', True),
        (b"{", False),
        (b"\xff", False),
        (b"[DON", False),
        (b"", False),
    ],
)
def test_is_complete(data: bytes, complete: bool) -> None:
    """A cut event counts when its data is one JSON document or the end marker."""
    assert is_complete(data) is complete
