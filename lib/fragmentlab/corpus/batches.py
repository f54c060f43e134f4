"""Batches: named collections of streams with provenance and one kind of evidence.

Source: docs/design.md, section 7.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fragmentlab.assembler.assembler import End
from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.files import find_path, new_folder, open_file, read_bytes, reason
from fragmentlab.formats import SHA256, convert, decode

MANIFEST = "batch.json"
_MAX_MANIFEST = 64 << 20
_MAX_LINE = 512 << 20
"""The longest line of a part: the largest stream, all escaped."""
_ROWS = 64
_ESCAPED = "backslashreplace"
"""Half of a surrogate pair is written as the escape that JSON has for it."""
_RECORD_FIELDS = ("id", "provider", "server", "model", "tools", "fidelity", "end", "pair")


class BatchPart(msgspec.Struct, frozen=True):
    """A file of streams beside batch.json, ``*.jsonl`` or ``*.parquet``."""

    file: str
    sha256: Annotated[str, SHA256]
    count: Annotated[int, Meta(ge=0)]

    def __post_init__(self) -> None:
        if Path(self.file).name != self.file or self.file in ("", "..") or "\0" in self.file:
            raise ValueError("a part lies outside the batch's folder")


class Manifest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="schema",
    tag="fragmentlab-batch-v1",
):
    """What batch.json says of a batch's streams."""

    name: str
    evidence: Literal["controlled", "captured", "live", "imported"]
    provenance: str
    licence: str
    scrubbed: bool
    count: Annotated[int, Meta(ge=0)]
    parts: tuple[BatchPart, ...]
    private: Annotated[bool, Meta(description="Not scrubbed: nothing of it may be passed on.")] = False
    places: Annotated[dict[str, str], Meta(description="Stream id -> file and place in it.")] = {}
    synth: Annotated[dict[str, Any], Meta(description="The options that draw the batch again.")] = {}

    def __post_init__(self) -> None:
        if len({part.file for part in self.parts}) != len(self.parts):
            raise ValueError("parts names a file twice")
        if sum(part.count for part in self.parts) != self.count:
            raise ValueError("the parts hold another number of streams than count")


class StreamRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One stream as a line of a part; ``body`` where it is text, otherwise ``body_base64``."""

    id: str
    provider: str | None = None
    server: str | None = None
    model: str | None = None
    tools: Annotated[list[Any] | None, Meta(description="The known tools; null: unknown.")] = None
    fidelity: Literal["reads", "events", "chunks"] = "events"
    end: End = "unknown"
    pair: Annotated[str | None, Meta(description="Names a control and its target.")] = None
    body: str | UnsetType = UNSET
    body_base64: bytes | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.body is UNSET) == (self.body_base64 is UNSET):
            raise ValueError("exactly one of body and body_base64 must hold the stream")

    def __repr__(self) -> str:
        return "StreamRecord(...)"

    def to_stream(self, evidence: str) -> Stream:
        """Return the stream."""
        facts = {name: getattr(self, name) for name in _RECORD_FIELDS}
        facts["tools"] = None if self.tools is None else tuple(self.tools)
        body = self.body.encode("utf-8", "surrogatepass") if self.body else self.body_base64 or b""
        return Stream(body=body, evidence=evidence, **facts)


class Batch:
    """An opened batch; ``streams`` reads one stream at a time, once its part is proven to be unchanged."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self.name, self.evidence, self.count = manifest.name, manifest.evidence, manifest.count

    @property
    def sha256(self) -> str:
        """One hash over the parts' hashes: what a run records of the batch."""
        return hashlib.sha256("\n".join(part.sha256 for part in self.manifest.parts).encode()).hexdigest()

    def streams(self) -> Iterator[Stream]:
        """Yield every stream in order; raise InputError where a part is missing, altered or malformed."""
        for part in self.manifest.parts:
            count = 0
            with _verified(self.path / part.file, part) as file:
                for record in (_parquet if part.file.endswith(".parquet") else _jsonl)(file, part.file):
                    count += 1
                    yield record.to_stream(self.evidence)
            if count != part.count:
                raise InputError(
                    f"part {part.file} holds {count} streams, not {part.count} as batch.json says"
                )

    def stream(self, wanted: str) -> Stream:
        """Return one stream by id."""
        for stream in self.streams():
            if stream.id == wanted:
                return stream
        raise InputError(f"batch {self.name} has no stream of that id; list them with notebook 01")


