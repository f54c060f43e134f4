"""One scenario being played: which turn a request is for, whether its follow-up belongs
to what was sent, the answer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fragmentlab.errors import InputError
from fragmentlab.runtime.scenarios import Scenario
from fragmentlab.runtime.task import PRIVATE_SOURCE, REPORT_NAME, Task
from fragmentlab.runtime.wire import Script, WireCall, script_calls, script_chunks, script_text


class Refused(Exception):
    """A request that the server does not answer with a stream: ``code`` is its reason,
    the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Sent:
    """One answered request, kept in memory only. ``turn`` and ``attempt`` count from 1."""

    turn: int
    attempt: int
    calls: tuple[WireCall, ...] = field(repr=False)
    script: Script = field(repr=False)


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

    def answer(self, request: Mapping[str, Any]) -> Script:
        """The stream for one request body; Refused where it is none that belongs here."""
        messages = _messages(request)
        texts = self._check_follow_up(messages)
        depth = sum(message.get("role") == "assistant" for message in messages)
        if depth >= len(self._turns):
            raise Refused("scenario_over", "the scenario has no more turns")
        self._attempts[depth] += 1
        attempt = self._attempts[depth]
        try:
            calls, script = self._play(depth, attempt, texts, _wants_usage(request))
        except InputError as error:
            self.problem = f"scenario {self.scenario.name}, turn {depth + 1}: {error}"
            raise Refused("scenario_unusable", self.problem) from None
        self.sent.append(Sent(depth + 1, attempt, calls, script))
        return script

    def _play(
        self, depth: int, attempt: int, texts: Sequence[str], usage: bool
    ) -> tuple[tuple[WireCall, ...], Script]:
        turn = self._turns[depth]
        attempts = turn.get("attempts", [{}])
        change = _merged(self.scenario.stream, turn, attempts[min(attempt, len(attempts)) - 1])
        seed = f"{self.task.seed} {depth} {attempt}"
        if "sse" in turn:
            return (), Script((turn["sse"].encode("utf-8", "surrogatepass"),))
        if "chunks" in turn:
            return (), script_chunks(turn["chunks"], change, seed)
        if "text" in turn:
            return (), script_text(turn["text"], change, usage, seed)
        calls = tuple(self._calls(turn["calls"], texts, seed))
        return calls, script_calls(calls, change, usage, seed)

    def _calls(
        self, calls: Sequence[Mapping[str, Any]], texts: Sequence[str], seed: str
    ) -> Iterator[WireCall]:
        for number, call in enumerate(calls, 1):
            arguments = call.get("arguments_text")
            if arguments is None:
                filled = self._filled(call["arguments"], texts)
                arguments = json.dumps(filled, ensure_ascii=False)
            made = hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[:24]
            yield WireCall(call.get("id", f"call_{made}"), call["tool"], arguments)

    def _filled(self, value: Any, texts: Sequence[str]) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(inner, texts) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner, texts) for inner in value]
        match value:
            case "{page}":
                return self.task.page_names()[0]
            case "{private}":
                return PRIVATE_SOURCE
            case "{target}":
                return REPORT_NAME
            case "{report}":
                return self.task.report(texts)
        return value

    def _check_follow_up(self, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Check that every turn's calls come back with their own IDs and results;
        return the read results in order."""
        latest = {sent.turn: sent for sent in self.sent}
        texts: list[str] = []
        at = 0
        turn = 0
        while at < len(messages):
            message = messages[at]
            at += 1
            if message.get("role") != "assistant":
                continue
            turn += 1
            answers = {}
            while at < len(messages) and messages[at].get("role") == "tool":
                answers[messages[at].get("tool_call_id")] = _text(messages[at].get("content"))
                at += 1
            if turn not in latest:
                self.mismatches += 1
                raise Refused("tool_call_id", "the conversation holds an answer that was not streamed here")
            calls = latest[turn].calls
            self._check_calls(message.get("tool_calls") or [], calls, answers)
            for number, call in enumerate(calls, 1):
                self.results[turn, number] = (call, answers[call.id])
                texts += [answers[call.id]] if call.name == "read_source" else []
        return texts

    def _check_calls(self, echoed: Any, sent: Sequence[WireCall], answers: Mapping[Any, str]) -> None:
        echoes = (
            [echo if isinstance(echo, dict) else {} for echo in echoed] if isinstance(echoed, list) else []
        )
        ids = [call.id for call in sent]
        if [echo.get("id") for echo in echoes] != ids or list(answers) != ids:
            self.mismatches += 1
            raise Refused("tool_call_id", "the tool messages do not answer the tool calls that were streamed")
        functions = [echo.get("function") for echo in echoes]
        if functions != [{"name": call.name, "arguments": call.arguments} for call in sent]:
            self.arguments_kept = False


def _expand(turns: Sequence[Mapping[str, Any]], task: Task) -> Iterator[dict[str, Any]]:
    """Turns as answers: each part of the task becomes its calls."""
    for turn in turns:
        step = turn.get("step")
        if step is None:
            yield dict(turn)
        elif step == "finish":
            yield {**turn, "text": "done"}
        elif step == "list":
            yield {**turn, "calls": [{"tool": "list_sources", "arguments": {}}]}
        elif step == "save":
            yield {
                **turn,
                "calls": [
                    {"tool": "save_report", "arguments": {"target": "{target}", "content": "{report}"}}
                ],
            }
        else:
            names = task.page_names()
            for at in range(0, len(names), task.parallel):
                group = [
                    {"tool": "read_source", "arguments": {"source": n}}
                    for n in names[at : at + task.parallel]
                ]
                yield {**(turn if at == 0 else {"stream": turn.get("stream", {})}), "calls": group}


def _merged(stream: Mapping[str, Any], turn: Mapping[str, Any], attempt: Mapping[str, Any]) -> dict[str, Any]:
    return {**turn, **attempt, "stream": {**stream, **turn.get("stream", {}), **attempt.get("stream", {})}}


def _messages(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise Refused("messages", "messages must be an array of objects")
    return messages


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _wants_usage(request: Mapping[str, Any]) -> bool:
    options = request.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
