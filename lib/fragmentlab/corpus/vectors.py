"""Vector files: streams with the outcome that they must have, and how each is replayed.

Source: docs/design.md, section 7.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import random
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from fragmentlab.assembler import CATEGORIES, IDENTITIES, INCOMING_KINDS, End, Limits, Tools
from fragmentlab.corpus.streams import ENDS, Stream
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import reason
from fragmentlab.wire.events import body

SCHEMA = "fragmentlab-vectors-v1"
LINE_ENDS_FLAG = "line-ends"
"""The flag of vectors about line ends: the only ones that are never replayed with other line ends."""
BYTE_BY_BYTE = "byte by byte"
MAX_SINGLE_BYTES = 1 << 16
"""A body of more bytes is replayed in as many reads of equal size instead of byte by byte."""
MAX_FILE_BYTES = 256 << 20
_FILE_KEYS = frozenset({"schema", "notes", "tools", "vectors"})
_BODY_KEYS = ("events", "sse", "reads_base64")
_VECTOR_KEYS = frozenset(
    "id comment flags source tools limits events sse reads_base64 done end expect expect_under".split()
)
_CALL_KEYS = ("id", "name", "arguments")
_DIAGNOSTIC_VALUES: dict[str, tuple[Any, ...]] = {
    "incoming_kind": INCOMING_KINDS,
    "previous_identity": IDENTITIES,
    "incoming_empty": (True, False),
}
# A noncharacter that no stream needs: it marks the text of a number that Python's own types cannot hold.
_NUMBER_MARK = "\ufdd0"
_MARKED_NUMBER = re.compile(r'"\\ufdd0([-+.0-9eE]+)"')


@dataclass(frozen=True)
class Expectation:
    """The outcome that a stream must have; ``calls`` are (id, name, arguments) by ascending index."""

    outcome: str
    category: str | None = None
    calls: tuple[tuple[str, str, str], ...] = field(default=(), repr=False)
    diagnostic: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Vector:
    """One stream with its expectation; ``tools`` as in the file (None: unknown), and compiled."""

    id: str
    reads: tuple[bytes, ...] = field(repr=False)
    tools: tuple[Any, ...] | None
    known_tools: Tools | None = field(repr=False)
    limits: Limits = field(repr=False)
    end: End
    expect: Expectation
    expect_under: Mapping[str, Expectation]
    flags: tuple[str, ...] = ()
    source: str = ""
    comment: str = ""


@dataclass(frozen=True)
class VectorFile:
    """A checked vector file: ``notes`` explains each flag; at least one vector, their ids unique."""

    path: Path
    notes: Mapping[str, Any]
    vectors: tuple[Vector, ...]


def body_of(vector: Vector) -> bytes:
    """Return the vector's body in one piece."""
    return b"".join(vector.reads)


def stream_of(vector: Vector) -> Stream:
    """Return the vector as the stream that is put to a subject."""
    return Stream(
        vector.id,
        body_of(vector),
        tools=vector.tools,
        end=vector.end,
        evidence="controlled",
        limits=vector.limits,
        framed="sse",
    )


def replays(vector: Vector) -> Iterator[tuple[str, list[bytes]]]:
    """Yield (label, reads): whole, its own reads, byte by byte, seeded random reads, with CRLF, with CR.

    A vector about line ends keeps its own: one with the flag, or whose body holds a CR. Any other body has
    LF already. The CRLF body is parted at random, so that some reads end between CR and LF.
    """
    body = body_of(vector)
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
    data = _read_json(path)
    try:
        return _vector_file(path, data)
    except _Bad as bad:
        raise InputError(f"{for_terminal(str(path))}: {bad}") from None


