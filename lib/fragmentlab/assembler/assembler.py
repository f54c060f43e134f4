"""The assembler: reads of bytes in, the outcome of one streamed response out, without any I/O.

Source: docs/design.md, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal

from fragmentlab.assembler.calls import Calls, FirstFault, Journal
from fragmentlab.assembler.chunks import Refused, decode_chunk, is_complete, is_other_protocol
from fragmentlab.assembler.continuation import Template, template_of
from fragmentlab.assembler.limits import Limits
from fragmentlab.assembler.proposal import Tool, Tools, arguments_faults, name_faults
from fragmentlab.assembler.result import Call, Fault, Result
from fragmentlab.assembler.rules import DEFAULT_RULES, RuleSet, load_rules
from fragmentlab.assembler.sse import Decoder, Event, JSONLinesDecoder, SSEDecoder

End = Literal["clean", "aborted", "unknown"]
Framing = Literal["sse", "jsonl"]
_READ = 1 << 20
_LESSONS = 3
"""How many templates may be made in a row that no later chunk fits."""
_CUT_NATIVELY = ("length", "max_tokens", "max_output_tokens")
_PADDABLE = ("role", "content", "tool_calls", "function_call")


class Assembler:
    """Assemble one response: ``feed`` its bytes in any reads, then ``finish``.

    ``rules`` is a shipped rule set's name or a RuleSet; ``tools`` the known tools (None: unknown, names are
    not checked); ``limits`` overrides by name. With ``diagnose`` every fault and a timeline are collected;
    without it the first fault ends the work. Raises ValueError for an unknown rule set, limit, framing or
    an unusable tool.
    """

    def __init__(
        self,
        rules: str | RuleSet = DEFAULT_RULES,
        tools: Tools | Iterable[str | Tool | Mapping[str, Any]] | None = None,
        limits: Limits | Mapping[str, int] | None = None,
        diagnose: bool = False,
        framing: Framing = "sse",
    ) -> None:
        if framing not in ("sse", "jsonl"):
            raise ValueError("framing must be sse or jsonl")
        self._rules = load_rules(rules)
        self._tools = tools if tools is None or isinstance(tools, Tools) else Tools(tools)
        self._limits = Limits.of(limits)
        self._journal = Journal(diagnose, self._limits)
        self._tolerances: Counter[str] = Counter()
        self._calls = Calls(self._rules, self._limits, self._journal, self._tolerances)
        decoder = SSEDecoder if framing == "sse" else JSONLinesDecoder
        self._decoder: Decoder = decoder(self._limits.event_bytes)
        self._events = 0
        self._chunks = 0
        self._finishes: list[str] = []
        self._done = False
        self._response_id: str | None = None
        self._stopped = False
        self._ended = False
        self._template: Template | None = None
        self._previous: Template | None = None
        self._lessons = 0 if diagnose else _LESSONS

    @property
    def fault(self) -> Fault | None:
        """The first fault so far; a caller that serves execution can stop reading."""
        return self._journal.faults[0] if self._journal.faults else None

    @property
    def done(self) -> bool:
        """Whether the end marker [DONE] was seen."""
        return self._done

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take one read of any size. After the first fault nothing is kept, unless diagnosing."""
        if self._ended:
            raise ValueError("this response is finished; use a new Assembler for the next one")
        if not isinstance(data, bytes):
            data = memoryview(data).tobytes()  # a view into a buffer that the next read overwrites
        try:
            for start in range(0, len(data), _READ):
                if self._stopped:
                    return
                part = data if len(data) <= _READ else data[start : start + _READ]
                self._take(self._decoder.feed(part))
        except FirstFault:
            self._stopped = True

    def finish(self, end: End = "unknown") -> Result:
        """Say how the transport ended and return the outcome; the calls of a refused response are never
        returned."""
        if end not in ("clean", "aborted", "unknown"):
            raise ValueError("end must be clean, aborted or unknown")
        if self._ended:
            raise ValueError("this response is finished; use a new Assembler for the next one")
        self._ended = True
        if not self._stopped:
            with suppress(FirstFault):
                self._finish(end)
        return self._result()

    def _take(self, events: list[Event]) -> None:
        """Take events in order; those that differ from a verified one only in their piece of arguments
        at once."""
        at = 0
        while at < len(events):
            template = self._template
            if template is not None:
                pieces = template.pieces(events, at, self._limits.events - self._events)
                if pieces and self._calls.extend(template.call, pieces):
                    template.hits += len(pieces)
                    self._events += len(pieces)
                    at += len(pieces)
                    continue
            try:
                self._learn(*events[at])
            except FirstFault:
                # What the same read held after it must not count: another read might have ended there.
                self._decoder.forget_after(at)
                raise
            at += 1

    def _retire(self) -> None:
        """Count what the template's chunks did besides their pieces."""
        template, self._template = self._template, None
        if template is None:
            return
        self._previous = template
        if not template.hits:
            return
        self._lessons = _LESSONS
        self._chunks += template.hits
        self._calls.fragments += template.hits
        for name, count in template.effects.items():
            if name == "null_continuations":
                self._calls.null_continuations += count * template.hits
            else:
                self._tolerances[name] += count * template.hits

    def _learn(self, kind: bytes | None, data: bytes | None, oversized: bool) -> None:
        """Take an event in full, and make a template of it where its only effect was a piece of arguments."""
        self._retire()
        calls, call = self._calls, self._calls.last
        if not self._lessons or call is None or kind is not None or not data or b'"arguments"' not in data:
            self._event(kind, data, oversized)
            return
        tolerances = self._tolerances.copy()
        before = (call.id, len(call.names), len(call.arguments) + 1, calls.fragments + 1, self._chunks + 1)
        nulls = calls.null_continuations
        self._event(kind, data, oversized)
        after = (call.id, len(call.names), len(call.arguments), calls.fragments, self._chunks)
        if before == after and call.id and calls.last is call and not self._finishes:
            self._lessons -= 1
            effects = dict(self._tolerances - tolerances)
            effects.pop("replacement_character", None)
            if "response_id_changed" not in effects:
                effects["null_continuations"] = calls.null_continuations - nulls
                self._template = template_of(data, call, effects, self._previous)

    def _event(self, kind: bytes | None, data: bytes | None, oversized: bool) -> None:
        counts = bool(data) or (oversized and data is not None)
        self._events += counts
        if counts and self._events > self._limits.events:
            self._report("limit.events", "event")
            raise FirstFault
        if kind == b"ping":
            return
        if kind == b"error" or oversized:
            category = "completion.error_event" if kind == b"error" else "limit.event_bytes"
            self._report(category, "event", after=not counts)
            return
        if not data:
            return
        if data[0] != 123 and data.strip(b" \t") == b"[DONE]":
            self._tolerances["repeated_done"] += self._done
            self._done = True
        elif self._done:
            self._report("event.after_done", "event")
        else:
            try:
                chunk = decode_chunk(data, self._limits)
            except Refused as refused:
                self._report(refused.category, "event", refused.flags)
                return
            self._chunk(chunk)

    def _chunk(self, chunk: dict[str, Any]) -> None:
        self._chunks += 1
        if chunk.get("error") is not None:
            self._report("completion.error_event", "event")
            return
        choices = chunk.get("choices", chunk)
        if is_other_protocol(chunk, choices):
            self._report("protocol.not_chat_completions", "event")
            return
        response_id = chunk.get("id")
        if response_id != self._response_id and response_id and type(response_id) is str:
            self._tolerances["response_id_changed"] += self._response_id is not None
            self._response_id = response_id
        if type(choices) is list:
            for choice in choices:
                self._choice(choice)
        elif choices is None:
            self._tolerances["null_padding.choices"] += 1
        elif choices is not chunk:
            self._report("event.invalid_chunk", "event")

    def _choice(self, choice: Any) -> None:
        if not isinstance(choice, dict):
            self._report("event.invalid_chunk", "choice")
            return
        index = choice.get("index")
        if index is not None and (type(index) is not int or index != 0):
            self._report("protocol.multiple_choices", "choice")
            return
        if choice.get("error") is not None:
            self._report("completion.error_event", "choice")
        delta = choice.get("delta", choice)
        if delta is None:
            self._tolerances["null_padding.delta"] += 1
        elif not isinstance(delta, dict):
            self._report("event.invalid_chunk", "choice")
        elif delta is not choice:
            self._delta(delta)
        reason = choice.get("finish_reason")
        if reason is not None:
            self._finish_reason(reason, choice.get("native_finish_reason"))

    def _delta(self, delta: dict[str, Any]) -> None:
        if None in delta.values():
            for name in _PADDABLE:
                if delta.get(name, "") is None:
                    self._tolerances[f"null_padding.{name}"] += 1
        if delta.get("function_call") is not None:
            self._report("protocol.legacy_function_call", "choice")
        fragments = delta.get("tool_calls")
        if type(fragments) is list:
            for fragment in fragments:
                self._calls.add(fragment, self._events, bool(self._finishes))
        elif fragments is not None:
            self._report("event.invalid_chunk", "choice")

    def _finish_reason(self, reason: Any, native: Any) -> None:
        if reason == "":
            self._tolerances["empty_finish"] += 1
            return
        self._tolerances["repeated_finish"] += bool(self._finishes)
        self._finishes.append(reason if type(reason) is str else "")
        if reason in ("stop", "tool_calls"):
            if type(native) is str and native.lower() in _CUT_NATIVELY:
                self._report("completion.length", "choice")
        elif reason in ("length", "content_filter"):
            self._report(f"completion.{reason}", "choice")
        else:
            self._report("completion.unknown_finish_reason", "choice")

    def _finish(self, end: End) -> None:
        self._retire()
        events, cut, was_cut = self._decoder.finish()
        for event in events:
            self._event(*event)
        if cut is not None and cut[1] is not None and is_complete(cut[1]):
            self._event(*cut)
        elif was_cut and self._finishes:
            self._tolerances["dropped_tail"] += 1
        if end == "unknown" and not self._done:
            self._tolerances["unknown_end"] += 1
        if not self._done:
            self._tolerances["missing_done"] += 1
        if end == "aborted" and not self._done:
            self._report("completion.transport_error", "completion")
        elif not self._finishes:
            self._report(
                "completion.no_finish_reason" if self._done else "completion.truncated", "completion"
            )
        elif "tool_calls" in self._finishes and not self._calls.by_index and not self._calls.fragments:
            self._report("completion.no_calls", "completion")
        elif set(self._finishes) <= {"stop", "tool_calls"}:
            self._check_proposal()

    def _check_proposal(self) -> None:
        """Check each call by ascending index; only a normally finished response has a proposal."""
        by_index = self._calls.by_index
        seen: set[str] = set()
        for index in sorted(by_index):
            call = by_index[index]
            self._tolerances["missing_type"] += not call.typed
            if not call.id:
                self._report("proposal.id_missing", "proposal", call=call.ordinal)
            elif call.id in seen:
                self._report("proposal.id_duplicate", "proposal", call=call.ordinal)
            else:
                seen.add(call.id)
            name = call.name
            for category, flags in name_faults(name, self._tools):
                self._report(category, "proposal", flags, call=call.ordinal)
            if not call.is_full:
                for category in arguments_faults(call.arguments_text, name, self._tools, self._limits):
                    self._report(category, "proposal", call=call.ordinal)
        if by_index and max(by_index) != len(by_index) - 1:
            self._tolerances["sparse_index"] += 1

    def _report(
        self,
        category: str,
        stage: str,
        flags: dict[str, Any] | None = None,
        *,
        after: bool = False,
        call: int | None = None,
    ) -> None:
        """Report a fault; ``after`` says that the event has no data and so no ordinal of its own."""
        event = None if stage in ("completion", "proposal") else self._events + after
        self._journal.report(Fault(category, stage, event=event, call=call, flags=flags or {}))

    def _result(self) -> Result:
        calls, faults = self._calls, tuple(self._journal.faults)
        outcome = "rejected" if faults else "accepted" if calls.by_index else "no_calls"
        accepted = calls.by_index.values() if outcome == "accepted" else ()
        counts = {
            "events": self._events,
            "chunks": self._chunks,
            "comments": self._decoder.comments,
            "fragments": calls.fragments,
            "calls": len(calls.by_index),
            "arguments_bytes": sum(call.arguments_bytes for call in calls.by_index.values()),
            "null_continuations": calls.null_continuations,
            "done": self._done,
            "names_checked": self._tools is not None,
            "omitted_faults": self._journal.omitted_faults,
            "omitted_rows": self._journal.omitted_rows,
        }
        return Result(
            outcome=outcome,
            category=faults[0].category if faults else None,
            rules=self._rules.name,
            executable=self._rules.executable,
            faults=faults,
            calls=tuple(
                Call(
                    call.index,
                    call.id or "",
                    call.name,
                    call.arguments_text,
                    calls.aliases.get(call.id or "", ""),
                )
                for call in sorted(accepted, key=lambda call: call.index)
            ),
            counts=counts,
            tolerances={name: count for name, count in sorted(self._tolerances.items()) if count},
            timeline=tuple(self._journal.rows) if self._journal.diagnose else (),
        )


def assemble(
    body: bytes,
    *,
    rules: str | RuleSet = DEFAULT_RULES,
    tools: Tools | Iterable[str | Tool | Mapping[str, Any]] | None = None,
    limits: Limits | Mapping[str, int] | None = None,
    diagnose: bool = False,
    framing: Framing = "sse",
    end: End = "unknown",
) -> Result:
    """Assemble a whole body at once: what Assembler gives for the same bytes in any reads."""
    assembler = Assembler(rules, tools, limits, diagnose, framing)
    assembler.feed(body)
    return assembler.finish(end)
