"""Every kind of container gives its bodies back as they were recorded."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
import yaml
import zstandard

from fragmentlab.assembler import assemble
from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.streams import Stream, own_id
from tests.corpus.importing.bodies import (
    ANSWER,
    ANTHROPIC_BODY,
    BODY,
    CHUNKS,
    EVENTS,
    REQUEST,
    TEXT_BODY,
    URL,
)

TEXT = BODY.decode()
PATH = "/v1/chat/completions"
LOST = TEXT.replace("\n\n", "\n")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def vcr(response_body: object, headers: object = None) -> dict[str, object]:
    request = {"body": REQUEST, "headers": {"Host": ["api.openai.com"]}, "method": "POST", "uri": URL}
    response = {"body": response_body, "headers": headers or {}, "status": {"code": 200, "message": "OK"}}
    return {"interactions": [{"request": request, "response": response}], "version": 1}


def dumped(document: object, **options: object) -> bytes:
    return yaml.safe_dump(document, allow_unicode=True, **options).encode()


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(text: str, indent: int) -> str:
    return "|\n" + "".join(f"{' ' * indent}{line}\n" if line else "\n" for line in text.split("\n"))


def har(content: dict[str, object], **entry: object) -> bytes:
    request = {"method": "POST", "url": URL, "headers": [], "postData": {"text": REQUEST}}
    response = {"status": 200, "headers": [], "content": {"mimeType": "text/event-stream", **content}}
    return json.dumps({"log": {"entries": [{"request": request, "response": response} | entry]}}).encode()


def sent(body: bytes, encoding: str) -> bytes:
    return dumped(vcr({"string": body}, {"Content-Encoding": [encoding]}))


def base64_string(body: bytes) -> bytes:
    return json.dumps(vcr({"base64_string": b64(body)})).encode()


def chunked(data: bytes, size: int = 50) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def ruby(body: str) -> bytes:
    return (
        "---\nhttp_interactions:\n- request:\n    method: post\n"
        f"    uri: {URL}\n    body:\n      encoding: UTF-8\n      string: {quoted(REQUEST)}\n"
        f"  response:\n    status:\n      code: 200\n    body:\n      encoding: ASCII-8BIT\n{body}"
        "recorded_with: VCR 6.1.0\n"
    ).encode()


def httpmock(bodies: list[str]) -> bytes:
    return "".join(
        "---\nwhen:\n  path: /v1/chat/completions\n  method: POST\n"
        f"  body: {quoted(REQUEST)}\nthen:\n  status: 200\n  body: {literal(body, 4)}"
        for body in bodies
    ).encode()


EXACT: dict[str, tuple[str, bytes]] = {
    "raw SSE": ("a.sse", BODY),
    "raw SSE with CRLF": ("a.txt", BODY.replace(b"\n", b"\r\n")),
    "raw SSE in a file of any name": ("a.bin", b"\n\n\n: hello\n\n" + BODY),
    "raw SSE that lost its blank lines": ("a.sse", LOST.encode()),
    "vcrpy, dumped": ("a.yaml", dumped(vcr({"string": TEXT}))),
    "vcrpy, double quoted": ("a.yaml", dumped(vcr({"string": TEXT}), default_style='"')),
    "vcrpy, single quoted": ("a.yaml", dumped(vcr({"string": TEXT}), default_style="'")),
    "vcrpy, literal block": ("a.yaml", dumped(vcr({"string": TEXT}), default_style="|")),
    "vcrpy, folded block": ("a.yaml", dumped(vcr({"string": TEXT}), default_style=">")),
    "vcrpy, binary": ("a.yaml", dumped(vcr({"string": BODY}))),
    "vcrpy, gzip": ("a.yaml", dumped(vcr({"string": gzip.compress(BODY)}, {"content-encoding": ["gzip"]}))),
    "vcrpy, deflate": ("a.yaml", sent(zlib.compress(BODY), "deflate")),
    "vcrpy, raw deflate": (
        "a.yaml",
        dumped(vcr({"string": zlib.compress(BODY, wbits=-15)}, {"Content-Encoding": ["deflate"]})),
    ),
    "vcrpy, Brotli": ("a.yaml", dumped(vcr({"string": brotli.compress(BODY)}, {"Content-Encoding": ["br"]}))),
    "vcrpy, Zstandard": ("a.yaml", sent(zstandard.compress(BODY), "zstd")),
    "vcrpy, old content form": (
        "a.yaml",
        dumped(
            {
                "interactions": [
                    {
                        "request": {"body": REQUEST, "method": "POST", "uri": URL},
                        "response": {"content": TEXT, "http_version": "HTTP/1.1", "status_code": 200},
                    }
                ]
            }
        ),
    ),
    "vcrpy, as JSON": ("a.json", json.dumps(vcr({"string": TEXT})).encode()),
    "vcrpy, base64 in JSON": ("a.json", json.dumps(vcr({"base64_string": b64(BODY)})).encode()),
    "vcrpy, gzip in base64 in JSON": ("a.json", base64_string(gzip.compress(BODY))),
    "vcrpy file of another name": ("a.cassette", dumped(vcr({"string": TEXT}))),
    "go-vcr": (
        "a.yaml",
        dumped(
            {
                "version": 2,
                "interactions": [
                    {
                        "id": 0,
                        "request": {"body": REQUEST, "headers": {}, "url": URL, "method": "POST"},
                        "response": {"body": TEXT, "headers": {}, "status": "200 OK", "code": 200},
                    }
                ],
            }
        ),
    ),
    "Ruby VCR": ("a.yml", ruby("      string: " + literal(TEXT, 8))),
    "Ruby VCR, !binary": ("a.yml", ruby(f"      string: !binary |-\n        {b64(BODY)}\n")),
    "Ruby VCR, base64_string": ("a.yml", ruby(f"      base64_string: |\n        {b64(BODY)}\n")),
    "WireMock": (
        "a.json",
        json.dumps(
            {
                "request": {"urlPath": "/v1/chat/completions", "bodyPatterns": [{"equalToJson": REQUEST}]},
                "response": {"status": 200, "body": TEXT},
            }
        ).encode(),
    ),
    "WireMock, several, base64Body": (
        "a.json",
        json.dumps(
            {
                "mappings": [
                    {"request": {"url": "/models"}, "response": {"jsonBody": {"data": []}}},
                    {
                        "request": {"url": PATH, "bodyPatterns": [{"equalToJson": REQUEST}]},
                        "response": {"base64Body": b64(BODY)},
                    },
                ]
            }
        ).encode(),
    ),
    "HAR": ("a.har", har({"text": TEXT, "size": len(BODY)})),
    "HAR, base64": ("a.har", har({"text": b64(BODY), "encoding": "base64", "size": len(BODY)})),
    "HAR, gzip in base64": ("a.har", har({"text": b64(gzip.compress(BODY)), "encoding": "base64"})),
    "HAR with a byte order mark": ("a.har", b"\xef\xbb\xbf" + har({"text": TEXT})),
    "HAR in UTF-16": ("a.har", har({"text": TEXT}).decode().encode("utf-16")),
    "HAR of Polly, hex chunks in JSON in a string": (
        "recording.har",
        har({"text": json.dumps([piece.hex() for piece in chunked(gzip.compress(BODY), 37)])}),
    ),
    "nock, text": (
        "a.json",
        json.dumps(
            [
                {
                    "scope": "https://api.openai.com:443",
                    "method": "POST",
                    "path": "/v1/chat/completions",
                    "body": json.loads(REQUEST),
                    "status": 200,
                    "response": TEXT,
                }
            ]
        ).encode(),
    ),
    "nock, hex": (
        "a.json",
        json.dumps(
            [{"scope": "https://api.openai.com:443", "path": PATH, "body": json.loads(REQUEST),
              "response": gzip.compress(BODY).hex(), "responseIsBinary": True}]
        ).encode(),
    ),
    "nock, array of hex": (
        "a.json",
        json.dumps(
            [{"scope": "https://api.openai.com:443", "path": PATH, "body": json.loads(REQUEST),
              "rawHeaders": ["Content-Type", "text/event-stream", "Content-Encoding", "gzip"],
              "response": [piece.hex() for piece in chunked(gzip.compress(BODY), 100)]}]
        ).encode(),
    ),
    "cassette with event strings": ("a.json", json.dumps({"entries": [
        {"request": {"body": {"kind": "json", "value": json.loads(REQUEST)}, "url": URL},
         "response": {"body": {"kind": "sse", "chunks": EVENTS}}}]}).encode()),
    "cassette with base64 chunks across events": ("a.json", json.dumps({"entries": [
        {"request": {"body": REQUEST, "url": URL},
         "response": {"chunks": [{"b64": b64(piece), "at": 3} for piece in chunked(BODY, 41)]}}]}).encode()),
    "cassette with text chunks across events": ("a.json", json.dumps({"entries": [
        {"request": {"body": REQUEST, "url": URL},
         "response": {"body": [TEXT[at : at + 61] for at in range(0, len(TEXT), 61)]}}]}).encode()),
    "cassette with Node buffers": ("a.json", json.dumps({"entries": [
        {"request": {"body": REQUEST, "url": URL},
         "response": {"body": {"type": "Buffer", "data": list(BODY)}}}]}).encode()),
    "JSON Lines of exchanges": (
        "a.jsonl",
        b"".join(json.dumps(line).encode() + b"\n" for line in (
            {"request": {"body": REQUEST, "url": URL}, "response": {"body": TEXT}},
            {"request": {"url": URL}, "response": {"body": ANSWER}}))),
    "JSON texts in a row": (
        "a.json",
        json.dumps({"response": ANSWER}, indent=1).encode() + b"\n"
        + json.dumps({"request": REQUEST, "response": TEXT}, indent=1).encode()),
    "cassette with timed rows": ("a.json", json.dumps(
        {"request": {"body": REQUEST, "url": URL},
         "response": {"chunks": [[0.1, TEXT[at : at + 77]] for at in range(0, len(TEXT), 77)]}}).encode()),
    "cassette with numbered chunks": ("a.json", json.dumps(
        {"request": {"body": REQUEST, "url": URL},
         "response": {str(number): TEXT[number * 50 : number * 50 + 50] for number in range(40)}}).encode()),
    "a data address": (
        "a.json",
        json.dumps({"response": "data:text/event-stream;charset=utf-8;base64," + b64(BODY)}).encode(),
    ),
    "vcrpy of Python 2": (
        "a.yaml",
        dumped(vcr({"string": TEXT}), default_style='"').replace(b'g": "', b'g": !!python/unicode "'),
    ),
    "a JSON string": ("a.json", json.dumps(TEXT).encode()),
    "JSON in JSON": ("a.json", json.dumps({"log": json.dumps({"body": json.dumps([TEXT])})}).encode()),
}  # fmt: skip
CHUNK_LISTS: dict[str, tuple[str, bytes]] = {
    "list of chunks": ("a.json", json.dumps(CHUNKS, indent=2).encode()),
    "list of chunks in YAML": ("a.yaml", dumped({"chunks": CHUNKS})),
    "list of chunks under a key": (
        "a.json",
        json.dumps({"name": "t", "output": {"chunks": CHUNKS}}).encode(),
    ),
    "list of wrapped chunks": (
        "a.json",
        json.dumps([{"at": 1, "chunk": chunk} for chunk in CHUNKS]).encode(),
    ),
    "list of chunk texts": ("a.json", json.dumps([json.dumps(chunk) for chunk in CHUNKS]).encode()),
    "list of chunk texts with an end": (
        "a.json",
        json.dumps([*[json.dumps(chunk) for chunk in CHUNKS], "[DONE]"]).encode(),
    ),
    "list of events with objects": (
        "a.json",
        json.dumps(
            [{"event": "message", "data": chunk} for chunk in CHUNKS] + [{"event": "done", "data": "[DONE]"}]
        ).encode(),
    ),
    "list of parsed events": (
        "a.json",
        json.dumps([{"event": None, "data": json.dumps(chunk)} for chunk in CHUNKS]).encode(),
    ),
    "JSON Lines of chunks": ("a.jsonl", b"".join(json.dumps(chunk).encode() + b"\n" for chunk in CHUNKS)),
    "JSON Lines of wrapped chunks": (
        "a.jsonl",
        b"".join(json.dumps({"t": 1, "data": chunk}).encode() + b"\n" for chunk in CHUNKS),
    ),
    "JSON Lines in a string": (
        "a.json",
        json.dumps({"response": "\n".join(json.dumps(chunk) for chunk in CHUNKS)}).encode(),
    ),
    "lines of an event stream": ("a.json", json.dumps(TEXT.split("\n")).encode()),
    "event strings without blank lines": ("a.json", json.dumps([event.strip() for event in EVENTS]).encode()),
}


def imported(tmp_path: Path, name: str, content: bytes) -> tuple[list[Stream], Summary]:
    path = tmp_path / name
    path.write_bytes(content)
    summary = Summary()
    return [summary.count(item).stream for item in import_streams([str(path)], summary)], summary


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_the_body_comes_out_byte_for_byte(tmp_path, kind, pack: Callable[[bytes], bytes]):
    """A container, gzipped or not, holds one stream and gives exactly its bytes."""
    name, content = EXACT[kind]
    streams, summary = imported(tmp_path, name + (".gz" if pack is gzip.compress else ""), pack(content))
    bodies = [stream.body.replace(b"\r\n", b"\n").removeprefix(b"\n\n\n: hello\n\n") for stream in streams]
    # A block scalar keeps one line end of several.
    wanted = LOST.encode() if "lost" in kind else BODY
    assert [body.rstrip(b"\n") for body in bodies] == [wanted.rstrip(b"\n")]
    if "lost" in kind:
        return
    assert summary.tool_streams == 1
    assert summary.faults == []


@pytest.mark.parametrize("kind", CHUNK_LISTS)
def test_lists_of_chunks_become_one_stream(tmp_path, kind):
    """Chunk objects, however they are listed, assemble to the call that they carried."""
    streams, summary = imported(tmp_path, *CHUNK_LISTS[kind])
    assert len(streams) == 1
    result = assemble(streams[0].body, framing=streams[0].framing, tools=["lookup_city"])
    assert [call.arguments for call in result.calls] == ['{"city": "Zürich: it\'s \\"ok\\"🙂"}']
    assert summary.faults == []


@pytest.mark.parametrize("kind", [kind for kind, (_, content) in EXACT.items() if b"lookup_city" in content])
def test_the_request_says_who_was_asked_for_what(tmp_path, kind):
    """Tools come from the recorded request, the model from the answer, the provider from the host."""
    streams, _ = imported(tmp_path, *EXACT[kind])
    assert streams[0].model == "gpt-4o-mini-2024-07-18"
    if b"messages" in EXACT[kind][1]:
        assert streams[0].tools == ("lookup_city",)
    if b"api.openai.com" in EXACT[kind][1]:
        assert streams[0].provider == "openai"


def test_several_documents_give_several_streams(tmp_path):
    """httpmock writes one document an exchange; text-only streams are imported too, and places tell them
    apart."""
    streams, summary = imported(tmp_path, "a.yaml", httpmock([TEXT, TEXT_BODY.decode(), TEXT]))
    assert [stream.body.rstrip() for stream in streams] == [BODY.rstrip(), TEXT_BODY.rstrip(), BODY.rstrip()]
    assert (summary.streams, summary.tool_streams) == (3, 2)
    assert len({stream.id for stream in streams}) == 3
    assert all(place.endswith("then.body") for place in summary.places.values())


def test_a_list_of_exchanges_is_not_one_body(tmp_path):
    """Bodies under the same key of several exchanges stay apart."""
    exchanges = [{"path": "/v1/chat/completions", "response": text} for text in (TEXT, TEXT_BODY.decode())]
    streams, _ = imported(tmp_path, "a.json", json.dumps(exchanges).encode())
    assert [stream.body for stream in streams] == [BODY, TEXT_BODY]
    streams, _ = imported(tmp_path, "a.json", json.dumps({"bodies": [TEXT, TEXT_BODY.decode()]}).encode())
    assert [stream.body for stream in streams] == [BODY, TEXT_BODY]


def test_one_exchange_counts_its_body_once(tmp_path):
    """A body that a container holds in two forms is one stream."""
    document = vcr({"string": TEXT, "raw": b64(BODY)})
    streams, summary = imported(tmp_path, "a.json", json.dumps(document).encode())
    assert len(streams) == 1
    assert summary.left_out == {"second copies of a body in one exchange": 1}


def test_the_same_answer_twice_is_two_streams(tmp_path):
    """Exchanges of one file that gave the same bytes both count, in lists and in documents."""
    listed = json.dumps({"bodies": [TEXT, TEXT]}).encode()
    for name, content in (("a.json", listed), ("b.yaml", httpmock([TEXT] * 3)[: 2 << 20])):
        streams, summary = imported(tmp_path, name, content)
        assert len(streams) == len({stream.id for stream in streams}) == summary.tool_streams >= 2
        assert not summary.left_out


def test_other_protocols_are_named_and_left_out(tmp_path):
    """Streams of other protocols and answers that were not streamed are counted, and are no fault."""
    document = {
        "interactions": [{"response": {"body": body}} for body in (ANTHROPIC_BODY.decode(), ANSWER, TEXT)]
    }
    streams, summary = imported(tmp_path, "a.json", json.dumps(document).encode())
    assert len(streams) == 1
    assert summary.left_out == {"streams of anthropic messages": 1, "answers that were not streamed": 1}
    assert summary.faults == []


def test_what_stands_in_a_request_is_not_an_answer(tmp_path):
    """A prompt that quotes a stream is not imported."""
    document = {"request": {"body": TEXT}, "response": {"body": TEXT_BODY.decode()}}
    streams, _ = imported(tmp_path, "a.json", json.dumps(document).encode())
    assert [stream.body for stream in streams] == [TEXT_BODY]


@pytest.mark.parametrize(
    "document",
    [
        {
            "resourceSpans": [
                {"scopeSpans": [{"spans": [{"attributes": [{"key": "gen_ai.output.messages"}]}]}]}
            ]
        },
        {"gen_ai.output.messages": [{"role": "assistant", "tool_calls": [{"id": "call_1"}]}]},
        [
            {
                "name": "llm",
                "attributes": {"llm.output_messages.0.message.tool_calls.0.tool_call.id": "call_1"},
            }
        ],
    ],
    ids=["OpenTelemetry", "attributes", "OpenInference"],
)
def test_assembled_messages_are_refused(tmp_path, document):
    """A trace export cannot show how fragments came, and says so."""
    streams, summary = imported(tmp_path, "a.json", json.dumps(document).encode())
    assert streams == []
    assert "assembled messages" in summary.faults[0][1]


def test_the_container_says_how_the_transport_ended(tmp_path):
    """An exchange that its recorder marked as broken ends aborted."""
    streams, _ = imported(
        tmp_path, "a.har", har({"text": TEXT[:300]}, _error="net::ERR_INCOMPLETE_CHUNKED_ENCODING")
    )
    assert streams[0].end == "aborted"


def transfer_chunks(data: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in chunked(data, 7)) + b"0\r\n\r\n"


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.http", HEAD + transfer_chunks(BODY)),
        ("a.txt", transfer_chunks(BODY)),
        ("cut.txt", transfer_chunks(BODY)[:-9]),
        ("a.har", har({"encoding": "base64", "text": b64(transfer_chunks(BODY))})),
        ("a.json", json.dumps(vcr({"string": transfer_chunks(BODY).decode()})).encode()),
        ("gzipped.yaml", dumped(vcr({"string": transfer_chunks(gzip.compress(BODY))}))),
        ("a.b64", base64.encodebytes(BODY)),
    ],
)
def test_transfer_coding_left_in_a_body_is_undone(tmp_path, name, content):
    """Chunk sizes that a recorder kept do not cut events, and a file may be Base64 as a whole."""
    streams, summary = imported(tmp_path, name, content)
    assert [stream.body.rstrip() for stream in streams] == [BODY.rstrip()]
    assert summary.faults == []


def test_lists_of_octets_of_any_size_are_joined(tmp_path):
    """Reads of a few bytes are pieces like the others."""
    sizes = [list(part) for part in (BODY[:3], BODY[3:4], BODY[4:200], BODY[200:205], BODY[205:])]
    buffers = [{"type": "Buffer", "data": part} for part in sizes]
    for pieces in (sizes, buffers):
        streams, _ = imported(tmp_path, "a.json", json.dumps({"response": {"chunks": pieces}}).encode())
        assert [stream.body for stream in streams] == [BODY]


def test_an_end_marker_after_json_lines_belongs_to_the_stream(tmp_path):
    """Recorders that keep each event's data write [DONE] as a line too."""
    lines = "".join(json.dumps(chunk) + "\n" for chunk in CHUNKS) + "[DONE]\n"
    streams, summary = imported(tmp_path, "a.jsonl", lines.encode())
    assert [assemble(stream.body).counts["done"] for stream in streams] == [1]
    assert summary.faults == []


