"""Vector files: loading, replaying, and what the check finds."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.assembler import Assembler
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.corpus import vector_check
from fragmentlab.corpus.vector_check import check, expectations, unchecked
from fragmentlab.corpus.vectors import (
    BYTE_BY_BYTE,
    MAX_SINGLE_BYTES,
    Vector,
    VectorFile,
    load_vectors,
    replays,
    vector_paths,
)
from fragmentlab.errors import InputError

FOLDER = Path(__file__).resolve().parents[2] / "data" / "vectors"
FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def _file(tmp_path: Path, *vectors: dict[str, Any], **top: Any) -> VectorFile:
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps({"schema": "fragmentlab-vectors-v1", "notes": {}, "vectors": vectors, **top}))
    return load_vectors(path)


def _committed(vector_id: str) -> Vector:
    topic = vector_id.partition("/")[0]
    return next(v for v in load_vectors(FOLDER / f"{topic}.json").vectors if v.id == vector_id)


def _item(**changes: Any) -> dict[str, Any]:
    item = {"id": "t/v", "events": [FINISH], "expect": {"outcome": "no_calls"}, **changes}
    return {key: value for key, value in item.items() if value is not ...}


def _call_item(arguments: str = '{"key":"canary-a"}', **changes: Any) -> dict[str, Any]:
    fragment = {"index": 0, "id": "canary-id", "function": {"name": "canary_name", "arguments": arguments}}
    event = {"choices": [{"delta": {"tool_calls": [fragment]}, "finish_reason": "tool_calls"}]}
    call = {"id": "canary-id", "name": "canary_name", "arguments": arguments}
    return _item(events=[event], expect={"outcome": "accepted", "calls": [call]}, **changes)


def test_the_three_forms_of_a_stream_give_the_same_body(tmp_path: Path) -> None:
    """Events, text and Base64 reads are the same bytes; only reads keep their boundaries."""
    body = b"data: " + json.dumps(FINISH).encode() + b"\n\ndata: [DONE]\n\n"
    parts = [base64.b64encode(part).decode() for part in (body[:9], b"", body[9:])]
    events, text, reads, undone = _file(
        tmp_path,
        _item(),
        _item(id="t/s", events=..., sse=body.decode()),
        _item(id="t/r", events=..., reads_base64=parts),
        _item(id="t/d", done=False),
    ).vectors
    assert events.stream.body == text.stream.body == reads.stream.body == body
    assert reads.reads == (body[:9], b"", body[9:])
    assert undone.stream.body == body.removesuffix(b"data: [DONE]\n\n")


def test_numbers_that_python_cannot_hold_are_sent_as_written(tmp_path: Path) -> None:
    """A number of any size in events reaches the wire as its text, not as Infinity and not as an error."""
    path = tmp_path / "v.json"
    for number in ("1e999", "-1E+4000", "9" * 5000):
        event = json.dumps(FINISH)[:-1] + f', "created": {number}}}'
        item = json.dumps(_item()).replace(json.dumps(FINISH), event)
        path.write_text(f'{{"schema": "fragmentlab-vectors-v1", "notes": {{}}, "vectors": [{item}]}}')
        vector = load_vectors(path).vectors[0]
        assert f'"created": {number}}}'.encode() in vector.stream.body
        assert check(vector) == []


def test_tools_limits_and_end_come_from_the_vector_and_then_from_the_file(tmp_path: Path) -> None:
    """A vector's own tools replace the file's; without any the tools are unknown."""
    first, second = _file(tmp_path, _item(), _item(id="t/o", tools=["b"], end="unknown"), tools=["a"]).vectors
    assert (first.tools, second.tools) == (("a",), ("b",))
    assert (first.end, second.end) == ("clean", "unknown")
    (third,) = _file(tmp_path, _item(limits={"events": 3})).vectors
    assert third.tools is None
    assert third.known_tools is None
    assert third.stream.limits.events == 3


def test_replays_are_the_same_bytes_in_other_reads(tmp_path: Path) -> None:
    """Whole, single bytes and random reads join to the body; line ends are exchanged in the other two."""
    (vector,) = _file(tmp_path, _item()).vectors
    body = vector.stream.body
    made = dict(replays(vector))
    assert list(made) == ["whole", BYTE_BY_BYTE, "random reads", "CRLF", "CR"]
    assert made["whole"] == [body]
    assert {len(read) for read in made[BYTE_BY_BYTE]} == {1}
    assert len(made["random reads"]) > 5
    assert [b"".join(made[label]) for label in list(made)[:3]] == [body] * 3
    assert b"".join(made["CRLF"]) == body.replace(b"\n", b"\r\n")
    assert b"".join(made["CR"]) == body.replace(b"\n", b"\r")
    assert dict(replays(vector)) == made


def test_a_vector_about_line_ends_keeps_its_own(tmp_path: Path) -> None:
    """The flag, or a CR in the body, leaves the exchange of line ends out."""
    flagged, carriage = _file(
        tmp_path,
        _item(flags=["line-ends"]),
        _item(id="t/c", events=..., sse="data: [DONE]\r\n\r\n"),
    ).vectors
    for vector in (flagged, carriage):
        assert [label for label, _ in replays(vector)] == ["whole", BYTE_BY_BYTE, "random reads"]


def test_the_reads_of_a_vector_are_replayed_as_they_are() -> None:
    """A vector given as reads is also fed in just these."""
    vector = _committed("framing/crlf-parted-by-reads")
    assert dict(replays(vector))["its own reads"] == list(vector.reads)


def test_a_long_body_is_replayed_in_a_bounded_number_of_reads(tmp_path: Path) -> None:
    """The byte-by-byte replay of a long body takes no more reads than its bound."""
    (vector,) = _file(tmp_path, _item(events=..., sse=": " + "x" * 3 * MAX_SINGLE_BYTES + "\n\n")).vectors
    reads = dict(replays(vector))[BYTE_BY_BYTE]
    assert MAX_SINGLE_BYTES // 2 < len(reads) <= MAX_SINGLE_BYTES
    assert b"".join(reads) == vector.stream.body


BAD_VECTORS = {
    "no body": _item(events=...),
    "two bodies": _item(sse=""),
    "no expectation": _item(expect=...),
    "unknown outcome": _item(expect={"outcome": "canary"}),
    "unknown category": _item(expect={"outcome": "rejected", "category": "canary"}),
    "unknown category under a rule set": _item(
        expect_under={"reject-null": {"outcome": "rejected", "category": "canary"}}
    ),
    "category of a list": _item(expect={"outcome": "rejected", "category": ["canary"]}),
    "accepted without calls": _item(expect={"outcome": "accepted"}),
    "a call without a name": _item(
        expect={"outcome": "accepted", "calls": [{"id": "canary", "arguments": ""}]}
    ),
    "a call with a number": _item(
        expect={"outcome": "accepted", "calls": [{"id": 1, "name": "canary", "arguments": ""}]}
    ),
    "unknown diagnostic": _item(
        expect={"outcome": "rejected", "category": "identity.missing", "diagnostic": {"canary": 1}}
    ),
    "unknown value of a diagnostic": _item(
        expect={
            "outcome": "rejected",
            "category": "identity.missing",
            "diagnostic": {"incoming_kind": "canary"},
        }
    ),
    "a category beside no_calls": _item(expect={"outcome": "no_calls", "category": "canary"}),
    "bad Base64": _item(events=..., reads_base64=["canary!"]),
    "Base64 of a number": _item(events=..., reads_base64=[7]),
    "an event that is no object": _item(events=["canary"]),
    "text that is no string": _item(events=..., sse=["canary"]),
    "half a surrogate pair": _item(events=..., sse="canary \ud83d"),
    "done of a word": _item(done="canary"),
    "done beside text": _item(events=..., sse="", done=True),
    "unknown field": _item(canary=1),
    "unknown limit": _item(limits={"canary": 1}),
    "negative limit": _item(limits={"events": -1}),
    "limits of a list": _item(limits=["canary"]),
    "unknown end": _item(end="canary"),
    "tools of a word": _item(tools="canary"),
    "a tool that is a number": _item(tools=[7]),
    "an unusable schema": _item(tools=[{"name": "canary", "schema": {"type": "canary"}}]),
    "flags of a word": _item(flags="canary"),
    "no id": _item(id=...),
    "an empty id": _item(id=""),
    "rule sets of a list": _item(expect_under=["canary"]),
}


@pytest.mark.parametrize("item", BAD_VECTORS.values(), ids=BAD_VECTORS)
def test_a_bad_vector_is_one_line_that_names_its_position(tmp_path: Path, item: dict[str, Any]) -> None:
    """The message says which vector and what is wrong, on one line, and quotes nothing of it."""
    with pytest.raises(InputError, match=r"vectors\.json: vectors\[1\]") as caught:
        _file(tmp_path, _item(id="t/first"), item)
    message = str(caught.value)
    assert "\n" not in message
    assert "canary" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


BAD_FILES = {
    "empty": b"",
    "binary": b"\x00\xff\xfe\x01",
    "text": b"canary",
    "an array": b"[]",
    "a cut document": b'{"schema": "fragmentlab-vectors-v1", "vectors": [',
    "another schema": b'{"schema": "canary", "vectors": []}',
    "no vectors": b'{"schema": "fragmentlab-vectors-v1", "notes": {}, "vectors": []}',
    "vectors of an object": b'{"schema": "fragmentlab-vectors-v1", "vectors": {"canary": 1}}',
    "a key twice": b'{"schema": "fragmentlab-vectors-v1", "schema": "canary"}',
    "too deep": b'{"schema": ' + b"[" * 100_000,
    "unknown field": b'{"schema": "fragmentlab-vectors-v1", "canary": 1, "vectors": []}',
    "notes of a list": b'{"schema": "fragmentlab-vectors-v1", "notes": [], "vectors": [{}]}',
    "tools of a word": b'{"schema": "fragmentlab-vectors-v1", "tools": "canary", "vectors": [{}]}',
}


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_one_line_that_names_it(tmp_path: Path, content: bytes) -> None:
    """Whatever a file holds, the message is one line that names the file and quotes nothing of it."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.json") as caught:
        load_vectors(path)
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file and a folder given as a file are one line each; a folder without vectors is, too."""
    with pytest.raises(InputError, match="cannot be read"):
        load_vectors(tmp_path / "missing.json")
    with pytest.raises(InputError, match="cannot be read"):
        load_vectors(tmp_path)
    with pytest.raises(InputError, match="holds no vector file"):
        vector_paths([tmp_path])


def test_an_id_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    """Two vectors of one name could not be told apart in a report."""
    with pytest.raises(InputError, match=r"vectors\[1\]\.id is that of an earlier vector"):
        _file(tmp_path, _item(), _item())


def test_each_kind_of_difference_is_found(tmp_path: Path) -> None:
    """A wrong outcome, category, call or diagnostic is a mismatch of its own in every replay."""
    call = {"id": "canary-id", "name": "canary_name", "arguments": '{"key":"canary-a"}'}
    conflict = {"outcome": "rejected", "category": "identity.conflict"}
    diagnostic = {"incoming_kind": "null", "previous_identity": "absent", "incoming_empty": True}
    base = _call_item()
    null = json.loads(json.dumps(base["events"]).replace('"canary-id"', "null"))
    missing = {"outcome": "rejected", "category": "identity.missing", "diagnostic": diagnostic}
    vectors = _file(
        tmp_path,
        {**base, "id": "t/outcome", "expect": conflict},
        {**base, "id": "t/number", "expect": {"outcome": "accepted", "calls": [call, call]}},
        {**base, "id": "t/id", "expect": {"outcome": "accepted", "calls": [{**call, "id": "other"}]}},
        {
            **base,
            "id": "t/arguments",
            "expect": {"outcome": "accepted", "calls": [{**call, "arguments": "{}"}]},
        },
        {**base, "id": "t/category", "events": null, "expect": conflict},
        {**base, "id": "t/diagnostic", "events": null, "expect": missing},
    ).vectors
    found = {vector.id: check(vector) for vector in vectors}
    facts = {name: [(m.fact, *m.shown()) for m in mismatches] for name, mismatches in found.items()}
    assert facts == {
        "t/outcome": [("outcome", "rejected identity.conflict", "accepted")],
        "t/number": [("number of calls", "2", "1")],
        "t/id": [("id of call 1", "5 characters", "9 characters")],
        "t/arguments": [("arguments of call 1", "2 characters", "18 characters")],
        "t/category": [("outcome", "rejected identity.conflict", "rejected identity.missing")],
        "t/diagnostic": [("incoming_empty", "true", "false")],
    }
    assert all(mismatch.is_every_replay for mismatches in found.values() for mismatch in mismatches)


def test_raw_values_are_shown_only_if_asked_for(tmp_path: Path) -> None:
    """Neither a line nor a repr gives raw values away; revealed text cannot steer a terminal."""
    call = {"id": "\x1b[2Jsecret", "name": "secret", "arguments": "secret"}
    (vector,) = _file(tmp_path, {**_call_item(), "expect": {"outcome": "accepted", "calls": [call]}}).vectors
    mismatches = check(vector)
    assert [m.fact for m in mismatches] == ["id of call 1", "name of call 1", "arguments of call 1"]
    quiet = "".join(m.text() + repr(m) for m in mismatches) + repr(vector)
    assert "secret" not in quiet
    assert "canary" not in quiet
    revealed = "".join(m.text(reveal=True) for m in mismatches)
    assert "secret" in revealed
    assert "canary" in revealed
    assert "\x1b" not in revealed


def test_values_of_one_length_are_said_to_differ(tmp_path: Path) -> None:
    """Two texts of one length do not read like agreement."""
    call = {"id": "canary-ix", "name": "canary_name", "arguments": '{"key":"canary-a"}'}
    (vector,) = _file(tmp_path, {**_call_item(), "expect": {"outcome": "accepted", "calls": [call]}}).vectors
    assert check(vector)[0].shown() == ("9 characters", "9 characters, other text")


def test_rule_sets_without_an_expectation_are_held_to_the_common_one(tmp_path: Path) -> None:
    """One compound category stands for any identity category; an own expectation goes before."""
    conflict = {"outcome": "rejected", "category": "identity.conflict"}
    length = {"outcome": "rejected", "category": "completion.length"}
    plain, own, other = _file(
        tmp_path,
        _item(expect=conflict),
        _item(id="t/own", expect=conflict, expect_under={"reject-null": {"outcome": "no_calls"}}),
        _item(id="t/other", expect=length, expect_under={"mine": length}),
    ).vectors

    def category(vector: Vector, rules: str) -> str | None:
        return next(expectations(vector, rules))[1].category

    assert category(plain, "reject-null") == "TOOL_FRAGMENT_ID"
    assert category(plain, "empty-continuation") == "identity.conflict"
    assert category(own, "reject-null") is None
    assert category(other, "reject-null") == "completion.length"
    assert [rules.name for rules, _ in expectations(own)] == [DEFAULT_RULES, "reject-null"]
    assert [rules.name for rules, _ in expectations(other)] == [DEFAULT_RULES]
    assert (unchecked(own), unchecked(other)) == (0, 1)


class _Merging(Assembler):
    """Break it: read every fragment as index 0."""

    def feed(self, data: bytes) -> None:
        super().feed(data.replace(b'"index": 1', b'"index": 0').replace(b'"index":1', b'"index":0'))


class _ByRead(Assembler):
    """Break it: decode each read alone."""

    def feed(self, data: bytes) -> None:
        super().feed(data.decode("utf-8", "replace").encode())


class _Forgiving(Assembler):
    """Break it: take every end for a clean one."""

    def finish(self, end: str = "unknown") -> Any:
        return super().finish("clean")


class _Raising(Assembler):
    """Break it: let a builtin exception out, with raw text in it."""

    def finish(self, end: str = "unknown") -> Any:
        raise RecursionError("canary")


@pytest.mark.parametrize(
    ("broken", "caught_by"),
    [
        (_Merging, "index/interleaved"),
        (_ByRead, "framing/utf8-parted-by-reads"),
        (_Forgiving, "completion/aborted-after-the-finish"),
        (_Raising, "index/interleaved"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_assembler_is_caught(
    broken: type[Assembler], caught_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check sees an assembler that merges, decodes reads alone, ignores the end, or raises."""
    monkeypatch.setattr(vector_check, "Assembler", broken)
    vector = _committed(caught_by)
    mismatches = check(vector)
    assert mismatches
    assert "canary" not in "".join(m.text(reveal=True) for m in mismatches)
