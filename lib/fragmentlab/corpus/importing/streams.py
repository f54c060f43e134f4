"""Recordings to streams: opens every source, keeps what is known of each body, and says what was left out.

The path is straight: sources to documents, through the container kinds to bodies, to streams.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from fragmentlab.assembler import Result
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.importing.budget import Budget, Unreadable
from fragmentlab.corpus.importing.containers import KINDS, har, notebook
from fragmentlab.corpus.importing.containers.packed import ENDS_EARLY
from fragmentlab.corpus.importing.documents import Body, Document, Refusal, open_all
from fragmentlab.corpus.importing.exchanges import NO_EXCHANGE
from fragmentlab.corpus.importing.providers import model_of, provider_of, server_of
from fragmentlab.corpus.importing.refusals import QUIET, REASONS, sentence
from fragmentlab.corpus.importing.sources import Source, content_of, expand, head_of, lines_of
from fragmentlab.corpus.importing.values import json_text, json_value
from fragmentlab.corpus.streams import (
    ENDS,
    FIDELITIES,
    MAX_STREAM_BYTES,
    Stream,
    framing_of,
    own_id,
    stream_id,
)
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.wire.protocols import CHAT, protocol_of

NEEDS_KIT = "needs the kit to be read: pip install 'fragmentlab[kit]'"
_WHY = {ModuleNotFoundError: NEEDS_KIT, RecursionError: "is nested too deeply"}
NOT_STREAMED = "answers that were not streamed"


@dataclass(frozen=True, repr=False)
class Imported:
    """One stream of an import, and where it came from."""

    stream: Stream
    file: Path
    place: str
    """The place in the file: positions, and words of known formats; no key of someone's own."""
    notes: tuple[str, ...] = ()
    """What was unusual or undone, each a closed phrase such as ``prefixes removed from lines``."""

    @cached_property
    def result(self) -> Result:
        """The outcome under the default rules, names unchecked; assembled once, when it is asked for."""
        return replace(self.stream, tools=None).assemble(diagnose=True)


@dataclass
class Summary:
    """What an import found: counts, and ``faults`` as (where, why) of each thing that was skipped for one."""

    files: int = 0
    streams: int = 0
    tool_streams: int = 0
    null_continuations: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    seems: dict[str, str] = field(default_factory=dict)
    """Each file that holds no stream, and what it seems to be instead."""
    places: dict[str, str] = field(default_factory=dict)
    """Stream id to file and place, for batches that are not scrubbed."""

    def count(self, imported: Imported) -> Imported:
        """Count a stream that was found."""
        counts = imported.result.counts
        self.streams += 1
        self.tool_streams += counts["fragments"] > 0
        self.null_continuations += counts["null_continuations"]
        self.noted.update(imported.notes)
        self.places[imported.stream.id] = f"{imported.file}: {imported.place}"
        return imported

    def lines(self) -> Iterator[str]:
        """Yield the summary as lines for a terminal: they name the person's files and quote nothing."""
        found = f"{self.streams} streams found, {self.tool_streams} of them with tool calls"
        yield f"{self.files} files read, {found}, {self.null_continuations} null continuations"
        for what, count in sorted(self.left_out.items()):
            yield f"left out: {what}: {count}"
        for what, count in sorted((+self.noted).items()):
            yield f"noted: {what}: {count}"
        for where, why in self.faults:
            yield f"skipped: {for_terminal(where)}: {why}"


def import_streams(
    sources: Sequence[str], summary: Summary, *, whole_files: bool = False
) -> Iterator[Imported]:
    """Yield every stream in ``sources``, filling ``summary``; never raises for a bad file.

    With ``whole_files`` a file that is an event stream of another protocol, or one JSON object without a
    recording in it, is yielded too: the assembler says what is wrong with it.
    """
    ids: Counter[str] = Counter()
    for source in expand(sources):
        if source.fault is not None:
            summary.faults.append((str(source.path), source.fault))
            continue
        summary.files += 1
        try:
            for imported in _streams(source, summary, whole_files):
                name = own_id(imported.stream.id, ids)
                yield replace(imported, stream=replace(imported.stream, id=name))
        except (Unreadable, InputError, ModuleNotFoundError, RecursionError) as error:
            why = _WHY.get(type(error), str(error))
            summary.seems.setdefault(str(source.path), why)
            summary.faults.append((str(source.path), why))


def evidence_of(sources: Sequence[str]) -> str:
    """Return the evidence of an import.

    It is that of the batches where only batches of one kind of evidence are named, else ``captured``.
    """
    kinds = {
        open_batch(source.path).evidence if source.is_batch else "captured" for source in expand(sources)
    }
    return kinds.pop() if len(kinds) == 1 else "captured"


def with_first(streams: Iterator[Any]) -> Iterator[Any] | None:
    """Return the same streams, or None where there is not one."""
    first = next(streams, None)
    return None if first is None else chain([first], streams)