def test_a_body_that_a_recorder_did_not_keep_is_named(tmp_path):
    """Browsers keep no text of many streams; Base64 cut or edited by hand is not read as something else."""
    for name, content in (
        ("none.har", har({"size": 900})),
        ("empty.har", har({"size": 900, "text": ""})),
        ("cut.har", har({"encoding": "base64", "text": b64(BODY)[:501] + "*"})),
        ("edited.yaml", b"response: {body: !!binary 'ZGF0YTog***'}\n"),
    ):
        streams, summary = imported(tmp_path, name, content)
        assert (streams, len(summary.faults)) == ([], 1), name
        assert not summary.left_out, name


def test_a_cut_gzip_is_noted(tmp_path):
    """What was cut by the recorder's packing must not look like an answer cut on the wire."""
    _, summary = imported(tmp_path, "a.sse.gz", gzip.compress(BODY)[:-30])
    assert summary.noted["packed bodies that end early, read to their end"] == 1


def test_packed_bytes_without_an_event_are_said_to_end_early(tmp_path):
    """A download that broke off at once is no empty file."""
    for size in (3, 10, 12):
        streams, summary = imported(tmp_path, "a.sse.gz", gzip.compress(BODY)[:size])
        assert streams == []
        assert ["end early" in why for _, why in summary.faults] == [True], size