def open_batch(path_or_name: str | Path) -> Batch:
    """Open a batch by its folder, or one of the kit's by name; raise InputError for anything else."""
    path = find_path(path_or_name, "batches")
    if not os.path.lexists(path / MANIFEST):
        raise InputError(f"{path_or_name} is no batch: it has no {MANIFEST}")
    manifest = decode(read_bytes(path / MANIFEST, _MAX_MANIFEST), Manifest, f"{path_or_name}: {MANIFEST}")
    return Batch(path, manifest)


@contextmanager
def _verified(path: Path, part: BatchPart) -> Iterator[BufferedReader]:
    try:
        with open_file(path) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != part.sha256:
                raise InputError(
                    f"part {part.file} is not what batch.json says (SHA-256 differs); import it again"
                )
            file.seek(0)
            yield file
    except OSError as error:
        raise InputError(f"part {part.file} cannot be read: {reason(error)}") from None


def _jsonl(file: BufferedReader, shown: str) -> Iterator[StreamRecord]:
    for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE), b""), 1):
        yield decode(line, StreamRecord, f"{shown}, line {number}")


def _parquet(file: BufferedReader, shown: str) -> Iterator[StreamRecord]:
    import pyarrow
    import pyarrow.parquet

    try:
        tables = pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=_ROWS)
        for number, row in enumerate((row for table in tables for row in table.to_pylist()), 1):
            where = f"{shown}, stream {number}"
            tools = decode(row["tools"], list[Any], f"{where}: tools") if row.get("tools") else None
            body = {"body_base64": row.pop("body", UNSET)}
            yield convert(row | body | {"tools": tools}, StreamRecord, where)
    except (pyarrow.ArrowException, ValueError):
        raise InputError(f"part {shown} is not a Parquet file of streams") from None


def write_batch(
    out: str | Path, streams: Iterable[Stream], *, scrubbed: bool, parquet: bool = False, **facts: Any
) -> Path:
    """Write a batch beside ``out`` and rename it into place when complete; return its folder.

    ``facts`` are the other fields of a Manifest, ``places`` as it is when the last stream was written. Git is
    told to ignore what is not scrubbed. Raises InputError where ``out`` exists or cannot be written; nothing
    is left then.
    """
    out = Path(out)
    with new_folder(out) as folder:
        if not scrubbed:
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        file = "streams.parquet" if parquet else "streams.jsonl"
        count = (_write_parquet if parquet else _write_jsonl)(folder / file, streams)
        with (folder / file).open("rb") as part:
            sha256 = hashlib.file_digest(part, "sha256").hexdigest()
        parts = (BatchPart(file, sha256, count),)
        manifest = Manifest(scrubbed=scrubbed, count=count, parts=parts, **facts)
        text = json.dumps(msgspec.to_builtins(manifest), indent=2, ensure_ascii=False)
        (folder / MANIFEST).write_text(text + "\n", "utf-8", _ESCAPED)
    return out


def record_of(stream: Stream) -> dict[str, Any]:
    """Return a stream as a record: ``body`` where it is UTF-8 text, otherwise ``body_base64``."""
    record = {name: getattr(stream, name) for name in _RECORD_FIELDS}
    try:
        return record | {"body": stream.body.decode()}
    except UnicodeDecodeError:
        return record | {"body_base64": base64.b64encode(stream.body).decode()}


def _write_jsonl(path: Path, streams: Iterable[Stream]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors=_ESCAPED, newline="\n") as file:
        for stream in streams:
            count += 1
            file.write(json.dumps(record_of(stream), ensure_ascii=False) + "\n")
    return count


def _write_parquet(path: Path, streams: Iterable[Stream]) -> int:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [(name, pyarrow.string()) for name in _RECORD_FIELDS] + [("body", pyarrow.binary())]
    )
    rows = ({name: getattr(stream, name) for name in (*_RECORD_FIELDS, "body")} for stream in streams)
    count = 0
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while some := list(islice(rows, _ROWS)):
            count += len(some)
            for row in some:
                row["tools"] = None if row["tools"] is None else json.dumps(row["tools"])
            writer.write_table(pyarrow.Table.from_pylist(some, schema))
    return count
