"""One scenario being played: a request's turn, whether its follow-up belongs to what was sent, the answer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from fragmentlab.errors import InputError
from fragmentlab.runtime.scenarios import STYLE, Change, Scenario, ScenarioCall, Style, Turn, merged
from fragmentlab.runtime.sending import Sending, send_calls, send_chunks, send_text
from fragmentlab.runtime.task import PRIVATE_SOURCE, REPORT_NAME, Task
from fragmentlab.wire.fragments import WireCall

Message = Mapping[str, Any]


class BadRequest(Exception):
    """A request that gets no stream: ``code`` is its reason, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Sent:
    """One answered request, kept in memory only; turns count from 1."""

    turn: int
    calls: tuple[WireCall, ...] = field(repr=False)
    sending: Sending = field(repr=False)


class Session:
    """Plays one scenario for one task and remembers, in memory, what was sent and what came back.

    ``sent`` holds every answer; ``results`` each call and the tool result that came back under its ID, by
    (turn, call ordinal); ``mismatches`` counts follow-ups that answered another ID than was sent.
    """

    def __init__(self, scenario: Scenario, task: Task) -> None:
        self.scenario, self.task = scenario, scenario.sized(task)
        self.sent: list[Sent] = []
        self.results: dict[tuple[int, int], tuple[WireCall, str]] = {}
        self.arguments_kept = True
        self.mismatches = 0
        self.problem: str | None = None
        self._turns = list(_expand(scenario.turns, self.task))
        self._attempts: Counter[int] = Counter()

    def answer(self, request: Mapping[str, Any]) -> Sending:
        """The stream for one request body; BadRequest where it is none that belongs here."""
        messages = _messages(request)
        texts = self._check_follow_up(messages)
        depth = sum(message.get("role") == "assistant" for message in messages)
        if depth >= len(self._turns):
            raise BadRequest("scenario_over", "the scenario has no more turns")
        self._attempts[depth] += 1
        try:
            calls, sending = self._play(depth, self._attempts[depth], texts, _wants_usage(request))
        except InputError as error:
            self.problem = f"scenario {self.scenario.name}, turn {depth + 1}: {error}"
            raise BadRequest("scenario_unusable", self.problem) from None
        self.sent.append(Sent(depth + 1, calls, sending))
        return sending

    def _play(
        self, depth: int, attempt: int, texts: Sequence[str], usage: bool
    ) -> tuple[tuple[WireCall, ...], Sending]:
        turn = self._turns[depth]
        again = turn.attempts[min(attempt, len(turn.attempts)) - 1] if turn.attempts else Change()
        style = merged(Style, STYLE, self.scenario.stream, turn.stream, again.stream)
        change = replace(merged(Change, turn, again), stream=style)
        seed = f"{self.task.seed} {depth} {attempt}"
        if turn.sse is not UNSET:
            return (), Sending((turn.sse.encode("utf-8", "surrogatepass"),))
        if turn.chunks is not UNSET:
            return (), send_chunks(turn.chunks, change, seed)
        if turn.text is not UNSET:
            return (), send_text(turn.text, change, usage, seed)
        calls = tuple(self._calls(turn.calls or (), texts, seed))
        return calls, send_calls(calls, change, usage, seed)

    def _calls(self, calls: Sequence[ScenarioCall], texts: Sequence[str], seed: str) -> Iterator[WireCall]:
        for number, call in enumerate(calls, 1):
            arguments = call.arguments_text
            if arguments is UNSET:
                arguments = json.dumps(self._filled(call.arguments, texts), ensure_ascii=False)
            made = hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[:24]
            yield WireCall(f"call_{made}" if call.id is UNSET else call.id, call.tool, arguments)

    def _filled(self, value: Any, texts: Sequence[str]) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(inner, texts) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner, texts) for inner in value]
        if value == "{report}":
            return self.task.report(texts)
        named = {"{page}": self.task.page_names()[0], "{private}": PRIVATE_SOURCE, "{target}": REPORT_NAME}
        return named.get(value, value) if isinstance(value, str) else value

    def _check_follow_up(self, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the read results in order; every turn's calls must come back with their own IDs and results.

        Nothing is remembered of a follow-up that is refused, except that it was a mismatch.
        """
        latest = {sent.turn: sent.calls for sent in self.sent}
        results: dict[tuple[int, int], tuple[WireCall, str]] = {}
        kept = True
        for turn, (message, answers) in enumerate(_rounds(messages), 1):
            calls, echoes = latest.get(turn), _echoes(message)
            told = [answer.get("tool_call_id") for answer in answers]
            if (
                calls is None
                or not [call.id for call in calls] == [echo.get("id") for echo in echoes] == told
            ):
                self.mismatches += 1
                raise BadRequest("tool_call_id", "the messages do not answer the tool calls that were sent")
            said = [{"name": call.name, "arguments": call.arguments} for call in calls]
            kept = kept and [echo.get("function") for echo in echoes] == said
            texts = [_text(answer.get("content")) for answer in answers]
            results |= {(turn, n): pair for n, pair in enumerate(zip(calls, texts, strict=True), 1)}
        self.results |= results
        self.arguments_kept = self.arguments_kept and kept
        return [text for call, text in results.values() if call.name == "read_source"]


def _echoes(message: Message) -> list[Message]:
    calls = message.get("tool_calls") or []
    return [call if isinstance(call, dict) else {} for call in calls] if isinstance(calls, list) else [{}]


def _rounds(messages: Sequence[Message]) -> Iterator[tuple[Message, list[Message]]]:
    """Yield each message of the assistant with the tool messages right after it."""
    for at, message in enumerate(messages):
        if message.get("role") == "assistant":
            yield message, list(takewhile(lambda later: later.get("role") == "tool", messages[at + 1 :]))


def _expand(turns: Sequence[Turn], task: Task) -> Iterator[Turn]:
    """Yield turns as answers: each part of the task becomes its calls."""
    for turn in turns:
        if turn.step is UNSET:
            yield turn
        elif turn.step == "finish":
            yield replace(turn, step=UNSET, text="done")
        elif turn.step == "list":
            yield _calling(turn, "list_sources", {})
        elif turn.step == "save":
            yield _calling(turn, "save_report", {"target": "{target}", "content": "{report}"})
        else:
            names = task.page_names()
            for at in range(0, len(names), task.parallel):
                group = [{"source": name} for name in names[at : at + task.parallel]]
                yield _calling(turn if at == 0 else Turn(stream=turn.stream, text=""), "read_source", *group)


def _calling(turn: Turn, tool: str, *arguments: dict[str, Any]) -> Turn:
    calls = tuple(ScenarioCall(tool=tool, arguments=one) for one in arguments)
    return replace(turn, step=UNSET, text=UNSET, calls=calls)


def _messages(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise BadRequest("messages", "messages must be an array of objects")
    return messages


def _text(content: Any) -> str:
    """Return the text of a tool message's content; raise BadRequest where it is none."""
    parts = content if isinstance(content, list) else ["" if content is None else content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    said = [text for text in texts if isinstance(text, str)]
    if len(said) != len(texts):
        raise BadRequest("content", "the content of a tool message must be text or text parts")
    text = "".join(said)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRequest("content", "the content of a tool message holds half a surrogate pair") from None
    return text


def _wants_usage(request: Mapping[str, Any]) -> bool:
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
