"""Batches: written whole or not at all, read one stream at a time, and never silently altered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from fragmentlab.assembler import assemble
from fragmentlab.corpus.batches import Batch, open_batch, write_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.errors import InputError

SHA = "0" * 64
BODIES = (b'data: {"choices":[]}\n\n', b"data: \xff\n\n", 'data: {"a":"\u2028é"}\r\n\r\n'.encode())


def streams() -> Iterator[Stream]:
    for number, body in enumerate(BODIES):
        yield Stream(
            stream_id(body),
            body,
            "openai",
            None,
            f"m{number}",
            ("a", {"name": "b\ud800", "schema": {}}),
            end="clean",
        )


def write(out: Path, **options: object) -> Batch:
    facts = {"name": "n", "evidence": "captured", "provenance": "here", "licence": "MIT", "scrubbed": False}
    return open_batch(write_batch(out, streams(), **(facts | options)))  # type: ignore[arg-type]


@pytest.mark.parametrize("parquet", [False, True])
def test_what_is_written_is_read(tmp_path: Path, parquet: bool) -> None:
    """JSONL and Parquet parts give every stream back, bytes that are not UTF-8 included."""
    batch = write(tmp_path / "b", parquet=parquet)
    assert list(batch.streams()) == list(streams())
    assert batch.count == 3
    assert batch.stream(stream_id(BODIES[1])).body == BODIES[1]


@pytest.mark.parametrize("parquet", [False, True])
def test_an_altered_part_is_found(tmp_path: Path, parquet: bool) -> None:
    """One flipped byte anywhere in a part is InputError, before any stream of it is shown."""
    batch = write(tmp_path / "b", parquet=parquet)
    part = batch.path / batch.manifest.parts[0].file
    original = part.read_bytes()
    for at in range(0, len(original), max(1, len(original) // 40)):
        part.write_bytes(original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :])
        with pytest.raises(InputError, match="SHA-256 differs"):
            next(batch.streams())
    part.write_bytes(original[:-20])
    with pytest.raises(InputError, match="SHA-256 differs"):
        batch.stream(stream_id(BODIES[0]))
    part.unlink()
    with pytest.raises(InputError, match="No such file"):
        next(batch.streams())


def test_nothing_is_left_of_a_batch_that_failed(tmp_path: Path) -> None:
    """A source that fails midway leaves no folder behind, and an existing one is never overwritten."""

    def failing() -> Iterator[Stream]:
        yield next(streams())
        raise InputError("the source ended early")

    facts = {"name": "n", "evidence": "captured", "provenance": "", "licence": "", "scrubbed": True}
    with pytest.raises(InputError, match="ended early"):
        write_batch(tmp_path / "b", failing(), **facts)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "b")
    with pytest.raises(InputError, match="exists"):
        write(tmp_path / "b")


def test_a_batch_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """A file where a folder is needed is one clear line."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "file" / "b")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"schema": "other"}, "schema"),
        ({"evidence": "rumour"}, "evidence"),
        ({"count": None, "parts": None}, "count: expected int, got null"),
        ({"parts": [{"file": "../x", "sha256": SHA, "count": 0}]}, "outside"),
        ({"parts": [{"file": "x\0", "sha256": SHA, "count": 0}]}, "outside"),
        ({"parts": [{"file": "..", "sha256": SHA, "count": 0}]}, "outside"),
        ({"parts": [{"file": "x"}]}, r"parts\[0\]: .*missing required field sha256"),
        ({"parts": [{"file": "x", "sha256": SHA, "count": 3}] * 2}, "twice"),
        ({"count": 4}, "another number"),
        ({"count": True}, "count: expected int, got bool"),
    ],
)
def test_a_bad_manifest_is_named(tmp_path: Path, change: dict[str, object], word: str) -> None:
    """Each fault of batch.json is said in one line."""
    batch = write(tmp_path / "b")
    manifest = json.loads((batch.path / "batch.json").read_bytes())
    (batch.path / "batch.json").write_text(json.dumps(manifest | change))
    with pytest.raises(InputError, match=word):
        open_batch(batch.path)


