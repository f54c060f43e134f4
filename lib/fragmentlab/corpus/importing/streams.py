"""Recordings to streams: reads every source, keeps what is known of each body, and counts what was left out
and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.importing.documents import read_contents
from fragmentlab.corpus.importing.finder import Finder, Found
from fragmentlab.corpus.importing.interactions import Facts, facts_of
from fragmentlab.corpus.importing.providers import model_of, provider_of, server_of
from fragmentlab.corpus.importing.sources import Source, expand
from fragmentlab.corpus.importing.unpack import Budget, Unreadable
from fragmentlab.corpus.streams import ENDS, FIDELITIES, MAX_FILE_BYTES, Stream, framing_of, own_id, stream_id
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.wire.protocols import CHAT, lost_blank_lines, protocol_of

_HAS_FRAGMENTS = re.compile(rb'"tool_calls"\s*:\s*\[\s*\{')


@dataclass(frozen=True, repr=False)
class Imported:
    """One stream of an import, and where it came from."""

    stream: Stream
    file: Path
    place: str
    """The place in the file: positions, and words of known formats; no key of someone's own."""
    notes: tuple[str, ...] = ()
    """What was unusual or undone, each a closed phrase such as ``prefixes removed from lines``."""


@dataclass
class Summary:
    """What an import found. ``faults`` are (where, why) of what was skipped for a fault; the rest are
    counts."""

    files: int = 0
    streams: int = 0
    tool_streams: int = 0
    null_continuations: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    """Stream id to file and place, for batches that are not scrubbed."""

    def lines(self) -> Iterator[str]:
        """Yield the summary as lines for a terminal; file names are the person's own, nothing is quoted
        from inside."""
        found = f"{self.streams} streams found, {self.tool_streams} of them with tool calls"
        yield f"{self.files} files read, {found}, {self.null_continuations} null continuations"
        for what, count in sorted(self.left_out.items()):
            yield f"left out: {what}: {count}"
        for what, count in sorted((+self.noted).items()):
            yield f"noted: {what}: {count}"
        for where, why in self.faults:
            yield f"skipped: {for_terminal(where)}: {why}"


def import_streams(sources: Sequence[str], summary: Summary) -> Iterator[Imported]:
    """Yield the stream of every Chat Completions body in ``sources``, filling ``summary``; never raises for
    a bad file."""
    ids: Counter[str] = Counter()
    for source in expand(sources):
        if source.fault is not None:
            summary.faults.append((str(source.path), source.fault))
            continue
        summary.files += 1
        try:
            yield from _streams(source, summary, ids)
        except Unreadable as reason:
            _skip_file(source, str(reason), summary)
        except InputError as error:
            summary.faults.append((str(source.path), str(error)))


def evidence_of(sources: Sequence[str]) -> str:
    """Return the evidence of an import: that of the batches where only such of one kind are named, else
    ``captured``."""
    kinds = {
        open_batch(source.path).evidence if source.is_batch else "captured" for source in expand(sources)
    }
    return kinds.pop() if len(kinds) == 1 else "captured"


def with_first(streams: Iterator[Stream]) -> Iterator[Stream] | None:
    """Return the same streams, or None where there is not one."""
    first = next(streams, None)
    return None if first is None else chain([first], streams)


def _skip_file(source: Source, why: str, summary: Summary) -> None:
    if why in ("is binary", "is empty") and not source.named:
        summary.left_out[f"files that are {why.removeprefix('is ')}"] += 1
    else:
        summary.faults.append((str(source.path), why))


def _streams(source: Source, summary: Summary, ids: Counter[str]) -> Iterator[Imported]:
    if source.is_batch:
        for stream in open_batch(source.path).streams():
            yield _counted(_unique(stream, ids), source.path, "batch", summary)
        return
    before = summary.streams, summary.left_out.total(), len(summary.faults)
    finder = Finder(Budget())
    taken: set[tuple[int, int, str]] = set()
    for document, found in _found(source.path, finder, summary):
        made = _stream(found, source.path, summary)
        if made is None:
            continue
        key = (document, facts_of(found.steps).entry, made.id)
        if key in taken:
            summary.left_out["second copies of a body in one exchange"] += 1
            continue
        taken.add(key)
        yield _counted(_unique(made, ids), source.path, found.place, summary)
    after = summary.streams, summary.left_out.total(), len(summary.faults)
    _account(source, finder, summary, found_any=after[0] > before[0], is_named=after != before)