def _streams(source: Source, summary: Summary, whole_files: bool) -> Iterator[Imported]:
    if source.is_batch:
        for stream in open_batch(source.path).streams():
            yield Imported(stream, source.path, "batch")
        return
    found = 0
    refused: list[Refusal] = []
    for document, budget in _documents(source.path):
        for item in open_all(document, KINDS, budget):
            made = _imported(item, source.path, whole_files) if isinstance(item, Body) else item
            if isinstance(made, Imported):
                if not whole_files:
                    budget.judge(made.stream.body)
                found += 1
                yield made
            elif made is not None:
                refused.append(made)
        summary.noted.update(budget.noted)
        if not (found or refused) and whole_files:
            whole = _lone_object(document, budget)
            if isinstance(whole, Body):
                yield Imported(_stream(whole), source.path, "document")
                return
            refused += [whole] if whole else []
    if not found and budget.noted[ENDS_EARLY]:
        refused = [Refusal("ends early")]
    otherwise = "no chunks" if document.head[:1] in ("{", "[") else "no recording"
    _account(source, found, refused, summary, otherwise)


def _documents(path: Path) -> Iterator[tuple[Document, Budget]]:
    """Yield a file, or each line of JSON Lines that are too long to be read at once."""
    if head_of(path).lstrip()[:1] == b"{":
        for number, line in enumerate(lines_of(path), 1):
            if line.strip():
                budget = Budget(len(line))
                yield Document(budget.take(line), ".jsonl", f"line[{number}]"), budget
        return
    content = content_of(path)
    budget = Budget(len(content))
    yield Document(budget.take(content), path.name), budget


def _lone_object(document: Document, budget: Budget) -> Body | Refusal | None:
    """Return one JSON object as the body that it may be, unless it is a recording or a request."""
    if document.head[:1] != "{":
        return None
    try:
        value = json_value(document.text, budget)
    except ValueError:
        return None
    if not isinstance(value, dict) or any(kind.recognise(document.inner(value)) for kind in (har, notebook)):
        return None
    if isinstance(value.get("messages"), list) and not ({"choices", "error"} & value.keys()):
        return Refusal("request")
    return Body((json_text(value) + "\n").encode(), "events")


def _imported(body: Body, path: Path, whole_files: bool) -> Imported | Refusal | None:
    """Make a stream of a body, or say why it is none; None for a second copy of it in its exchange."""
    if body.record is not None:
        return Imported(_stream_of_record(body.data, body.record), path, body.place or "document")
    protocol = CHAT if framing_of(body.data) == "jsonl" else protocol_of(body.data)
    asked_chat = "chat/completions" in (body.exchange.path or "") or body.is_file
    if not (protocol == CHAT or (protocol is None and asked_chat) or (whole_files and body.is_file)):
        return Refusal(f"streams of {protocol or 'no known protocol'}", is_fault=False)
    if len(body.data) > MAX_STREAM_BYTES:
        return Refusal(f"is one stream of more than {MAX_STREAM_BYTES >> 20} MiB; split it into responses")
    if _is_cut(body):
        return Refusal("a part of the body")
    if body.exchange is not NO_EXCHANGE:
        digest = hashlib.sha256(body.data).digest()
        if digest in body.exchange.bodies:
            return Refusal("second copies of a body in one exchange", is_fault=False)
        body.exchange.bodies.add(digest)
    return Imported(_stream(body), path, body.place or "document", body.notes)


def _is_cut(body: Body) -> bool:
    recorded = body.exchange.recorded_bytes
    return (
        recorded is not None
        and recorded > len(body.data)
        and b"[DONE]" not in body.data[-64:]
        and body.exchange.end != "aborted"
    )


def _stream(body: Body) -> Stream:
    exchange, data = body.exchange, body.data
    return Stream(
        id=stream_id(data),
        body=data,
        provider=provider_of(exchange.host, data),
        server=server_of(data),
        model=model_of(data) or exchange.model,
        tools=exchange.tools,
        fidelity=body.fidelity,
        end=exchange.end,
    )


def _stream_of_record(body: bytes, record: dict[str, Any]) -> Stream:
    tools = record.get("tools")
    return Stream(
        id=stream_id(body),
        body=body,
        provider=_text(record, "provider"),
        server=_text(record, "server"),
        model=_text(record, "model"),
        tools=tuple(tools) if isinstance(tools, list) else None,
        fidelity=record["fidelity"] if record["fidelity"] in FIDELITIES else "events",
        end=record["end"] if record["end"] in ENDS else "unknown",
        pair=_text(record, "pair"),
    )


def _text(record: dict[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None


def _account(source: Source, found: int, refused: list[Refusal], summary: Summary, otherwise: str) -> None:
    """Say what of a file is no stream: a fault where something could have been one, else a count."""
    soft = Counter(item.reason for item in refused if not item.is_fault)
    reason = next((item.reason for item in refused if item.is_fault), None)
    reason = reason or next((known for known in REASONS if known in soft), None) or next(iter(soft), None)
    if not found:
        summary.seems[str(source.path)] = sentence(reason or otherwise)
        if reason is None:
            summary.left_out["files without a streamed body"] += 1
        elif reason in soft and reason in REASONS and reason != "not streamed":
            summary.faults.append((str(source.path), sentence(reason)))
    for what, count in soft.items():
        if what == "not streamed" or what not in REASONS:
            summary.left_out[NOT_STREAMED if what in REASONS else what] += count
    for what, count in Counter(item.reason for item in refused if item.is_fault).items():
        if what in QUIET and not source.named:
            summary.left_out[QUIET[what]] += count
        else:
            often = f" ({count} times)" if count > 1 else ""
            summary.faults.append((str(source.path), sentence(what) + often))
