"""The loopback provider, driven by the official client and by raw sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest

from fragmentlab.errors import InputError
from fragmentlab.runtime.provider import MAX_BODY_BYTES, Provider
from fragmentlab.runtime.scenarios import Scenario, find_scenario
from fragmentlab.runtime.session import Session
from fragmentlab.runtime.tools import DECLARATIONS
from tests.runtime.conftest import SMALL

REQUEST: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}


HOSTILE: list[Any] = [[], ["x"], {}, {"a": []}, 7, 1.5, True, "\ud800", [[[]]]]


def _post(provider: Provider, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with httpx.Client(trust_env=False) as client:
        return client.post(f"{provider.address}/chat/completions", content=content, headers=headers)


def _work(provider: Provider) -> str | None:
    """Do the task with the official client; return its last text."""
    messages: list[Any] = [{"role": "user", "content": "go"}]
    with openai.OpenAI(base_url=provider.address, api_key="none", max_retries=0) as client:
        while True:
            with client.chat.completions.stream(model="m", messages=messages, tools=DECLARATIONS) as stream:  # type: ignore[arg-type]
                message = stream.get_final_completion().choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append({"role": "assistant", "tool_calls": [_echo(call) for call in message.tool_calls]})
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": f"result {call.id}"}
                for call in message.tool_calls
            ]


def _echo(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


@pytest.mark.parametrize("name", ["control", "target", "parallel-target", "split-characters"])
def test_official_client_does_the_task(provider: Provider, name: str) -> None:
    """The official client does a whole task, and each result comes back under the ID that was streamed."""
    session = provider.play(find_scenario(name), SMALL)
    assert (_work(provider) or "").strip() == "done"
    assert (session.mismatches, session.arguments_kept) == (0, True)
    assert [turn for turn, _ in sorted(session.results)] == (
        [1, 2, 2, 3] if "parallel" in name else [1, 2, 3, 4]
    )


def test_official_client_sees_a_cut(provider: Provider) -> None:
    """A reset is an error for the official client, not an answer."""
    provider.play(find_scenario("reset-after-finish"), SMALL)
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        _work(provider)


def test_usage_is_sent_when_asked_for(provider: Provider) -> None:
    """A client that asks for usage gets one chunk of it before the end marker."""
    provider.play(find_scenario("control"), SMALL)
    asked = _post(provider, REQUEST | {"stream_options": {"include_usage": True}}).text
    plain = _post(provider, REQUEST).text
    assert asked.count('"usage"') == 1 and '"usage"' not in plain
    assert asked.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "0.0.0.0"])
def test_foreign_host_is_refused(provider: Provider, host: str) -> None:
    """A request under another host name, as after DNS rebinding, gets nothing."""
    session = provider.play(find_scenario("control"), SMALL)
    assert _post(provider, REQUEST, host=host).status_code == 400
    assert session.sent == []
    assert _post(provider, REQUEST, host=f"localhost:{provider.port}").status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"[]", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"\xff", "invalid_json"),
        (REQUEST | {"stream": False}, "stream"),
        (REQUEST | {"stream": 1}, "stream"),
        (REQUEST | {"model": None}, "model"),
        (REQUEST | {"messages": "CANARY"}, "messages"),
        (REQUEST | {"messages": ["CANARY"]}, "messages"),
        (REQUEST | {"messages": [{"role": "assistant", "content": "CANARY"}]}, "tool_call_id"),
    ],
)
def test_bad_request_is_named(provider: Provider, body: Any, code: str) -> None:
    """A request that cannot be answered gets the API's error form with its reason, and is not quoted."""
    provider.play(find_scenario("control"), SMALL)
    response = _post(provider, body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
    assert "CANARY" not in response.text


def test_body_is_capped(provider: Provider) -> None:
    """A body above the limit is refused while it arrives, and the server goes on."""
    provider.play(find_scenario("control"), SMALL)
    chunk = b"x" * (1 << 20)
    with httpx.Client(trust_env=False) as client:
        try:
            parts = (chunk for _ in range((MAX_BODY_BYTES >> 20) + 8))
            status = client.post(f"{provider.address}/chat/completions", content=parts).status_code
        except httpx.WriteError:
            status = 413
    assert status == 413
    assert _post(provider, REQUEST).status_code == 200


def test_other_paths_and_methods(provider: Provider) -> None:
    """There is one path and one method."""
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"{provider.address}/models").status_code == 404
        assert client.get(f"{provider.address}/chat/completions").status_code == 405


