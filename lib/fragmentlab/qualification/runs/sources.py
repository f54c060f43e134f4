"""What a run is made over: batches and vector files, each a named source of streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from fragmentlab.assembler import Tools
from fragmentlab.corpus.batches import MANIFEST, Batch, open_batch
from fragmentlab.corpus.streams import Stream, own_id, stream_id
from fragmentlab.corpus.vectors import Expectation, load_vectors, vector_paths
from fragmentlab.disclosure import KINDS, NameAliases, check_label, is_label, refuse_private
from fragmentlab.errors import InputError
from fragmentlab.files import find_path
from fragmentlab.formats import SHA256, StrictStruct

REPLAYED_EVIDENCE = {"controlled": "controlled", "captured": "captured", "live": "captured"}
"""A batch's evidence -> what a replay of it is. A recording of live answers is captured once it is replayed:
nothing answered during this run."""
Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, repr=False)
class Item:
    """One stream as its row names it, with its batch and what a vector expects."""

    stream: Stream
    batch: str
    expected: Expectation | None = None


class SourceFacts(StrictStruct, frozen=True):
    """One batch, vector file or log that the run was made over."""

    name: str
    kind: str
    sha256: Annotated[str, SHA256]
    evidence: str
    declared: Annotated[str, Meta(description="The evidence that the batch claims.")]
    count: Count


@dataclass(frozen=True)
class RunSource:
    """A batch or vector file; what is ``private`` must be recorded by keyed hashes."""

    facts: SourceFacts
    items: Callable[[], Iterator[Item]]
    private: bool = False


def open_sources(arguments: Sequence[str | Path]) -> list[RunSource]:
    """Open each argument: a batch's folder or name, a vector file, or a folder of vector files.

    Raises InputError for what is none of these, for a batch of imported outcomes and for two sources of one
    name.
    """
    sources = [source for argument in arguments for source in _open(find_path(argument, "batches"))]
    for name, times in Counter(source.facts.name for source in sources).items():
        if times > 1:
            raise InputError(f"{name} is given twice; a run holds each source once")
    return sources


def _open(path: Path) -> Iterator[RunSource]:
    if path.suffix == ".json" and not path.is_dir():
        yield _vectors(path)
    elif path.is_dir() and not (path / MANIFEST).exists() and any(path.glob("*.json")):
        yield from map(_vectors, vector_paths([path]))
    else:
        yield _batch(refuse_private(open_batch(path)))


def _batch(batch: Batch) -> RunSource:
    name = check_label(batch.name, "a batch's name")
    evidence = REPLAYED_EVIDENCE.get(batch.evidence)
    if evidence is None:
        raise InputError(f"batch {name} holds nothing to replay; take outcomes with `runs import`")
    facts = SourceFacts(name, "batch", batch.sha256, evidence, batch.evidence, batch.count)
    return RunSource(facts, lambda: _streams(batch, evidence), batch.manifest.private)


def _streams(batch: Batch, evidence: str) -> Iterator[Item]:
    aliases, ids = NameAliases(), Counter[str]()
    for number, stream in enumerate(batch.streams(), 1):
        try:
            Tools(stream.tools or ())
        except ValueError as error:
            raise InputError(
                f"batch {batch.name}, stream {number}: its tools cannot be used: {error}"
            ) from None
        names: dict[str, Any] = {kind: aliases.show(kind, getattr(stream, kind)) for kind in KINDS}
        name = own_id(stream_id(stream.body), ids)
        yield Item(replace(stream, id=name, evidence=evidence, **names), batch.name)


def _vectors(path: Path) -> RunSource:
    file = load_vectors(path)
    name = f"vectors/{check_label(path.stem, 'the name of a vector file')}"
    if unfit := sum(not is_label(vector.id) for vector in file.vectors):
        raise InputError(f"{path}: {unfit} vector id(s) cannot be shown; use topic/one-fault-name")
    facts = SourceFacts(name, "vectors", file.sha256, "controlled", "controlled", len(file.vectors))
    return RunSource(facts, lambda: (Item(v.stream, name, v.expect) for v in file.vectors))
