"""Batches: named collections of streams with provenance and one kind of evidence.

Source: docs/design.md, section 7.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fragmentlab.corpus.streams import ENDS, EVIDENCE, FIDELITIES, Stream, stream_id
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import find_path, new_folder, reason

SCHEMA = "fragmentlab-batch-v1"
MANIFEST = "batch.json"
_MANIFEST_FIELDS = ("name", "evidence", "provenance", "licence", "scrubbed", "count", "parts")
_RECORD_FIELDS = ("id", "provider", "server", "model", "tools", "fidelity", "end", "pair")
_ROWS = 256


class Batch:
    """An opened batch; ``streams`` reads one stream at a time and checks each part's SHA-256 at its end."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.name: str = manifest["name"]
        self.evidence: str = manifest["evidence"]
        self.count: int = manifest["count"]

    @property
    def sha256(self) -> str:
        """One hash over the parts' hashes: what a run records of the batch."""
        return hashlib.sha256(
            "\n".join(part["sha256"] for part in self.manifest["parts"]).encode()
        ).hexdigest()

    def streams(self) -> Iterator[Stream]:
        """Yield every stream in order; raise InputError where a part is missing, altered or not in the
        format."""
        for part in self.manifest["parts"]:
            path = self.path / part["file"]
            read = _parquet_records if path.suffix == ".parquet" else _jsonl_records
            count = 0
            for record in read(path, part["sha256"]):
                count += 1
                yield _stream_of(record, self.evidence, f"{for_terminal(part['file'])}, stream {count}")
            if count != part["count"]:
                raise InputError(
                    f"{self._shown(part)} holds {count} streams, not {part['count']} as its batch.json says"
                )

    def stream(self, wanted: str) -> Stream:
        """Return one stream by id."""
        for stream in self.streams():
            if stream.id == wanted:
                return stream
        raise InputError(
            f"batch {for_terminal(self.name)} has no stream of that id; list them with notebook 01"
        )

    def verify(self) -> None:
        """Read every part once; raise InputError at the first fault."""
        for _ in self.streams():
            pass

    def _shown(self, part: Mapping[str, Any]) -> str:
        return for_terminal(str(self.path / part["file"]))


def open_batch(path_or_name: str | Path) -> Batch:
    """Open a batch by its folder, or one of the kit's by name; raise InputError for anything else."""
    path = find_path(path_or_name, "batches")
    shown = for_terminal(str(path_or_name))
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
    except OSError as error:
        raise InputError(f"{shown} is no batch: batch.json cannot be read ({reason(error)})") from None
    except (ValueError, RecursionError):
        raise InputError(f"{shown}: batch.json is not JSON") from None
    _check_manifest(manifest, shown)
    return Batch(path, manifest)


def _check_manifest(manifest: Any, shown: str) -> None:
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise InputError(f'{shown}: batch.json needs "schema": "{SCHEMA}"')
    if missing := [name for name in _MANIFEST_FIELDS if name not in manifest]:
        raise InputError(f"{shown}: batch.json lacks {', '.join(missing)}")
    if manifest["evidence"] not in EVIDENCE:
        raise InputError(f"{shown}: evidence must be one of {', '.join(EVIDENCE)}")
    if not (
        isinstance(manifest["name"], str)
        and type(manifest["count"]) is int
        and isinstance(manifest["parts"], list)
    ):
        raise InputError(f"{shown}: batch.json has a field of a wrong type")
    for part in manifest["parts"]:
        if not (
            isinstance(part, dict)
            and isinstance(part.get("file"), str)
            and isinstance(part.get("sha256"), str)
            and type(part.get("count")) is int
        ):
            raise InputError(f"{shown}: a part needs file, sha256 and count")
        if Path(part["file"]).name != part["file"] or part["file"] in ("", "..") or "\0" in part["file"]:
            raise InputError(f"{shown}: a part lies outside the batch's folder")
    if len({part["file"] for part in manifest["parts"]}) != len(manifest["parts"]):
        raise InputError(f"{shown}: batch.json names a part twice")
    if sum(part["count"] for part in manifest["parts"]) != manifest["count"]:
        raise InputError(f"{shown}: the parts hold another number of streams than batch.json's count")