def test_a_manifest_that_is_nested_without_end_is_no_manifest(tmp_path: Path) -> None:
    """Depth ends in one clear line."""
    (tmp_path / "batch.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="nested too deeply"):
        open_batch(tmp_path)


@pytest.mark.parametrize("field", ["provider", "server", "model", "pair"])
@pytest.mark.parametrize("value", [5, True, ["x"], {"a": 1}])
def test_a_record_with_another_kind_of_name_is_refused(tmp_path: Path, field: str, value: object) -> None:
    """Names are text or null, so that whoever shows or groups by them cannot fail."""
    line = json.dumps({"id": "s-0", "body": "", field: value}) + "\n"
    (tmp_path / "s.jsonl").write_text(line)
    part = {"file": "s.jsonl", "sha256": hashlib.sha256(line.encode()).hexdigest(), "count": 1}
    facts = {"name": "n", "evidence": "captured", "provenance": "", "licence": "", "scrubbed": True}
    manifest = {"schema": "fragmentlab-batch-v1", **facts, "count": 1, "parts": [part]}
    (tmp_path / "batch.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=f"s.jsonl, line 1: {field}: expected str [|] null"):
        next(open_batch(tmp_path).streams())


def _part(folder: Path, name: str, data: bytes) -> Batch:
    """Return a batch of one part with any bytes."""
    (folder / name).write_bytes(data)
    part = {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "count": 1}
    facts = {"name": "n", "evidence": "captured", "provenance": "", "licence": "", "scrubbed": True}
    manifest = {"schema": "fragmentlab-batch-v1", **facts, "count": 1, "parts": [part]}
    (folder / "batch.json").write_text(json.dumps(manifest))
    return open_batch(folder)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "s.jsonl, line 1 is not a JSON document"),
        (b'{"id": "s", "body": "", "body_base64": ""}', "exactly one of body and body_base64"),
        (b'{"id": "s"}', "exactly one of body and body_base64"),
        (b'{"id": "s", "body_base64": "CANARY"}', "body_base64: invalid base64"),
        (b'{"id": "s", "body": "", "end": "CANARY"}', "end: not one of the known values"),
        (b'{"id": 7, "body": ""}', "id: expected str"),
        (b'{"id": "s", "body": "", "tools": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_record_that_is_none_is_named_by_its_line(tmp_path: Path, line: bytes, said: str) -> None:
    """The message holds the line and the path of the fault, and nothing of the stream."""
    with pytest.raises(InputError) as raised:
        list(_part(tmp_path, "s.jsonl", line).streams())
    assert said in str(raised.value) and "CANARY" not in str(raised.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"tools": "[" * 100_000}, "stream 1: tools is nested too deeply"),
        ({"tools": "{}"}, "stream 1: tools: expected array"),
        ({"end": "CANARY"}, "end: not one of"),
        ({"pair": None, "body": None}, "expected bytes, got null"),
    ],
)
def test_a_parquet_row_that_is_no_stream_is_named(tmp_path: Path, row: dict[str, object], said: str) -> None:
    """A row is checked like a line of JSON."""
    schema = {"id": "s", "fidelity": "reads", "end": "clean", "body": b"data: [DONE]", "tools": None}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([schema | row]), tmp_path / "made.parquet")
    with pytest.raises(InputError) as raised:
        list(_part(tmp_path, "s.parquet", (tmp_path / "made.parquet").read_bytes()).streams())
    assert said in str(raised.value) and "CANARY" not in str(raised.value)


@pytest.mark.parametrize("name", ["missing", "missing/too", ""])
def test_an_unknown_batch_is_named(name: str) -> None:
    """A name that is no batch is one clear line."""
    with pytest.raises(InputError):
        open_batch(name)


def test_the_local_captures_hold_their_pairs() -> None:
    """The committed captures keep 13 pairs, 122 null continuations, and identical calls within a pair."""
    pairs: dict[str, list[tuple[int, list[tuple[str, str]]]]] = {}
    for stream in open_batch("captured-local").streams():
        assert stream.id == stream_id(stream.body)
        if stream.pair:
            result = assemble(stream.body, tools=stream.tools, end=stream.end, diagnose=True)
            assert result.outcome == "accepted"
            calls = [(call.name, call.arguments) for call in result.calls]
            pairs.setdefault(stream.pair, []).append((result.counts["null_continuations"], calls))
    assert len(pairs) == 13
    assert all(len(pair) == 2 and pair[0][1] == pair[1][1] for pair in pairs.values())
    assert all(min(nulls for nulls, _ in pair) == 0 for pair in pairs.values())
    assert sum(nulls for pair in pairs.values() for nulls, _ in pair) == 122
