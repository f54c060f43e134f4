"""Logs whose lines mislead: a model's text that looks like a log, and broken, doubled or joined lines."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.streams import Stream
from fragmentlab.wire.events import body
from tests.corpus.importing.test_wrapped import imported, told

MISLEADING = 'data: {"id": 1} data: {"choices": []} | 2024-01-01 INFO data: [DONE] 🙂'
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": ""}}
PARTS = (
    {"role": "assistant", "content": MISLEADING},
    {"tool_calls": [CALL]},
    {"tool_calls": [{"index": 0, "id": None, "function": {"arguments": json.dumps({"q": MISLEADING})}}]},
)
CHUNKS = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": part}]} for part in PARTS] + [
    {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
]
TEXTS = [json.dumps(chunk, ensure_ascii=False) for chunk in CHUNKS]
BROKEN = [*TEXTS[:2], TEXTS[2][:-4], TEXTS[3]]


def logged(*prefixes: str, events: bool = True) -> Callable[[list[str]], str]:
    """Return a logger that writes each event under every one of the prefixes."""
    mark = "data: " if events else ""
    return lambda texts: "".join(
        f"{prefix.format(number)}{mark}{text}\n"
        for number, text in enumerate([*texts, "[DONE]"])
        for prefix in prefixes
    )


def spread(text: str) -> str:
    """Write a chunk over many lines; what is none stays."""
    return json.dumps(json.loads(text), indent=1, ensure_ascii=False) if text in TEXTS else text


LOGS = {
    "seconds in brackets": logged("[0.00{}] "),
    "numbers in brackets": logged("[7, {}] "),
    "a list of words": logged('["INFO"] '),
    "an object before the event": logged('{{"level": "info"}} '),
    "two loggers": logged("0{} INFO client: ", "0{} DEBUG transport - "),
    "chunks": logged("10:00:0{} INFO: ", events=False),
    "chunks after seconds in brackets": logged("[0.00{}] ", events=False),
    "chunks of two loggers": logged("{} INFO: ", "{} DEBUG: ", events=False),
    "one line": lambda texts: "".join(f"data: {text}\\n\\n" for text in [*texts, "[DONE]"]) + "\n",
    "docker without blank lines": lambda texts: "".join(
        json.dumps({"log": f"data: {text}\n", "stream": "stdout"}) + "\n" for text in [*texts, "[DONE]"]
    ),
    "chunks over many lines": lambda texts: "".join(
        f"data: {spread(text)}\n\n" for text in [*texts, "[DONE]"]
    ),
}


@pytest.mark.parametrize("kind", LOGS)
def test_text_that_looks_like_a_log_stays_what_it_is(tmp_path, kind):
    """What the model said is not read as an event, and what a logger wrote is no part of one."""
    assert imported(tmp_path, "a.log", LOGS[kind](TEXTS).encode()) == [told(Stream("s", body(TEXTS)))]


@pytest.mark.parametrize("kind", [kind for kind in LOGS if kind != "one line"])
def test_a_broken_chunk_is_never_left_out(tmp_path, kind):
    """A log with a chunk that is no JSON is not accepted without it."""
    wanted = told(Stream("s", body(BROKEN)))
    assert wanted[0] == "rejected"
    assert imported(tmp_path, "a.log", LOGS[kind](BROKEN).encode()) == [wanted]


def test_a_broken_record_of_a_structured_log_is_named(tmp_path):
    """A record that holds a chunk and is no JSON ends the log's import; the last one may be cut."""
    records = [f'{{"level": 30, "chunk": {text}}}' for text in TEXTS]
    path = tmp_path / "a.log"
    for broken, count in ((1, 0), (3, 1)):
        lines = [record[:-6] if number == broken else record for number, record in enumerate(records)]
        path.write_text("\n".join(lines))
        summary = Summary()
        found = list(import_streams([str(path)], summary))
        assert len(found) == count and len(summary.faults) == 1 - count
        assert not any(item.result.outcome == "accepted" for item in found)


def test_a_character_in_two_escapes_of_a_program_is_one(tmp_path):
    """The two halves of a surrogate pair in a literal are joined."""
    text = body(TEXTS).decode()
    assert imported(tmp_path, "a.py", f"BODY = {json.dumps(text)}\n".encode()) == [
        told(Stream("s", text.encode()))
    ]


def test_reads_in_hexadecimal_that_begin_with_digits_are_no_rows(tmp_path):
    """A first read of which the hexadecimal digits are decimal ones is not the time of a log's row."""
    data = body(TEXTS)
    reads = [data[:2], *(data[at : at + 40] for at in range(2, len(data), 40))]
    content = json.dumps([[read.hex() for read in reads]]).encode()
    assert imported(tmp_path, "a.json", content) == [told(Stream("s", data))]


def of_response(number: int) -> list[str]:
    return [json.dumps(chunk | {"id": f"response-{number}"}) for chunk in CHUNKS]


@pytest.mark.parametrize("second", [0, 1])
def test_responses_at_once_that_nothing_tells_apart_are_refused(tmp_path, second):
    """Two services wrote to one log: their responses are told apart by id, or not judged as one."""
    texts = [text for pair in zip(of_response(0), of_response(second), strict=True) for text in pair]
    path = tmp_path / "a.log"
    path.write_text("".join(f"service-{number % 2} | data: {text}\n" for number, text in enumerate(texts)))
    summary = Summary()
    found = [told(item.stream) for item in import_streams([str(path)], summary)]
    wanted = told(Stream("s", body(TEXTS)))
    assert found == ([wanted, wanted] if second else [])
    assert second or "tell them apart" in summary.faults[0][1]


def test_an_end_marker_belongs_to_the_response_that_says_no_more(tmp_path):
    """What another response reports after its finish is not taken for data after its end marker."""
    usage = json.dumps({"id": "response-1", "choices": [], "usage": {"total_tokens": 1}})
    first, second = of_response(0), of_response(1)
    texts = [*first[:3], *second, first[3], "[DONE]", usage, "[DONE]"]
    content = "".join(f"INFO: data: {text}\n" for text in texts)
    found = imported(tmp_path, "a.log", content.encode())
    assert found == [told(Stream("s", body(TEXTS)))] * 2


def test_zero_bytes_between_events_do_not_hide_them(tmp_path):
    """A file that a crash left with zero bytes in it is judged, not taken for a binary one."""
    data = body(TEXTS).replace(b"data: [DONE]", b"\0" * 40 + b"\n\ndata: [DONE]")
    assert imported(tmp_path, "a.sse", data) == [told(Stream("s", data))]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_wide_text_keeps_what_it_says(tmp_path, encoding):
    """UTF-16 is read with its mark and without, whatever the letters; half of a pair stays half of one."""
    text = body(TEXTS).decode().replace("2024", "\u20ac\u4e00")
    assert imported(tmp_path, "a.log", text.encode(encoding)) == [told(Stream("s", text.encode()))]
    half = text.replace("🙂", "\ud83d", 1)
    wanted = told(Stream("s", half.encode("utf-8", "surrogatepass")))
    assert imported(tmp_path, "a.log", half.encode(encoding, "surrogatepass")) == [wanted]
    assert imported(tmp_path, "a.log", text.encode(encoding)[:-33]) != []
