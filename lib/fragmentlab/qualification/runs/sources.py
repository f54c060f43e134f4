"""What a run is made over: batches and vector files, each a named source of streams with a hash and its
evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fragmentlab.assembler import Tools
from fragmentlab.corpus.batches import MANIFEST, Batch, open_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.corpus.vectors import Expectation, VectorFile, load_vectors, stream_of, vector_paths
from fragmentlab.disclosure import (
    KINDS,
    NameAliases,
    check_label,
    is_label,
    private_hash,
    refuse_private,
)
from fragmentlab.errors import InputError
from fragmentlab.files import find_path

REPLAYED_EVIDENCE = {"controlled": "controlled", "captured": "captured", "live": "captured"}
"""A batch's evidence -> what a replay of it is. A recording of live answers is captured once it is replayed:
nothing answered during this run."""


@dataclass(frozen=True, repr=False)
class Item:
    """One stream with what its row says of where it came from, and what a vector expects."""

    stream: Stream
    batch: str
    evidence: str
    provider: str | None = None
    server: str | None = None
    model: str | None = None
    expected: Expectation | None = None


@dataclass(frozen=True)
class RunSource:
    """A batch or vector file: ``sha256`` covers its content, ``declared`` is the evidence that it claims."""

    name: str
    kind: str
    sha256: str
    evidence: str
    declared: str
    count: int
    items: Callable[[], Iterator[Item]]
    private: bool = False

    def facts(self, runs: Path) -> dict[str, object]:
        """What a run's header keeps of it; the hash of private content is keyed."""
        names = ("name", "kind", "sha256", "evidence", "declared", "count")
        facts = {name: getattr(self, name) for name in names}
        return facts | {"sha256": private_hash(self.sha256.encode(), runs)} if self.private else facts


def open_sources(arguments: Sequence[str | Path]) -> list[RunSource]:
    """Open each argument: a batch's folder or name, a vector file, or a folder of vector files.

    Raises InputError for what is none of these, for a batch of imported outcomes and for two sources of one
    name.
    """
    sources = [source for argument in arguments for source in _open(find_path(argument, "batches"))]
    seen: set[str] = set()
    for source in sources:
        if source.name in seen:
            raise InputError(f"{source.name} is given twice; a run holds each source once")
        seen.add(source.name)
    return sources


def _open(path: Path) -> Iterator[RunSource]:
    if path.suffix == ".json" and not path.is_dir():
        yield _vectors(path)
    elif path.is_dir() and not (path / MANIFEST).exists() and any(path.glob("*.json")):
        for file in vector_paths([path]):
            yield _vectors(file)
    else:
        yield _batch(refuse_private(open_batch(path)))


def _batch(batch: Batch) -> RunSource:
    name = check_label(batch.name, "a batch's name")
    if batch.evidence not in REPLAYED_EVIDENCE:
        raise InputError(f"batch {name} holds nothing to replay; take outcomes with `runs import`")
    evidence = REPLAYED_EVIDENCE[batch.evidence]
    return RunSource(
        name,
        "batch",
        batch.sha256,
        evidence,
        batch.evidence,
        batch.count,
        lambda: _streams(batch, evidence),
        batch.manifest.private,
    )


def _streams(batch: Batch, evidence: str) -> Iterator[Item]:
    aliases, times = NameAliases(), dict[str, int]()
    for number, stream in enumerate(batch.streams(), 1):
        _check_tools(stream, f"batch {batch.name}, stream {number}")
        name = stream_id(stream.body)
        times[name] = times.get(name, 0) + 1
        if times[name] > 1:
            name = f"{name}-{times[name]}"
        provider, server, model = (aliases.show(kind, getattr(stream, kind)) for kind in KINDS)
        yield Item(replace(stream, id=name), batch.name, evidence, provider, server, model)


def _check_tools(stream: Stream, where: str) -> None:
    try:
        Tools(stream.tools or ())
    except ValueError as error:
        raise InputError(f"{where}: its tools cannot be used: {error}") from None


def _vectors(path: Path) -> RunSource:
    file = load_vectors(path)
    name = f"vectors/{check_label(path.stem, 'the name of a vector file')}"
    if unfit := sum(not is_label(vector.id) for vector in file.vectors):
        raise InputError(f"{path}: {unfit} vector id(s) cannot be shown; use topic/one-fault-name")
    return RunSource(
        name,
        "vectors",
        file.sha256,
        "controlled",
        "controlled",
        len(file.vectors),
        lambda: _cases(file, name),
    )


def _cases(file: VectorFile, name: str) -> Iterator[Item]:
    for vector in file.vectors:
        yield Item(stream_of(vector), name, "controlled", expected=vector.expect)
