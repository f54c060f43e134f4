"""The smallest stream that is still refused for the same reason, as a vector that anyone can run."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fragmentlab.assembler import Fault, Result, RuleSet, assemble
from fragmentlab.assembler.assembler import Framing
from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.assembler.chunks import InvalidEvent, decode_chunk
from fragmentlab.assembler.limits import Limits
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.corpus.reducing import Reducer
from fragmentlab.corpus.scrubbing.scrub import Scrubber, Unscrubbable
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.vectors import SCHEMA
from fragmentlab.errors import InputError
from fragmentlab.wire.events import event

_MAX_CHARACTERS = 4000
"""The longest text that is reduced character by character, once lines are gone."""
_KEPT_FACTS = ("incoming_kind", "previous_identity", "incoming_empty")


@dataclass(frozen=True, repr=False)
class _Candidate:
    """A stream being reduced: chunk objects and whether [DONE] follows, or text where those cannot say it."""

    chunks: list[Any] | None
    done: bool
    text: str

    @property
    def body(self) -> bytes:
        if self.chunks is None:
            return self.text.encode("utf-8", "surrogateescape")
        events = b"".join(map(event, self.chunks)).decode()
        return (events + ("data: [DONE]\n\n" if self.done else "")).encode()


def minimized_vector(
    stream: Stream, category: str | None = None, rules: str | RuleSet = DEFAULT_RULES, scrubbed: bool = True
) -> dict[str, Any]:
    """Return a vector file with one vector: the stream reduced as far as ``category`` is still its first.

    Without a category it is the stream's own. The stream is scrubbed first, so that the vector can be shared;
    pass False for one that was. Raises InputError where the stream does not have the category, or cannot be
    scrubbed.
    """
    if scrubbed:
        try:
            stream = Scrubber().scrub(stream)
        except Unscrubbable as error:
            raise InputError(
                f"the stream cannot be scrubbed: {error}; --no-scrub keeps its content"
            ) from None
    wanted = _wanted(stream, category, rules)
    stream = _with_few_tools(stream, rules, wanted)
    small = _reduced(
        stream,
        lambda body: _is_first(_faults(stream, body, rules, False), wanted),
        lambda body: any(_is_same(fault, wanted) for fault in _faults(stream, body, rules, True)),
    )
    final = assemble(small.body, rules=rules, tools=_tools(stream), end=stream.end)
    if final.category != wanted.category:
        raise InputError(f"{wanted.category} stays hidden behind {final.category}; minimize that first")
    return _vector_file(stream, small, final, rules)


def _tools(stream: Stream) -> Any:
    return stream.tools


def _wanted(stream: Stream, category: str | None, rules: str | RuleSet) -> Fault:
    result = assemble(
        stream.body, rules=rules, tools=_tools(stream), diagnose=True, framing=stream.framing, end=stream.end
    )
    for fault in result.faults:
        if category in (None, fault.category):
            return fault
    if not result.faults:
        raise InputError(
            f"the stream is not refused (outcome {result.outcome}); there is no category to keep"
        )
    named = ", ".join(dict.fromkeys(fault.category for fault in result.faults))
    raise InputError(f"the stream does not have that category; it has {named}")


def _with_few_tools(stream: Stream, rules: str | RuleSet, wanted: Fault) -> Stream:
    """Forget the known tools where the fault does not depend on them."""
    unknowing = replace(stream, tools=None)
    faults = _faults(unknowing, stream.body, rules, True, stream.framing)
    return unknowing if any(_is_same(fault, wanted) for fault in faults) else stream


def _faults(
    stream: Stream, body: bytes, rules: str | RuleSet, diagnose: bool, framing: Framing = "sse"
) -> tuple[Fault, ...]:
    """Return the faults of ``body`` in the stream's place; what is reduced is an event stream, as vectors
    are."""
    return assemble(
        body, rules=rules, tools=_tools(stream), end=stream.end, diagnose=diagnose, framing=framing
    ).faults


def _is_first(faults: tuple[Fault, ...], wanted: Fault) -> bool:
    return bool(faults) and _is_same(faults[0], wanted)


def _is_same(found: Fault, wanted: Fault) -> bool:
    """Whether it is the wanted fault; the facts about identity must stay, or it would be another failure."""
    if found.category != wanted.category or found.flags != wanted.flags:
        return False
    is_identity = wanted.category.startswith("identity.") or wanted.category == COMPOUND
    return not is_identity or all(getattr(found, name) == getattr(wanted, name) for name in _KEPT_FACTS)


def _reduced(stream: Stream, test: Callable[[bytes], bool], hidden: Callable[[bytes], bool]) -> _Candidate:
    """Reduce with ``test``; where it does not hold yet, first with ``hidden``, which lets other faults come
    before."""
    candidate = _as_chunks(stream)
    if candidate is None or not hidden(candidate.body):
        candidate = _as_text(stream)
    reducer = Reducer()
    if not test(candidate.body):
        candidate = _reduce(candidate, reducer, hidden)
    return _reduce(candidate, reducer, test) if test(candidate.body) else candidate


def _reduce(candidate: _Candidate, reducer: Reducer, test: Callable[[bytes], bool]) -> _Candidate:
    if candidate.chunks is None:
        return _reduce_text(candidate, reducer, test)
    if candidate.done and test(replace(candidate, done=False).body):
        candidate = replace(candidate, done=False)

    def holds_for(chunks: list[Any]) -> bool:
        return test(replace(candidate, chunks=chunks).body)

    chunks = reducer.items(candidate.chunks or [], holds_for)
    for simpler in _with_whole_arguments(chunks):
        if reducer.holds(lambda simpler=simpler: holds_for(simpler)):  # type: ignore[misc]
            chunks = reducer.items(simpler, holds_for)
            break
    for number in range(len(chunks)):

        def holds(chunk: Any, number: int = number, chunks: list[Any] = chunks) -> bool:
            return test(replace(candidate, chunks=[*chunks[:number], chunk, *chunks[number + 1 :]]).body)

        chunks = [*chunks[:number], reducer.value(chunks[number], holds), *chunks[number + 1 :]]
    return replace(candidate, chunks=chunks)


def _with_whole_arguments(chunks: list[Any]) -> Iterator[list[Any]]:
    """Yield the chunks with each call's arguments whole in its first fragment: simple ones first, then
    their own."""
    for text in ("{}", "[]", None):
        simpler = copy.deepcopy(chunks)
        functions: dict[str, list[dict[str, Any]]] = {}
        for fragment in _fragments(simpler):
            function = fragment.get("function")
            if isinstance(function, dict) and isinstance(function.get("arguments"), str):
                functions.setdefault(repr(fragment.get("index")), []).append(function)
        for first, *rest in functions.values():
            own = "".join(function["arguments"] for function in (first, *rest))
            first["arguments"] = own if text is None else text
            for function in rest:
                function["arguments"] = ""
        yield simpler


def _fragments(chunks: list[Any]) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        for choice in _items(chunk.get("choices")):
            delta = choice.get("delta") if isinstance(choice, dict) else None
            for fragment in _items(delta.get("tool_calls")) if isinstance(delta, dict) else ():
                if isinstance(fragment, dict):
                    yield fragment


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _reduce_text(candidate: _Candidate, reducer: Reducer, test: Callable[[bytes], bool]) -> _Candidate:
    def holds(text: str) -> bool:
        return test(_Candidate(None, False, text).body)

    lines = reducer.items(candidate.text.splitlines(keepends=True), lambda kept: holds("".join(kept)))
    text = "".join(lines)
    return replace(candidate, text=reducer.text(text, holds) if len(text) <= _MAX_CHARACTERS else text)


def _as_chunks(stream: Stream) -> _Candidate | None:
    """Read the stream as chunk objects, None where its framing or JSON is what is wrong with it."""
    chunks, done = [], False
    for line in stream.body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n"):
        data = line.removeprefix(b"data:").strip(b" ") if stream.framing == "sse" else line
        if not data or (stream.framing == "sse" and not line.startswith(b"data:")):
            continue
        if data == b"[DONE]":
            done = True
            continue
        try:
            chunks.append(decode_chunk(data, Limits()))
        except InvalidEvent:
            return None
    return _Candidate(chunks, done, "")


def _as_text(stream: Stream) -> _Candidate:
    if stream.framing == "sse":
        return _Candidate(None, False, stream.body.decode("utf-8", "surrogateescape"))
    events = b"".join(b"data: " + line + b"\n\n" for line in stream.body.split(b"\n") if line)
    return _Candidate(None, False, events.decode("utf-8", "surrogateescape"))


def _vector_file(stream: Stream, small: _Candidate, final: Result, rules: str | RuleSet) -> dict[str, Any]:
    category = final.category or ""
    vector: dict[str, Any] = {
        "id": f"minimized/{category.lower().replace('.', '-').replace('_', '-')}",
        "comment": "The smallest stream that is refused for the same reason as a recorded one.",
        "flags": [],
        "source": "kit",
    }
    if stream.tools is not None:
        vector["tools"] = list(stream.tools)
    vector |= _wire(small)
    if stream.end != "clean":
        vector["end"] = stream.end
    by_default = assemble(small.body, tools=_tools(stream), end=stream.end)
    vector["expect"] = _expectation(by_default)
    if final.rules != by_default.rules:
        vector["expect_under"] = {final.rules: _expectation(final)}
    return {"schema": SCHEMA, "notes": {}, "vectors": [vector]}


def _wire(small: _Candidate) -> dict[str, Any]:
    if small.chunks is not None and all(isinstance(chunk, dict) for chunk in small.chunks):
        return {"events": small.chunks} | ({} if small.done else {"done": False})
    try:
        return {"sse": small.body.decode()}
    except UnicodeDecodeError:
        return {"reads_base64": [base64.b64encode(small.body).decode()]}


def _expectation(result: Result) -> dict[str, Any]:
    if result.outcome == "accepted":
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in result.calls]
        return {"outcome": "accepted", "calls": calls}
    if result.outcome == "no_calls":
        return {"outcome": "no_calls"}
    facts = {name: getattr(result.faults[0], name) for name in _KEPT_FACTS}
    diagnostic = {name: value for name, value in facts.items() if value is not None}
    return {"outcome": "rejected", "category": result.category} | (
        {"diagnostic": diagnostic} if diagnostic and result.faults[0].had_id is not None else {}
    )
