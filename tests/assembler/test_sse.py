"""Bytes to events: the standard's cases as a table, a second decoder, and any regrouping of reads."""

from __future__ import annotations

import httpx_sse._decoders as second
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragmentlab.assembler.sse import Event, JSONLinesDecoder, SSEDecoder
from tests.assembler.wire import in_reads

LIMIT = 1 << 20


def events(reads: list[bytes], limit: int = LIMIT, decoder: type = SSEDecoder) -> list[Event]:
    """All events, the one that the end cut inside a line left out."""
    decoding = decoder(limit)
    found = [event for read in reads for event in decoding.feed(read)]
    return found + decoding.finish()[0]


def data_of(body: bytes) -> list[bytes]:
    return [data for _, data, _ in events([body]) if data]


CASES = {
    "LF": (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "CRLF between data lines": (b"data: a\r\ndata: b\r\n\r\n", [b"a\nb"]),
    "CR": (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    "mixed line ends": (b"data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", [b"a", b"b", b"c"]),
    "no blank after the colon": (b"data:a\n\n", [b"a"]),
    "only one blank is taken": (b"data:  a\n\n", [b" a"]),
    "several data lines are joined": (b"data: a\ndata: b\n\n", [b"a\nb"]),
    "data without a colon is an empty line": (b"data\ndata: b\n\n", [b"\nb"]),
    "comments": (b": hi\ndata: a\n:\n\n: x\n\n", [b"a"]),
    "BOM": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "a second BOM is part of the field": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "id and retry": (b"id: 7\nretry: 3\ndata: a\n\n", [b"a"]),
    "unknown field": (b"datum: x\ndata: a\n\n", [b"a"]),
    "field names are exact": (b"Data: x\n data: y\ndata : z\n\n", []),
    "empty data": (b"data:\n\n", []),
    "blank lines only": (b"\n\n\r\r\n\n", []),
    "U+2028 is no line end": ("data: a\u2028b\n\n".encode(), ["a\u2028b".encode()]),
    "U+0085 and form feed are no line ends": (
        "data: \u0085c\x0b\x0c\n\n".encode(),
        ["\u0085c\x0b\x0c".encode()],
    ),
    "last blank line missing": (b"data: a\n", [b"a"]),
    "cut inside the line": (b"data: a\n\ndata: b", [b"a"]),
    "NUL is data": (b"data: \x00\n\n", [b"\x00"]),
}


@pytest.mark.parametrize(("body", "expected"), CASES.values(), ids=CASES.keys())
def test_standard(body: bytes, expected: list[bytes]) -> None:
    """Each case of the standard gives its events, whole and byte by byte."""
    assert data_of(body) == expected
    assert [d for _, d, _ in events([bytes([b]) for b in body]) if d] == expected


@pytest.mark.parametrize("body", [b"event: ping\ndata: x\n\n", b"event:ping\r\ndata: x\r\n\r\n"])
def test_event_type(body: bytes) -> None:
    """An event's type is its last event field, one leading blank removed."""
    assert events([body]) == [(b"ping", b"x", False)]
    assert events([b"event: a\n" + body]) == [(b"ping", b"x", False)]


def test_cut_event_is_apart() -> None:
    """What the end cut inside a line is returned apart: the caller decides whether it is complete."""
    decoder = SSEDecoder(LIMIT)
    assert list(decoder.feed(b"data: {}")) == []
    assert decoder.finish() == ([], (None, b"{}", False), True)


LINES = st.lists(
    st.sampled_from(
        [
            "data: a",
            "data:b",
            "data",
            "data:",
            "data:  c",
            "event: ping",
            "event",
            "event:error",
            ": note",
            "id: 4",
            "retry: 9",
            "datum: x",
            "",
            "",
            "",
            "data: \u2028é😀",
            ":",
            'data: {"a": 1}',
        ]
    ),
    max_size=25,
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(LINES, st.data(), st.booleans())
def test_second_decoder(lines: list[str], data: st.DataObject, bom: bool) -> None:
    """httpx-sse, which follows the standard too, gives the same types and data."""
    text = "".join(line + data.draw(ENDS) for line in lines) + "\n\n"
    line_decoder, decoder = second.SSELineDecoder(), second.SSEDecoder()
    theirs = [decoder.decode(line) for line in [*line_decoder.decode(text), *line_decoder.flush()]]
    expected = [(e.event, e.data) for e in theirs if e is not None and e.data]
    ours = events([b"\xef\xbb\xbf" * bom + text.encode()])
    assert [((t or b"message").decode(), d.decode()) for t, d, _ in ours if d] == expected


@pytest.mark.parametrize("decoder", [SSEDecoder, JSONLinesDecoder])
@pytest.mark.parametrize("limit", [LIMIT, 12, 0])
@given(
    parts=st.lists(
        st.sampled_from(
            [
                b"data: ",
                b"data: a\r\n",
                b"data",
                b"\r",
                b"\n",
                b"\n\n",
                b"event: ping\n",
                b":",
                b"{}",
                b"x" * 20,
                "é".encode(),
                b"\xff",
                b"\xef\xbb\xbf",
                b" ",
                b"[DONE]",
            ]
        ),
        max_size=25,
    ),
    seed=st.integers(0, 1 << 16),
)
def test_regrouping(decoder: type, limit: int, parts: list[bytes], seed: int) -> None:
    """Any regrouping of reads gives the same events, comments, cut tail and oversize reports."""
    body = b"".join(parts)

    def decode(reads: list[bytes]) -> tuple[list[Event], Event | None, int]:
        decoding = decoder(limit)
        found = [event for read in reads for event in decoding.feed(read)]
        rest, cut, _ = decoding.finish()
        return found + rest, cut, decoding.comments

    whole = decode([body])
    assert decode(in_reads(body, seed, most=5)) == whole
    assert decode([bytes([byte]) for byte in body]) == whole


def test_oversized_line_is_refused_unfinished() -> None:
    """A data line is refused as soon as it passes the limit, and no more of it is kept."""
    decoder = SSEDecoder(100)
    assert list(decoder.feed(b"data: " + b"x" * 101)) == [(None, b"", True)]
    for _ in range(50):
        assert list(decoder.feed(b"x" * 100)) == []
    assert len(decoder._tail) <= 100
    assert list(decoder.feed(b"\n\ndata: a\n\n")) == [(None, b"a", False)]


def test_comment_is_not_kept() -> None:
    """A comment of any length costs nothing and is no event."""
    decoder = SSEDecoder(100)
    assert list(decoder.feed(b": " + b"x" * 1000)) == []
    assert list(decoder.feed(b"x" * 1000)) == []
    assert not decoder._tail
    assert list(decoder.feed(b"\ndata: a\n\n")) == [(None, b"a", False)]
    assert decoder.comments == 1


def test_oversized_ping_is_no_fault() -> None:
    """A ping's data means nothing, so its size is not reported before the event ends."""
    decoder = SSEDecoder(10)
    assert list(decoder.feed(b"event: ping\ndata: " + b"x" * 50)) == []
    assert list(decoder.feed(b"\n\n")) == [(b"ping", b"", True)]


def test_oversized_error_is_an_error_at_once() -> None:
    """An error needs no data to be one, so it is given even where its end never comes."""
    decoder = SSEDecoder(10)
    assert list(decoder.feed(b"event: error\ndata: " + b"x" * 50)) == [(b"error", b"", True)]
    assert list(decoder.feed(b"\n\n")) == []


def test_oversized_other_line_has_no_data() -> None:
    """A line of another field past the limit is refused, but is not an event with data."""
    assert events([b"id: " + b"x" * 50 + b"\n\n"], limit=10) == [(None, None, True)]


def test_json_lines() -> None:
    """Each line that is not empty is one event; an unfinished last one is the cut one."""
    decoder = JSONLinesDecoder(LIMIT)
    assert list(decoder.feed(b'{"a":1}\r\n\n{"b":2}\n[DO')) == [
        (None, b'{"a":1}', False),
        (None, b'{"b":2}', False),
    ]
    assert decoder.finish() == ([], (None, b"[DO", False), True)


@pytest.mark.parametrize(
    "reads", [[b"data: {}\n\n"], [b"data", b": {}\n\n"], [b"data:", b" ", b"{", b"}\n\n"]]
)
def test_small_limit_does_not_count_the_field(reads: list[bytes]) -> None:
    """A limit below the field's own length measures the data, however much of the line has arrived."""
    assert events(reads, limit=2) == [(None, b"{}", False)]
    assert events(reads, limit=1) == [(None, b"", True)]