def _found(path: Path, finder: Finder, summary: Summary) -> Iterator[tuple[int, Found]]:
    """Yield each body with the number of its document, from which positions count."""
    contents = read_contents(path, finder.budget)
    summary.noted.update(contents.notes)
    if contents.body is not None:
        jsonl = framing_of(contents.body) == "jsonl"
        protocol = CHAT if jsonl else protocol_of(contents.body)
        yield 0, Found(contents.body, "chunks" if jsonl else "events", (), protocol)
        return
    for number, document in enumerate(contents.documents):
        for found in finder.find(document):
            yield number, found


def _stream(found: Found, path: Path, summary: Summary) -> Stream | None:
    """Make a stream of a body, or count why it is none."""
    if found.record is not None:
        return _stream_of_record(found.body, found.record)
    facts = facts_of(found.steps)
    asked_chat = facts.path is not None and "chat/completions" in facts.path
    if found.protocol != CHAT and not (found.protocol is None and asked_chat):
        summary.left_out[f"streams of {found.protocol or 'no known protocol'}"] += 1
        return None
    where = f"{path} at {found.place}"
    if len(found.body) > MAX_FILE_BYTES:
        summary.faults.append((where, f"is a body of more than {MAX_FILE_BYTES >> 20} MiB"))
        return None
    if _is_cut(found.body, facts):
        summary.faults.append((where, "the recorder kept only a part of the body"))
        return None
    if lost_blank_lines(found.body):
        summary.noted["streams that lost their blank lines, kept as recorded"] += 1
    return _with_facts(found, facts)


def _is_cut(body: bytes, facts: Facts) -> bool:
    return (
        facts.recorded_bytes is not None
        and facts.recorded_bytes > len(body)
        and b"[DONE]" not in body[-64:]
        and facts.end != "aborted"
    )


def _with_facts(found: Found, facts: Facts) -> Stream:
    body = found.body
    return Stream(
        id=stream_id(body),
        body=body,
        provider=provider_of(facts.host, body),
        server=server_of(body),
        model=model_of(body) or facts.model,
        tools=facts.tools,
        fidelity=found.fidelity,
        end=facts.end,
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


def _unique(stream: Stream, ids: Counter[str]) -> Stream:
    """Give the same bytes recorded again an id of their own: each exchange counts."""
    name = own_id(stream.id, ids)
    return stream if name == stream.id else replace(stream, id=name)


def _counted(stream: Stream, path: Path, place: str, summary: Summary) -> Imported:
    counts = replace(stream, tools=None).assemble(diagnose=True).counts
    summary.streams += 1
    summary.tool_streams += counts["fragments"] > 0 or (
        lost_blank_lines(stream.body) and _HAS_FRAGMENTS.search(stream.body) is not None
    )
    summary.null_continuations += counts["null_continuations"]
    summary.places[stream.id] = f"{path}: {place}"
    return Imported(stream, path, place)


def _account(source: Source, finder: Finder, summary: Summary, found_any: bool, is_named: bool) -> None:
    summary.noted["packed bodies that end early, read to their end"] += finder.budget.cut
    for why in finder.broken:
        summary.faults.append((str(source.path), f"a body {why}"))
    whole = finder.seen["answers that were not streamed"]
    trace = finder.seen["assembled messages of a trace"]
    if trace and not found_any:
        summary.faults.append(
            (
                str(source.path),
                "holds only assembled messages, which cannot show how fragments came; record the wire",
            )
        )
    elif whole:
        summary.left_out["answers that were not streamed"] += whole
    if not (is_named or trace or whole or finder.broken):
        summary.left_out["files without a streamed body"] += 1