def test_a_response_may_follow_its_request_without_a_line_end(tmp_path):
    """A request's JSON has no line end of its own; one in the answer's text begins nothing."""
    asked = f"POST {PATH} HTTP/1.1\r\nHost: api.openai.com\r\n\r\n{REQUEST}"
    answered = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    text = TEXT.replace("data: [DONE]", 'data: {"choices":[],"note":"{}HTTP/1.1 200 OK"}\n\ndata: [DONE]')
    streams, _ = imported(tmp_path, "a.txt", (asked + answered + text + asked + answered + TEXT).encode())
    assert [stream.body.decode() for stream in streams] == [text, TEXT]
    assert streams[0].provider == "openai"


def test_long_texts_repeated_by_aliases_are_refused(tmp_path):
    """A small YAML file cannot make the search of one text repeat for hours."""
    text = f"a: &a '{'y' * 10_000}'\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcde", "bcdef", strict=True)
    )
    _, summary = imported(tmp_path, "a.yaml", text.encode())
    assert "through its aliases" in summary.faults[0][1]


def test_ids_of_many_equal_bodies_are_told_apart_in_time():
    """Numbering equal bodies does not slow down, and meets no id given before."""
    ids: Counter[str] = Counter()
    names = [own_id("s", ids) for _ in range(50_000)]
    assert len({*names, own_id("s-2", ids)}) == 50_001