def vector_paths(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files, each folder replaced by its ``*.json``; InputError for a folder without any."""
    found: list[Path] = []
    for path in map(Path, paths):
        shown = for_terminal(str(path))
        try:
            inside = sorted(path / name for name in os.listdir(path) if name.endswith(".json"))
        except NotADirectoryError:
            found.append(path)
        except OSError as error:
            raise InputError(f"{shown} cannot be read: {reason(error)}") from None
        else:
            if not inside:
                raise InputError(f"{shown} holds no vector file (*.json)")
            found += inside
    return found


class _Bad(Exception):
    """What is wrong with a file, in words of ours."""


def _bad(message: str) -> NoReturn:
    raise _Bad(message)


def _read_json(path: Path) -> Any:
    shown = for_terminal(str(path))
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {reason(error)}") from None
    if len(text) > MAX_FILE_BYTES:
        raise InputError(f"{shown} is larger than {MAX_FILE_BYTES >> 20} MiB; split it into files by topic")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_int=_integer, parse_float=_float)
    except _Bad as bad:
        raise InputError(f"{shown}: {bad}") from None
    except RecursionError:
        raise InputError(f"{shown} is nested too deeply; write such a stream as sse text") from None
    except ValueError:
        raise InputError(f"{shown} is not a JSON file; vector files are {SCHEMA} documents") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        _bad("an object holds a key twice; write a stream that does so as sse text")
    return found


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= 4000 else _NUMBER_MARK + text


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else _NUMBER_MARK + text


def _vector_file(path: Path, data: Any) -> VectorFile:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        _bad(f'not a vector file: it needs "schema": "{SCHEMA}"')
    if data.keys() - _FILE_KEYS:
        _bad(f"unknown field; known are {', '.join(sorted(_FILE_KEYS))}")
    notes, vectors = data.get("notes", {}), data.get("vectors")
    if not isinstance(notes, dict):
        _bad("notes must be an object of flags")
    if not isinstance(vectors, list) or not vectors:
        _bad("vectors must be an array of at least one vector")
    tools, known = _tools(data, None, None)
    made, seen = [], set()
    for number, item in enumerate(vectors, 1):
        try:
            vector = _vector(item, tools, known)
            if vector.id in seen:
                _bad("its id is that of an earlier vector")
        except _Bad as bad:
            raise _Bad(f"vector {number}: {bad}") from None
        seen.add(vector.id)
        made.append(vector)
    return VectorFile(path, notes, tuple(made))


def _tools(
    item: dict[str, Any], otherwise: tuple[Any, ...] | None, known: Tools | None
) -> tuple[tuple[Any, ...] | None, Tools | None]:
    if "tools" not in item:
        return otherwise, known
    tools = item["tools"]
    if tools is None:
        return None, None
    if not isinstance(tools, list):
        _bad("tools must be null, or an array of names or of objects with name and schema")
    try:
        return tuple(tools), Tools(tools)
    except ValueError as error:
        _bad(f"tools: {error}")


def _vector(item: Any, tools: tuple[Any, ...] | None, known: Tools | None) -> Vector:
    if not isinstance(item, dict):
        _bad("not an object")
    if item.keys() - _VECTOR_KEYS:
        _bad(f"unknown field; known are {', '.join(sorted(_VECTOR_KEYS))}")
    vector_id = item.get("id")
    if not isinstance(vector_id, str) or not vector_id:
        _bad("id must be a nonempty string")
    flags = item.get("flags", [])
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        _bad("flags must be an array of strings")
    end = item.get("end", "clean")
    if end not in ENDS:
        _bad(f"end must be one of {', '.join(ENDS)}")
    under = item.get("expect_under", {})
    if not isinstance(under, dict):
        _bad("expect_under must be an object of rule sets")
    tools, known = _tools(item, tools, known)
    return Vector(
        id=vector_id,
        reads=_reads(item),
        tools=tools,
        known_tools=known,
        limits=_limits(item.get("limits")),
        end=end,
        expect=_expectation(item.get("expect"), "expect"),
        expect_under={name: _expectation(value, "expect_under") for name, value in under.items()},
        flags=tuple(flags),
        source=str(item.get("source", "")),
        comment=str(item.get("comment", "")),
    )


def _limits(overrides: Any) -> Limits:
    if overrides is not None and not isinstance(overrides, dict):
        _bad("limits must be an object")
    try:
        return Limits.of(overrides)
    except ValueError as error:
        _bad(f"limits: {error}")


def _reads(item: dict[str, Any]) -> tuple[bytes, ...]:
    present = [key for key in _BODY_KEYS if key in item]
    if len(present) != 1:
        _bad(f"exactly one of {', '.join(_BODY_KEYS)} must hold the stream")
    body = item[present[0]]
    if present == ["events"]:
        return (_body_of_events(body, item.get("done", True)),)
    if "done" in item:
        _bad("done belongs to events; sse and reads_base64 hold their own end marker")
    if present == ["sse"]:
        if not isinstance(body, str):
            _bad("sse must be a string")
        try:
            return (body.encode(),)
        except UnicodeEncodeError:
            _bad("sse holds half a surrogate pair, which no UTF-8 text can; use reads_base64")
    if not isinstance(body, list) or not all(isinstance(read, str) for read in body):
        _bad("reads_base64 must be an array of strings")
    try:
        return tuple(base64.b64decode(read, validate=True) for read in body)
    except (binascii.Error, ValueError):
        _bad("reads_base64 holds a read that is not Base64")


def _body_of_events(events: Any, done: Any) -> bytes:
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        _bad("events must be an array of objects; write other data as sse text")
    if not isinstance(done, bool):
        _bad("done must be true or false")
    return body((_MARKED_NUMBER.sub(r"\1", json.dumps(event)) for event in events), done)


def _expectation(value: Any, where: str) -> Expectation:
    if not isinstance(value, dict):
        _bad(f"{where} must be an object")
    outcome = value.get("outcome")
    beside = {"accepted": {"calls"}, "rejected": {"category", "diagnostic"}, "no_calls": set()}
    if not isinstance(outcome, str) or outcome not in beside:
        _bad(f"{where}: outcome must be one of {', '.join(beside)}")
    if value.keys() - beside[outcome] - {"outcome"}:
        _bad(f"{where}: unknown field beside outcome {outcome}")
    if outcome == "accepted":
        return Expectation(outcome, calls=_calls(value.get("calls"), where))
    if outcome == "no_calls":
        return Expectation(outcome)
    category, diagnostic = value.get("category"), value.get("diagnostic", {})
    if not isinstance(category, str) or category not in CATEGORIES:
        _bad(f"{where}: category is none that is known; see `fragmentlab explain`")
    if not isinstance(diagnostic, dict) or not all(
        key in _DIAGNOSTIC_VALUES and fact in _DIAGNOSTIC_VALUES[key] for key, fact in diagnostic.items()
    ):
        _bad(f"{where}: diagnostic must hold known values of {', '.join(_DIAGNOSTIC_VALUES)}")
    return Expectation(outcome, category, diagnostic=diagnostic)


def _calls(calls: Any, where: str) -> tuple[tuple[str, str, str], ...]:
    if not isinstance(calls, list) or not calls:
        _bad(f"{where}: an accepted stream needs an array of at least one call")
    for call in calls:
        if not isinstance(call, dict) or call.keys() != set(_CALL_KEYS):
            _bad(f"{where}: a call must hold {', '.join(_CALL_KEYS)} and nothing else")
        if not all(isinstance(value, str) for value in call.values()):
            _bad(f"{where}: {', '.join(_CALL_KEYS)} of a call must be strings")
    return tuple((call["id"], call["name"], call["arguments"]) for call in calls)
