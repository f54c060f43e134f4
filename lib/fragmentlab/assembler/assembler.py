"""The assembler: reads of bytes in, the outcome of one streamed response out, without any I/O.

Its rules are those of docs/design.md, section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from .calls import Calls, Diagnosis, FirstFault
from .chunks import InvalidEvent, compression_of, decode_chunk, is_complete, other_protocol
from .limits import Limits
from .proposal import AnyTools, arguments_faults, is_self_repeating, known_tools, name_faults
from .result import Call, Fault, Outcome, Result, Stage
from .rules import DEFAULT_RULES, RuleSet, load_rules
from .sse import JSONLinesDecoder, SSEDecoder

End = Literal["clean", "aborted", "unknown"]
Framing = Literal["sse", "jsonl"]
_READ = 1 << 20
_HEAD = 8
_CUT_NATIVELY = ("length", "max_tokens", "max_output_tokens")
_PADDABLE = ("role", "content", "tool_calls", "function_call")
_UNNAMED = (None, b"", b"message")
_UNREADABLE = frozenset(
    {
        "event.invalid_json",
        "event.invalid_utf8",
        "limit.event_bytes",
        "completion.truncated",
        "completion.transport_error",
    }
)
"""Categories that compressed bytes are refused with."""


class Assembler:
    """Assemble one response: ``feed`` its bytes in any reads, then ``finish``.

    ``rules`` is a shipped rule set's name or a RuleSet; ``tools`` the known tools: names, a request's own
    ``tools`` list, or objects with a name and a schema (None: unknown, names are not checked); ``limits``
    overrides by name. With ``diagnose`` every fault and a timeline are collected; without it the first fault
    ends the work. Raises ValueError for an unknown rule set, limit, framing or an unusable tool.

    >>> assembler = Assembler(tools=["lookup_city"])
    >>> for read in response.iter_bytes():
    ...     assembler.feed(read)
    >>> assembler.finish(end="clean").outcome
    'accepted'
    """

    def __init__(
        self,
        rules: str | RuleSet = DEFAULT_RULES,
        tools: AnyTools | None = None,
        limits: Limits | Mapping[str, int] | None = None,
        diagnose: bool = False,
        framing: Framing = "sse",
    ) -> None:
        if framing not in ("sse", "jsonl"):
            raise ValueError("framing must be sse or jsonl")
        self._rules = load_rules(rules)
        self._tools = known_tools(tools)
        self._limits = Limits.of(limits)
        self._diagnosis = Diagnosis(diagnose, self._limits)
        self._tolerances: defaultdict[str, int] = defaultdict(int)
        self._calls = Calls(self._rules, self._limits, self._diagnosis, self._tolerances)
        self._decoder = (SSEDecoder if framing == "sse" else JSONLinesDecoder)(self._limits.event_bytes)
        self._head = b""
        self._events = 0
        self._pings = 0
        self._chunks = 0
        self._finishes: list[str] = []
        self._done = False
        self._response_id: str | None = None
        self._delta_came = False
        self._choices_came = False
        self._first_named: int | None = None
        self._repeated_names = 0
        self._stopped = False
        self._ended = False

    @property
    def fault(self) -> Fault | None:
        """The first fault so far; a caller that serves execution can stop reading."""
        return self._diagnosis.faults[0] if self._diagnosis.faults else None

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
        if len(self._head) < _HEAD:
            self._head += data[: _HEAD - len(self._head)]
        try:
            for start in range(0, len(data), _READ):
                if self._stopped:
                    return
                for event in self._decoder.feed(data[start : start + _READ]):
                    self._event(*event)
        except FirstFault:
            self._stopped = True

    def finish(self, end: End = "unknown") -> Result:
        """Say how the transport ended and return the outcome, without calls where it is refused."""
        if end not in ("clean", "aborted", "unknown"):
            raise ValueError("end must be clean, aborted or unknown")
        if self._ended:
            raise ValueError("this response is finished; use a new Assembler for the next one")
        self._ended = True
        if not self._stopped:
            with suppress(FirstFault):
                self._finish(end)
        return self._result()

    def _event(self, kind: bytes | None, data: bytes | None, oversized: bool) -> None:
        counts = bool(data) or (oversized and data is not None)
        self._events += counts
        if counts and self._events > self._limits.events:
            self._report("limit.events", "event")
            raise FirstFault
        if kind == b"ping":
            self._pings += 1
            return
        if kind == b"error" or oversized:
            category = "completion.error_event" if kind == b"error" else "limit.event_bytes"
            self._report(category, "event", event=self._events + (not counts))
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
            except InvalidEvent as invalid:
                self._report(invalid.category, "event", invalid.flags)
                return
            self._chunk(chunk, kind not in _UNNAMED)

    def _chunk(self, chunk: dict[str, Any], is_named: bool) -> None:
        self._chunks += 1
        if chunk.get("error") is not None:
            self._report("completion.error_event", "event")
            return
        choices = chunk.get("choices", chunk)
        if choices is not chunk:
            self._choices_came = True
        elif is_named:
            self._tolerances["named_event"] += 1
            self._first_named = self._first_named or self._events
            return
        if (flags := other_protocol(chunk, choices, self._delta_came)) is not None:
            self._report("protocol.not_chat_completions", "event", flags)
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
            self._report_invalid("choices", "event")

    def _choice(self, choice: Any) -> None:
        if not isinstance(choice, dict):
            self._report_invalid("choice")
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
            self._report_invalid("delta")
        elif delta is not choice:
            self._delta_came = True
            self._delta(delta)
        if "message" in choice and self._delta_came and isinstance(choice["message"], dict):
            self._tolerances["repeated_message"] += 1
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
            self._report_invalid("tool_calls")

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
        events, cut, was_cut = self._decoder.finish()
        for event in events:
            self._event(*event)
        if cut is not None and cut[1] is not None and is_complete(cut[1]):
            self._event(*cut)
        elif was_cut and self._finishes:
            self._tolerances["dropped_tail"] += 1
        self._tolerances["unknown_end"] += end == "unknown" and not self._done
        self._tolerances["missing_done"] += not self._done
        if self._first_named and not self._choices_came:
            self._report("protocol.not_chat_completions", "event", event=self._first_named)
        category = self._completion_category(end)
        if category:
            lost = self._decoder.ignored and not self._finishes
            self._report(category, "completion", {"ignored_error_line": True} if lost else None)
        elif set(self._finishes) <= {"stop", "tool_calls"}:
            self._check_proposal()

    def _completion_category(self, end: End) -> str | None:
        if end == "aborted" and not self._done:
            return "completion.transport_error"
        if not self._finishes:
            return "completion.no_finish_reason" if self._done else "completion.truncated"
        if "tool_calls" in self._finishes and not self._calls.fragments:
            return "completion.no_calls"
        return None

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
            if not call.names.is_full:
                self._repeated_names += self._tools is None and is_self_repeating(name)
                for category, flags in name_faults(name, self._tools):
                    self._report(category, "proposal", flags, call=call.ordinal)
            if call.arguments.is_full or (call.is_faulty and not call.arguments.size):
                continue
            for category, flags in arguments_faults(str(call.arguments), name, self._tools, self._limits):
                self._report(category, "proposal", flags, call=call.ordinal)
        if by_index and max(by_index) != len(by_index) - 1:
            self._tolerances["sparse_index"] += 1

    def _report_invalid(self, field: str, stage: Stage = "choice") -> None:
        self._report("event.invalid_chunk", stage, {"field": field})

    def _report(
        self,
        category: str,
        stage: Stage,
        flags: dict[str, Any] | None = None,
        *,
        event: int | None = None,
        call: int | None = None,
    ) -> None:
        """Report a fault, at the event that is being read unless another ordinal is given."""
        if event is None and stage not in ("completion", "proposal"):
            event = self._events
        flags = dict(flags or {})
        if category in _UNREADABLE and (compression := compression_of(self._head)):
            flags["compressed"] = compression
        self._diagnosis.report(Fault(category, stage, event=event, call=call, flags=flags))

    def _result(self) -> Result:
        calls, faults = self._calls, tuple(self._diagnosis.faults)
        outcome: Outcome = "rejected" if faults else "accepted" if calls.by_index else "no_calls"
        accepted = sorted(calls.by_index.items()) if outcome == "accepted" else ()
        self._tolerances["ignored_line"] = self._decoder.ignored
        return Result(
            outcome=outcome,
            category=faults[0].category if faults else None,
            rules=self._rules.name,
            executable=outcome == "accepted" and self._rules.executable,
            faults=faults,
            calls=tuple(
                Call(
                    index, call.id or "", call.name, str(call.arguments), calls.aliases.get(call.id or "", "")
                )
                for index, call in accepted
            ),
            counts={
                "events": self._events,
                "pings": self._pings,
                "chunks": self._chunks,
                "comments": self._decoder.comments,
                "fragments": calls.fragments,
                "calls": len(calls.by_index),
                "arguments_bytes": sum(call.arguments.size for call in calls.by_index.values()),
                "null_continuations": calls.null_continuations,
                "finished": bool(self._finishes),
                "done": self._done,
                "names_checked": self._tools is not None,
                "repeated_names": self._repeated_names,
                "omitted_faults": self._diagnosis.omitted_faults,
                "omitted_rows": self._diagnosis.omitted_rows,
            },
            tolerances={name: count for name, count in sorted(self._tolerances.items()) if count},
            timeline=tuple(self._diagnosis.rows),
        )


def assemble(
    body: bytes,
    *,
    rules: str | RuleSet = DEFAULT_RULES,
    tools: AnyTools | None = None,
    limits: Limits | Mapping[str, int] | None = None,
    diagnose: bool = False,
    framing: Framing = "sse",
    end: End = "unknown",
) -> Result:
    """Assemble a whole body at once: what Assembler gives for the same bytes in any reads."""
    assembler = Assembler(rules, tools, limits, diagnose, framing)
    assembler.feed(body)
    return assembler.finish(end)