def _follow_up(session: Session, provider: Provider, change: Callable[[list[Any]], None]) -> httpx.Response:
    _post(provider, REQUEST)
    [call] = session.sent[-1].calls
    function = {"name": call.name, "arguments": call.arguments}
    messages = [
        *REQUEST["messages"],
        {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call.id, "content": "x"},
    ]
    change(messages)
    return _post(provider, REQUEST | {"messages": messages})


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda m: None, 200),
        (lambda m: m[2].update(tool_call_id="other"), 400),
        (lambda m: m[2].pop("tool_call_id"), 400),
        (lambda m: m.pop(), 400),
        (lambda m: m.append(dict(m[2], tool_call_id="other")), 400),
        (lambda m: m[1]["tool_calls"][0].update(id="other"), 400),
        (lambda m: m[1].update(tool_calls=None), 400),
        (lambda m: m[1].update(tool_calls="x"), 400),
        (lambda m: m.append(dict(m[2])), 400),
        *((lambda m, value=value: m[2].update(tool_call_id=value), 400) for value in HOSTILE),
        *((lambda m, value=value: m[1]["tool_calls"][0].update(id=value), 400) for value in HOSTILE),
        *((lambda m, value=value: m[1].update(tool_calls=value), 400) for value in HOSTILE),
        (lambda m: m[2].update(content=[{"type": "text", "text": "x"}]), 200),
        (lambda m: m[2].update(content=None), 200),
    ],
)
def test_follow_up_must_answer_the_streamed_id(
    provider: Provider, change: Callable[[list[Any]], None], status: int
) -> None:
    """A follow-up is answered only where it returns the streamed call with its result under that very ID."""
    session = provider.play(find_scenario("control"), SMALL)
    assert _follow_up(session, provider, change).status_code == status
    assert session.mismatches == (status == 400)


@pytest.mark.parametrize("content", [7, {}, {"a": 1}, [7], [{"type": "image"}], [[]], "\ud800", True])
def test_content_that_is_no_text_is_refused_and_nothing_advances(provider: Provider, content: Any) -> None:
    """A tool message of another kind is named, and the follow-up can be sent again."""
    session = provider.play(find_scenario("control"), SMALL)
    bad = _follow_up(session, provider, lambda m: m[2].update(content=content))
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "content")
    assert ([sent.turn for sent in session.sent], session.results) == ([1], {})
    assert _follow_up(session, provider, lambda m: None).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "CANARY", ""])
def test_a_body_of_another_type_is_refused(provider: Provider, kind: str) -> None:
    """A web page can send a form to any address, so only JSON is read."""
    session = provider.play(find_scenario("control"), SMALL)
    response = _post(provider, REQUEST, **{"content-type": kind})
    assert (response.status_code, response.json()["error"]["code"]) == (415, "content_type")
    assert "CANARY" not in response.text and session.sent == []
    assert _post(provider, REQUEST, **{"content-type": "Application/JSON; charset=utf-8"}).status_code == 200


def test_changed_arguments_are_noticed(provider: Provider) -> None:
    """A client that returns other arguments than were streamed is answered, and noticed."""
    session = provider.play(find_scenario("control"), SMALL)
    _follow_up(session, provider, lambda m: m[1]["tool_calls"][0]["function"].update(arguments="{ }"))
    assert not session.arguments_kept


@pytest.mark.parametrize(
    ("how", "error"),
    [("reset", ConnectionResetError), ("close", None), ("end", None), ("hold", TimeoutError)],
)
def test_connection_ends_as_the_scenario_says(
    provider: Provider, scenario_of: Callable[..., Scenario], how: str, error: type[Exception] | None
) -> None:
    """A cut is a real reset, an early close, an orderly end or silence on the socket itself."""
    provider.play(scenario_of([{"step": "save", "cut": {"at": "complete", "how": how}}]), SMALL)
    body = json.dumps(REQUEST).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    received = b""
    with socket.create_connection(("127.0.0.1", provider.port), timeout=5) as connection:
        connection.sendall(head.encode() + body)
        caught: type[Exception] | None = None
        try:
            while not received.endswith(b"0\r\n\r\n") and (part := connection.recv(1 << 16)):
                received += part
                if b"}}]}}]" in received or how == "hold":
                    connection.settimeout(1.5)
        except OSError as failed:
            caught = type(failed)
    assert b'"save_report"' in received and b"[DONE]" not in received
    assert caught is error
    assert received.endswith(b"0\r\n\r\n") == (how == "end")


def test_raw_bytes_and_chunks_can_be_streamed(
    provider: Provider, scenario_of: Callable[..., Scenario]
) -> None:
    """A scenario may give the body itself, or chunk objects that nothing else can say."""
    provider.play(scenario_of([{"sse": "data: nonsense\n\n"}]), SMALL)
    assert _post(provider, REQUEST).text == "data: nonsense\n\n"
    provider.play(scenario_of([{"chunks": [{"choices": []}], "done": False}]), SMALL)
    assert _post(provider, REQUEST).text == 'data: {"choices":[]}\n\n'


def test_scenario_that_is_over(provider: Provider, scenario_of: Callable[..., Scenario]) -> None:
    """After its last turn the scenario says so, and a new conversation starts from its first."""
    provider.play(scenario_of([{"step": "finish"}]), SMALL)
    assert _post(provider, REQUEST).status_code == 200
    over = _post(provider, REQUEST | {"messages": [{"role": "assistant", "content": "done"}]})
    assert (over.status_code, over.json()["error"]["code"]) == (400, "scenario_over")
    assert _post(provider, REQUEST).status_code == 200


def test_taken_port_is_one_line() -> None:
    """A port in use, and one that does not exist, are one line each."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="is taken"):
        Provider(taken.getsockname()[1])
    with pytest.raises(InputError, match="cannot be used"):
        Provider(70_000)


def test_provider_without_scenario() -> None:
    """A server that plays nothing says so, and stops at once although a response is held open."""
    with Provider() as idle:
        assert _post(idle, REQUEST).status_code == 503
