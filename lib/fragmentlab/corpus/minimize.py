"""The smallest stream that is still refused for the same reason, as a vector that anyone can run."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from fragmentlab.assembler import Fault, Result, RuleSet
from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.assembler.chunks import InvalidEvent, decode_chunk
from fragmentlab.assembler.limits import LIMIT_ENTRIES, Limits
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.corpus.reducing import Reducer
from fragmentlab.corpus.scrubbing.scrub import Scrubber, Unscrubbable
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.vectors import DIAGNOSTIC_FACTS, SCHEMA, expectation_of
from fragmentlab.errors import InputError
from fragmentlab.wire.events import DONE, data_of, event, line_groups
from fragmentlab.wire.fragments import fragments_of, function_of

EventForm = dict[str, Any] | bytes
"""An event: its chunk where it is written as chunks are here, otherwise its bytes."""


def minimized_vector(
    stream: Stream, category: str | None = None, rules: str | RuleSet = DEFAULT_RULES, scrubbed: bool = True
) -> dict[str, Any]:
    """Return a vector file with one vector: the stream reduced as far as ``category`` is still its first.

    Without a category it is the stream's own. The stream is scrubbed first, so that the vector can be shared;
    pass False for one that was. What passes a limit is reduced under a smaller one. Work is bounded: where
    it is used up, the vector is the smallest so far. Raises InputError where the stream does not have the
    category, or cannot be scrubbed.
    """
    if scrubbed:
        try:
            stream = Scrubber().scrub(stream)
        except Unscrubbable as error:
            raise InputError(
                f"the stream cannot be scrubbed: {error}; --no-scrub keeps its content"
            ) from None
    wanted = _wanted(stream, category, rules)
    unknowing = replace(stream, tools=None)
    if _is_among(wanted, unknowing.assemble(rules, diagnose=True)):
        stream = unknowing
    stream = _with_small_limit(stream, wanted, rules)
    small = _reduced(stream, wanted, rules)
    final = small.assemble(rules)
    if final.category != wanted.category:
        raise InputError(f"{wanted.category} stays hidden behind {final.category}; minimize that first")
    return _vector_file(small, final)


def _wanted(stream: Stream, category: str | None, rules: str | RuleSet) -> Fault:
    result = stream.assemble(rules, diagnose=True)
    for fault in result.faults:
        if category in (None, fault.category):
            return fault
    if not result.faults:
        raise InputError(
            f"the stream is not refused (outcome {result.outcome}); there is no category to keep"
        )
    named = ", ".join(dict.fromkeys(fault.category for fault in result.faults))
    raise InputError(f"the stream does not have that category; it has {named}")


def _is_among(wanted: Fault, result: Result) -> bool:
    return any(_is_same(fault, wanted) for fault in result.faults)


def _is_same(found: Fault, wanted: Fault) -> bool:
    """Whether it is the wanted fault; the facts about identity must stay, or it would be another failure."""
    if found.category != wanted.category or found.flags != wanted.flags:
        return False
    is_identity = wanted.category.startswith("identity.") or wanted.category == COMPOUND
    return not is_identity or all(getattr(found, name) == getattr(wanted, name) for name in DIAGNOSTIC_FACTS)


def _with_small_limit(stream: Stream, wanted: Fault, rules: str | RuleSet) -> Stream:
    """Lower the limit that the stream passes, so that little is needed to pass it."""
    for name, entry in LIMIT_ENTRIES.items():
        if entry["category"] == wanted.category:
            most = getattr(stream.limits, name)
            for size in (1 << power for power in range(most.bit_length())):
                lowered = replace(stream, limits=replace(stream.limits, **{name: size}))
                if _is_among(wanted, lowered.assemble(rules)):
                    return lowered
    return stream


def _reduced(stream: Stream, wanted: Fault, rules: str | RuleSet) -> Stream:
    """Return the stream reduced, as an event stream; where another fault comes first, that one goes first."""

    def of(body: bytes) -> Stream:
        return replace(stream, body=body, framed="sse")

    def is_first(body: bytes) -> bool:
        return _is_among(wanted, of(body).assemble(rules))

    def is_hidden(body: bytes) -> bool:
        return _is_among(wanted, of(body).assemble(rules, diagnose=True))

    parts = _parts(stream, as_chunks=True)
    if not is_hidden(_joined(parts)):
        parts = _parts(stream, as_chunks=False)
    if not is_first(_joined(parts)):
        parts = _smaller(parts, Reducer(is_hidden))
    if is_first(_joined(parts)):
        parts = _smaller(parts, Reducer(is_first))
    return of(_joined(parts))


def _joined(parts: Iterable[EventForm]) -> bytes:
    return b"".join(part if isinstance(part, bytes) else event(part) for part in parts)


def _parts(stream: Stream, as_chunks: bool) -> list[EventForm]:
    """Return the events of a stream: as objects those that are chunks written as here, or all chunks."""
    parts: list[EventForm] = []
    for group in line_groups(stream.body, stream.framing):
        data = b"\n".join(data_of(group))
        own = event(data) if stream.framing == "jsonl" else b"".join(line.written for line in group)
        is_plain = all(line.name in (b"data", b"") for line in group)
        chunk = _chunk(data) if is_plain else None
        if chunk is not None and (as_chunks or event(chunk) == own):
            parts.append(chunk)
        elif as_chunks and data.strip(b" \t") == b"[DONE]":
            parts.append(DONE)
        else:
            parts.append(own)
    return parts


def _chunk(data: bytes) -> dict[str, Any] | None:
    try:
        return decode_chunk(data, Limits())
    except InvalidEvent:
        return None


def _smaller(parts: list[EventForm], reducer: Reducer) -> list[EventForm]:
    parts = reducer.items(parts, _joined)
    for simpler in _with_whole_arguments(parts):
        if reducer.holds(_joined(simpler)):
            parts = reducer.items(simpler, _joined)
            break
    for at in range(len(parts)):
        parts[at] = _smaller_part(parts, at, reducer)
    return parts


def _smaller_part(parts: list[EventForm], at: int, reducer: Reducer) -> EventForm:
    def body(part: EventForm) -> bytes:
        return _joined([*parts[:at], part, *parts[at + 1 :]])

    part = parts[at]
    if part == DONE:
        return part
    if isinstance(part, bytes):
        text = part.decode("utf-8", "surrogateescape")
        kept = reducer.text(text, lambda kept: body(kept.encode("utf-8", "surrogateescape")))
        return kept.encode("utf-8", "surrogateescape")
    # What one place lost can free another.
    while (smaller := reducer.value(copy.deepcopy(part), body)) != part:
        part = smaller
    return part


def _with_whole_arguments(parts: Sequence[EventForm]) -> Iterator[list[EventForm]]:
    """Yield the events with each call's arguments whole in its first fragment.

    Simple arguments come first, then the call's own.
    """
    for text in ("{}", "[]", None):
        changed = copy.deepcopy(list(parts))
        functions: dict[str, list[dict[str, Any]]] = {}
        for fragment in (fragment for part in changed for fragment in fragments_of(part)):
            function = function_of(fragment)
            if isinstance(function.get("arguments"), str):
                functions.setdefault(repr(fragment.get("index")), []).append(function)
        for first, *rest in functions.values():
            own = "".join(function["arguments"] for function in (first, *rest))
            first["arguments"] = own if text is None else text
            for function in rest:
                function["arguments"] = ""
        if functions:
            yield changed


def _vector_file(small: Stream, final: Result) -> dict[str, Any]:
    category = final.category or ""
    vector: dict[str, Any] = {
        "id": f"minimized/{category.lower().replace('.', '-').replace('_', '-')}",
        "comment": "The smallest stream that is refused for the same reason as a recorded one.",
        "flags": [],
        "source": "kit",
    }
    if small.tools is not None:
        vector["tools"] = list(small.tools)
    usual = asdict(Limits())
    if limits := {name: size for name, size in asdict(small.limits).items() if size != usual[name]}:
        vector["limits"] = limits
    vector |= _wire(small)
    if small.end != "clean":
        vector["end"] = small.end
    by_default = small.assemble()
    vector["expect"] = expectation_of(by_default)
    if final.rules != by_default.rules:
        vector["expect_under"] = {final.rules: expectation_of(final)}
    return {"schema": SCHEMA, "notes": {}, "vectors": [vector]}


def _wire(small: Stream) -> dict[str, Any]:
    """Return the fields that hold the body: chunk objects where they say all, text or bytes otherwise."""
    chunks = _parts(small, as_chunks=False)
    done = chunks[-1:] == [DONE]
    if done:
        chunks.pop()
    if all(isinstance(chunk, dict) for chunk in chunks):
        return {"events": chunks} | ({} if done else {"done": False})
    try:
        return {"sse": small.body.decode()}
    except UnicodeDecodeError:
        return {"reads_base64": [base64.b64encode(small.body).decode()]}
