"""Vector files: streams with the outcome that they must have, and how each is replayed.

Source: docs/design.md, section 7.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from fragmentlab.assembler import CATEGORIES, Limits, Result, Tools
from fragmentlab.assembler.assembler import End
from fragmentlab.assembler.limits import LIMIT_ENTRIES
from fragmentlab.assembler.proposal import known_tools
from fragmentlab.assembler.rules import Identity, IncomingKind
from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder, find_path, read_bytes, reason
from fragmentlab.formats import HugeNumber, StrictStruct, decode
from fragmentlab.wire.events import body

SCHEMA = "fragmentlab-vectors-v1"
LINE_ENDS_FLAG = "line-ends"
"""The flag of vectors about line ends: the only ones that are never replayed with other line ends."""
BYTE_BY_BYTE = "byte by byte"
MAX_SINGLE_BYTES = 1 << 16
"""A body of more bytes is replayed in as many reads of equal size instead of byte by byte."""
_MAX_BYTES = 256 << 20
# A noncharacter that no stream needs: it marks the text of a number that Python's own types cannot hold.
_NUMBER_MARK = "\ufdd0"
_MARKED_NUMBER = re.compile(r'"\\ufdd0([-+.0-9eE]+)"')
_NAME = {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}
_TOOL = {
    "oneOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "required": ["name", "schema"],
            "additionalProperties": False,
            "properties": {"name": {"type": "string", "minLength": 1}, "schema": {"type": "object"}},
        },
    ]
}
_LIMITS = {
    "minProperties": 1,
    "propertyNames": {"enum": [name for name, entry in LIMIT_ENTRIES.items() if entry["category"]]},
}
_ONE_BODY = {
    "oneOf": [{"required": ["events"]}, {"required": ["sse"]}, {"required": ["reads_base64"]}],
    "dependentRequired": {"done": ["events"]},
}

KnownTools = Annotated[
    tuple[Annotated[str | dict[str, Any], Meta(extra_json_schema=_TOOL)], ...] | None,
    Meta(description="Names, or names with a JSON Schema of the arguments; null or none given: unknown."),
]


class ExpectedCall(StrictStruct, frozen=True):
    """One call of an accepted stream, its arguments as text."""

    id: str
    name: str
    arguments: str

    def __repr__(self) -> str:
        return "ExpectedCall(...)"


class ExpectedDiagnostic(StrictStruct, frozen=True, omit_defaults=True):
    """Facts that the first fault must have."""

    incoming_kind: IncomingKind | UnsetType = UNSET
    previous_identity: Identity | UnsetType = UNSET
    incoming_empty: (
        Annotated[bool, Meta(description="Whether the incoming ID was the empty string.")] | UnsetType
    ) = UNSET


DIAGNOSTIC_FACTS = ExpectedDiagnostic.__struct_fields__


class Accepted(StrictStruct, frozen=True, tag_field="outcome", tag="accepted"):
    """The stream must be accepted with these calls, by ascending index."""

    outcome: ClassVar[str] = "accepted"
    category: ClassVar[None] = None
    diagnostic: ClassVar[ExpectedDiagnostic] = ExpectedDiagnostic()
    calls: Annotated[tuple[ExpectedCall, ...], Meta(min_length=1)]


class Rejected(StrictStruct, frozen=True, tag_field="outcome", tag="rejected"):
    """The stream must be rejected with this category."""

    outcome: ClassVar[str] = "rejected"
    calls: ClassVar[tuple[ExpectedCall, ...]] = ()
    category: Annotated[str, Meta(extra_json_schema={"enum": sorted(CATEGORIES)})]
    diagnostic: ExpectedDiagnostic = ExpectedDiagnostic()

    def __post_init__(self) -> None:
        if self.category not in CATEGORIES:
            raise ValueError("category is not a known one; see `fragmentlab explain`")


class NoCalls(StrictStruct, frozen=True, tag_field="outcome", tag="no_calls"):
    """The stream must end normally without a call."""

    outcome: ClassVar[str] = "no_calls"
    category: ClassVar[None] = None
    calls: ClassVar[tuple[ExpectedCall, ...]] = ()
    diagnostic: ClassVar[ExpectedDiagnostic] = ExpectedDiagnostic()


Expectation = Accepted | Rejected | NoCalls
"""The outcome that a stream must have."""


class Flag(StrictStruct, frozen=True):
    """What a flag stands for, and what a client that gets it wrong does."""

    description: Annotated[str, Meta(min_length=1)]
    links: tuple[Annotated[str, Meta(pattern="^https://")], ...] = ()


class Vector(StrictStruct, frozen=True, kw_only=True, dict=True):
    """A stream with its expectation: exactly one of events, sse and reads_base64 holds the stream."""

    id: Annotated[
        str,
        Meta(
            min_length=1,
            description="topic/one-fault-name",
            extra_json_schema={"pattern": "^[a-z0-9-]+/[a-z0-9.-]+$"},
        ),
    ]
    comment: str = ""
    flags: tuple[Annotated[str, Meta(extra_json_schema=_NAME)], ...] = ()
    source: Annotated[str, Meta(description="seed, kit, or a public report such as owner/repo#1.")] = ""
    tools: KnownTools | UnsetType = UNSET
    limits: Annotated[
        dict[str, Annotated[int, Meta(ge=0)]],
        Meta(description="Limits other than the defaults.", extra_json_schema=_LIMITS),
    ] = {}  # noqa: RUF012 - msgspec copies it
    events: Annotated[
        tuple[dict[str, Any], ...] | UnsetType,
        Meta(description="Chunk objects, each sent as one event: `data: `, the JSON, two line feeds."),
    ] = UNSET
    done: Annotated[bool | UnsetType, Meta(description="With events: whether [DONE] follows (true).")] = UNSET
    sse: Annotated[str | UnsetType, Meta(description="The body as text, sent as UTF-8.")] = UNSET
    reads_base64: Annotated[tuple[bytes, ...] | UnsetType, Meta(description="The body as network reads.")] = (
        UNSET
    )
    end: Annotated[End, Meta(description="How the transport ended.")] = "clean"
    expect: Expectation
    expect_under: Annotated[
        dict[str, Expectation], Meta(description="The outcome under other rule sets, by name.")
    ] = {}  # noqa: RUF012

    def __post_init__(self) -> None:
        if sum(body is not UNSET for body in (self.events, self.sse, self.reads_base64)) != 1:
            raise ValueError("exactly one of events, sse and reads_base64 must hold the stream")
        if self.done is not UNSET and self.events is UNSET:
            raise ValueError("done belongs to events; sse and reads_base64 hold their own end marker")
        self.known_tools, self.stream  # noqa: B018 - each says by a ValueError why it cannot be made

    def __repr__(self) -> str:
        return f"Vector({self.id})"

    @cached_property
    def known_tools(self) -> Tools | None:
        """The tools, compiled; None where they are unknown."""
        return known_tools(self.stream.tools)

    @cached_property
    def reads(self) -> tuple[bytes, ...]:
        """The body as network reads; one, where the file says nothing of reads."""
        if self.reads_base64 is not UNSET:
            return self.reads_base64
        if self.sse is not UNSET:
            try:
                return (self.sse.encode(),)
            except UnicodeEncodeError:
                raise ValueError(
                    "sse holds half a surrogate pair, which no UTF-8 text can; use reads_base64"
                ) from None
        chunks = (json.dumps(chunk, default=_marked) for chunk in self.events or ())
        return (body((_MARKED_NUMBER.sub(r"\1", chunk) for chunk in chunks), done=self.done is not False),)

    @cached_property
    def stream(self) -> Stream:
        """The stream that is put to a subject."""
        return Stream(
            self.id,
            b"".join(self.reads),
            tools=None if self.tools is UNSET else self.tools,
            end=self.end,
            evidence="controlled",
            limits=Limits.of(self.limits),
            framed="sse",
        )


class VectorDocument(StrictStruct, frozen=True, tag_field="schema", tag=SCHEMA):
    """Streams of Chat Completions tool calls with the outcome that they must have."""

    vectors: Annotated[tuple[Annotated[Vector, Meta(extra_json_schema=_ONE_BODY)], ...], Meta(min_length=1)]
    notes: Annotated[dict[str, Flag], Meta(description="Explains each flag once.")] = {}  # noqa: RUF012
    tools: KnownTools = None

    def __post_init__(self) -> None:
        known_tools(self.tools)


@dataclass(frozen=True)
class VectorFile:
    """A checked vector file: ``notes`` explains each flag; at least one vector, their ids unique."""

    path: Path
    sha256: str
    notes: Mapping[str, Flag]
    vectors: tuple[Vector, ...]


def replays(vector: Vector) -> Iterator[tuple[str, list[bytes]]]:
    """Yield (label, reads): whole, its own reads, byte by byte, seeded random reads, with CRLF, with CR.

    A vector about line ends keeps its own: one with the flag, or whose body holds a CR. Any other body has
    LF already. The CRLF body is parted at random, so that some reads end between CR and LF.
    """
    body = vector.stream.body
    yield "whole", [body]
    if len(vector.reads) > 1:
        yield "its own reads", list(vector.reads)
    step = -(-len(body) // MAX_SINGLE_BYTES) or 1
    yield BYTE_BY_BYTE, [body[i : i + step] for i in range(0, len(body), step)]
    rng = random.Random(zlib.crc32(vector.id.encode("utf-8", "replace")))
    yield "random reads", _random_reads(body, rng)
    if LINE_ENDS_FLAG not in vector.flags and b"\r" not in body:
        yield "CRLF", _random_reads(body.replace(b"\n", b"\r\n"), rng)
        yield "CR", [body.replace(b"\n", b"\r")]


def _random_reads(body: bytes, rng: random.Random) -> list[bytes]:
    """Part a body into some tens of reads, short ones among long ones."""
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(min(len(body), 24)))
    near = sorted({cut + offset for cut in cuts for offset in (0, 1)} | {0, len(body)})
    return [body[a:b] for a, b in pairwise(near)]


def load_vectors(path: str | Path) -> VectorFile:
    """Read and check a file; raise InputError that names a vector by its position and quotes nothing."""
    path = Path(path)
    text = read_bytes(path, _MAX_BYTES, "split it into files by topic")
    document = decode(text, VectorDocument, str(path))
    vectors: dict[str, Vector] = {}
    for number, vector in enumerate(document.vectors):
        if vector.id in vectors:
            raise InputError(f"{path}: vectors[{number}].id is that of an earlier vector")
        own = vector.tools is not UNSET
        vectors[vector.id] = vector if own else replace(vector, tools=document.tools)
    return VectorFile(path, hashlib.sha256(text).hexdigest(), document.notes, tuple(vectors.values()))


def expectation_of(result: Result) -> dict[str, Any]:
    """Return what a vector file says of a stream with this result."""
    if result.outcome == "no_calls":
        return {"outcome": "no_calls"}
    if result.outcome == "accepted":
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in result.calls]
        return {"outcome": "accepted", "calls": calls}
    fault = result.faults[0]
    facts = {name: getattr(fault, name) for name in DIAGNOSTIC_FACTS}
    known = {name: fact for name, fact in facts.items() if fact is not None}
    diagnostic = {"diagnostic": known} if fault.had_id is not None else {}
    return {"outcome": "rejected", "category": result.category} | diagnostic


def find_vector(wanted: str) -> Vector:
    """Return one of the kit's vectors by its id."""
    for path in vector_paths([data_folder("vectors")]):
        for vector in load_vectors(path).vectors:
            if vector.id == wanted:
                return vector
    raise InputError("no vector has that id; `fragmentlab vectors` names those of a file")


def vector_paths(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files, each folder replaced by its ``*.json``; InputError for a folder without any."""
    found: list[Path] = []
    for path in (find_path(path, "vectors") for path in paths):
        try:
            inside = sorted(path / name for name in os.listdir(path) if name.endswith(".json"))
        except NotADirectoryError:
            found.append(path)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from None
        else:
            if not inside:
                raise InputError(f"{path} holds no vector file (*.json)")
            found += inside
    return found


def _marked(number: HugeNumber) -> str:
    return _NUMBER_MARK + number.text
