"""Nothing that came over the wire leaves in a diagnostic, a repr, an exception or a traceback."""

from __future__ import annotations

import json
import re
import traceback
from typing import Any

import pytest

from fragmentlab.assembler import Assembler, Result, assemble
from fragmentlab.assembler.rules import RulesError, load_rules, rules_from_json
from tests.assembler.wire import call, chunk, fragment, response, sse

C = "CANARY"
DIGITS = 90217733041


def leaks(text: str) -> list[str]:
    """Canaries found in the text, in any letter case, and the number that stands for a numeric one."""
    return re.findall(r"canary[-\w]*|90217733041|9\.0217733041", text, re.IGNORECASE)


BODIES: dict[str, bytes] = {
    "accepted": response(call(0, f"{C}-id", f"{C}-name", json.dumps({f"{C}-key": f"{C}-value"}))),
    "content": sse(chunk(content=f"{C}-content", role=f"{C}-role"), chunk(finish="stop")),
    "id changed": response(call(0, f"{C}-id"), fragment(0, f"{C}-other")),
    "id number": response(call(0, DIGITS)),
    "id object": response(call(0, {f"{C}-key": f"{C}-value"})),
    "id twice": response(call(0, f"{C}-id"), call(1, f"{C}-id")),
    "index": response(fragment(f"{C}-index", "a")),
    "index number": response(fragment(DIGITS, "a")),
    "negative index": response(fragment(-DIGITS, "a")),
    "name type": response(fragment(0, "a", {C: C})),
    "name unknown": response(call(0, "a", f"{C}-name")),
    "name surrogate": response(call(0, "a", f"{C}\ud800")),
    "arguments type": response(fragment(0, "a", "f", [C])),
    "arguments broken": response(call(0, "a", "tool", f'{{"{C}": {C}')),
    "arguments repeated": response(call(0, "a", "tool", f'{{"{C}": 1, "{C}": "{C}"}}')),
    "arguments not an object": response(call(0, "a", "tool", f'"{C}"')),
    "arguments surrogate": response(call(0, "a", "tool", f'{{"{C}": "\\ud800"}}')),
    "arguments number": response(call(0, "a", "tool", f'{{"{C}": {DIGITS}e999}}')),
    "arguments schema": response(call(0, "a", "tool", f'{{"city": "{C}", "{C}": {DIGITS}}}')),
    "type": response(fragment(0, "a", "f", "{}", type=f"{C}-type")),
    "function": response(fragment(0, "a", function=f"{C}-function")),
    "fragment": response(f"{C}-fragment"),
    "finish": response(call(), finish=f"{C}-finish"),
    "native finish": sse(
        {"choices": [{"finish_reason": f"{C}", "native_finish_reason": f"{C}", "delta": {}}]}
    ),
    "error": sse({"error": {"message": f"{C}-message", "code": DIGITS}}),
    "error event": f"event: error\ndata: {C}-message\n\n".encode(),
    "event type": f"event: {C}\nid: {C}\nretry: {C}\n: {C}\n{C}: {C}\ndata: {C}\n\n".encode(),
    "not JSON": sse(f"{C}-text"),
    "JSON cut": b'data: {"' + C.encode(),
    "not UTF-8": b"data: " + C.encode() + b"\xff\n\n",
    "not an object": sse(json.dumps([C])),
    "key twice": sse(f'{{"id": "{C}", "id": "{C}"}}'),
    "other protocol": sse({"type": f"{C}.created", f"{C}-key": C}),
    "choices": sse({"choices": C}),
    "choice": sse({"choices": [C]}),
    "choice index": sse({"choices": [{"index": C}]}),
    "delta": sse({"choices": [{"delta": C}]}),
    "tool_calls": sse({"choices": [{"delta": {"tool_calls": {C: C}}}]}),
    "function_call": sse({"choices": [{"delta": {"function_call": {"name": C, "arguments": C}}}]}),
    "after done": sse("[DONE]", f"{C}-late", done=False),
    "envelope": sse({"id": C, "model": C, "provider": C, "system_fingerprint": C, "choices": []}),
}
TOOLS = [
    {"name": "tool", "schema": {"properties": {"city": {"type": "number"}}, "additionalProperties": False}}
]