def _jsonl_records(path: Path, sha256: str) -> Iterator[dict[str, Any]]:
    digest = hashlib.sha256()
    shown = for_terminal(path.name)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                digest.update(line)
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    raise InputError(
                        f"{shown}, line {number} is not JSON; the batch was altered or cut off"
                    ) from None
    except OSError as error:
        raise InputError(f"part {shown} cannot be read: {reason(error)}") from None
    if digest.hexdigest() != sha256:
        raise InputError(
            f"part {shown} is not what batch.json says (SHA-256 differs); restore or import it again"
        )


def _parquet_records(path: Path, sha256: str) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    shown = for_terminal(path.name)
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise InputError(
                    f"part {shown} is not what batch.json says (SHA-256 differs); restore or import it again"
                )
            for rows in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=_ROWS):
                for row in rows.to_pylist():
                    yield row | {"tools": json.loads(row["tools"]) if row.get("tools") else None}
    except OSError as error:
        raise InputError(f"part {shown} cannot be read: {reason(error)}") from None
    except (pyarrow.ArrowException, ValueError):
        raise InputError(f"part {shown} is not a Parquet file of streams") from None


def _stream_of(record: Any, evidence: str, where: str) -> Stream:
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        raise InputError(f"{where} is not a stream record")
    body = record.get("body")
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    elif body is None and isinstance(record.get("body_base64"), str):
        try:
            body = base64.b64decode(record["body_base64"], validate=True)
        except ValueError:
            raise InputError(f"{where}: body_base64 is not base64") from None
    if not isinstance(body, bytes):
        raise InputError(f"{where} has neither body nor body_base64")
    if record.get("end", "unknown") not in ENDS or record.get("fidelity", "events") not in FIDELITIES:
        raise InputError(f"{where} has an unknown end or fidelity")
    if not all(isinstance(record.get(name), str | None) for name in ("provider", "server", "model", "pair")):
        raise InputError(f"{where}: provider, server, model and pair must be text or null")
    tools = record.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise InputError(f"{where}: tools must be a list or null")
    return Stream(
        id=record["id"],
        body=body,
        provider=record.get("provider"),
        server=record.get("server"),
        model=record.get("model"),
        tools=None if tools is None else tuple(tools),
        fidelity=record.get("fidelity", "events"),
        end=record.get("end", "unknown"),
        pair=record.get("pair"),
        evidence=evidence,
    )


def write_batch(
    out: str | Path,
    streams: Iterable[Stream],
    *,
    name: str,
    evidence: str,
    provenance: str,
    licence: str,
    scrubbed: bool,
    parquet: bool = False,
    extra: Mapping[str, Any] | None = None,
) -> Path:
    """Write a batch beside ``out`` and rename it into place when complete; return its folder.

    ``extra`` adds fields to batch.json. Raises InputError where ``out`` exists or cannot be written;
    nothing is left then.
    """
    out = Path(out)
    with new_folder(out) as folder:
        if not scrubbed:
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        file = "streams.parquet" if parquet else "streams.jsonl"
        count = (_write_parquet if parquet else _write_jsonl)(folder / file, streams)
        with (folder / file).open("rb") as part:
            sha256 = hashlib.file_digest(part, "sha256").hexdigest()
        manifest = {
            "schema": SCHEMA,
            "name": name,
            "evidence": evidence,
            "provenance": provenance,
            "licence": licence,
            "scrubbed": scrubbed,
            "count": count,
            "parts": [{"file": file, "sha256": sha256, "count": count}],
        } | dict(extra or {})
        (folder / MANIFEST).write_text(
            json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return out


def record_of(stream: Stream) -> dict[str, Any]:
    """Return the stream record of docs/design.md, section 7: ``body`` where it is UTF-8 text, otherwise
    ``body_base64``."""
    record = {name: getattr(stream, name) for name in _RECORD_FIELDS}
    try:
        return record | {"body": stream.body.decode()}
    except UnicodeDecodeError:
        return record | {"body_base64": base64.b64encode(stream.body).decode()}


def _write_jsonl(path: Path, streams: Iterable[Stream]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
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
    count = 0
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        rows: list[dict[str, Any]] = []
        for stream in streams:
            count += 1
            row = {name: getattr(stream, name) for name in _RECORD_FIELDS} | {"body": stream.body}
            rows.append(row | {"tools": None if stream.tools is None else json.dumps(stream.tools)})
            if len(rows) == _ROWS:
                writer.write_table(pyarrow.Table.from_pylist(rows, schema))
                rows = []
        if rows:
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
    return count


__all__ = ["Batch", "open_batch", "record_of", "stream_id", "write_batch"]