def shown(result: Result) -> str:
    """Everything that a result shows without being asked to reveal."""
    parts: list[Any] = [repr(result), str(result), json.dumps(result.to_json()), repr(result.calls)]
    parts += [repr(fault) + json.dumps(fault.to_json()) for fault in result.faults]
    parts += [repr(row) for row in result.timeline]
    parts += [json.dumps(c.to_json()) + repr(c) + str(c) for c in result.calls]
    return "\n".join(parts)


@pytest.mark.parametrize("diagnose", [False, True])
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["tools unknown", "tools known"])
@pytest.mark.parametrize("name", BODIES)
def test_diagnostics(name: str, tools: Any, diagnose: bool) -> None:
    """Whatever field holds it, a value is in no diagnostic, repr, count or timeline."""
    for rules in ("keep-established", "reject-null", "empty-continuation"):
        for framing in ("sse", "jsonl"):
            result = assemble(BODIES[name], rules=rules, tools=tools, diagnose=diagnose, framing=framing)
            assert leaks(shown(result)) == []


def test_reveal_is_the_only_way() -> None:
    """Raw values appear exactly where they are asked for, and only as the calls of an accepted response."""
    result = assemble(BODIES["accepted"])
    assert leaks(json.dumps(result.to_json(reveal=True)["calls"]))
    assert set(leaks(json.dumps(result.to_json(reveal=True)))) == set(
        leaks(json.dumps(result.to_json(True)["calls"]))
    )
    assert assemble(BODIES["id changed"]).to_json(reveal=True)["calls"] == []


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: load_rules(f"{C}-rules"),
        lambda: rules_from_json(f'{{"{C}": "{C}"'),
        lambda: rules_from_json(f'{{"schema": "{C}"}}'),
        lambda: rules_from_json(f'{{"schema": "fragmentlab-rules-v1", "{C}": 1}}'),
        lambda: rules_from_json(f'{{"schema": "fragmentlab-rules-v1", "name": "{C} !", "cells": {{}}}}'),
        lambda: rules_from_json(
            f'{{"schema": "fragmentlab-rules-v1", "name": "a", "cells": {{"{C}": {{}}}}}}'
        ),
        lambda: Assembler(limits={f"{C}-limit": 1}),
        lambda: Assembler(limits={"events": f"{C}"}),  # type: ignore[dict-item]
        lambda: Assembler(framing=f"{C}"),  # type: ignore[arg-type]
        lambda: Assembler().finish(end=f"{C}"),  # type: ignore[arg-type]
        lambda: Assembler(tools=[{"name": [C]}]),
        lambda: Assembler(tools=[{"name": f"{C}-tool", "schema": {"type": f"{C}-type"}}]),
        lambda: Assembler(tools=[{"name": "a", "schema": {"properties": f"{C}"}}]),
    ],
)
def test_exceptions(misuse: Any) -> None:
    """An exception about bad configuration quotes none of it, nor does the one that it came from."""
    with pytest.raises((ValueError, RulesError)) as caught:
        misuse()
    assert leaks(str(caught.value) + repr(caught.value)) == []
    error: BaseException | None = caught.value
    while error is not None:
        assert leaks(str(error)) == []
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_traceback_of_a_callers_own_fault() -> None:
    """A traceback through the assembler shows source lines, never the state that it holds."""
    assembler = Assembler()
    assembler.feed(BODIES["accepted"])
    try:
        assembler.feed("text")  # type: ignore[arg-type]
    except TypeError:
        assert leaks(traceback.format_exc()) == []
    else:
        pytest.fail("text was taken for bytes")
    assert leaks(repr(assembler) + str(assembler) + repr(assembler.fault)) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": f"https://{C}.invalid/schema"},
        {"pattern": "("},
        {"properties": {"city": {"pattern": "(" + C}}},
        {"$ref": f"#/$defs/{C}"},
    ],
)
def test_unusable_schema(schema: dict[str, Any]) -> None:
    """A schema that cannot be applied is refused or satisfies nothing, and is never quoted."""
    body = response(call(0, "a", "tool", f'{{"city": "{C}"}}'))
    tools = [{"name": "tool", "schema": schema}]
    if "(" in json.dumps(schema):
        with pytest.raises(ValueError, match="not a valid JSON Schema") as caught:
            assemble(body, tools=tools)
        assert leaks(str(caught.value)) == []
    else:
        result = assemble(body, tools=tools)
        assert result.category == "proposal.arguments_schema"
        assert leaks(shown(result)) == []
