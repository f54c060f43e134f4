"""The gateway: one streamed Chat Completions request, its bytes fed to the assembler as they arrive.

It tells the assembler how the transport ended: ``clean`` at the end of a body whose length HTTP states
(chunked or Content-Length), ``unknown`` at the end of one that only a closed connection ends, ``aborted``
for a reset, a short body or a time limit. The environment decides nothing: no proxy, no netrc, no redirect,
no key but the given one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from fragmentlab.assembler import Assembler, Result, RuleSet
from fragmentlab.assembler.rules import DEFAULT_RULES, INVARIANTS, RulesError, check_invariants, load_rules
from fragmentlab.errors import InputError
from fragmentlab.runtime.problems import PROVIDER_HEADER, Problem, connection_problem, status_problem
from fragmentlab.runtime.tools import DECLARATIONS, KNOWN_TOOLS

EVENT_STREAM = "text/event-stream"
_THREAD = "fragmentlab-gateway"
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
_WEB_PAGES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, without a byte, for a request with its retries, and after ``[DONE]``."""

    connect: float = 10.0
    idle: float = 30.0
    total: float = 120.0
    linger: float = 2.0


@dataclass(frozen=True)
class Reply:
    """One answer: ``result`` where a stream began, else ``problem``, both where it broke midway."""

    result: Result | None
    problem: Problem | None
    seconds: float

    @property
    def refusal(self) -> str | None:
        """The category of a refused stream, else the kind of the problem, else None."""
        if self.result is not None:
            return self.result.category
        return self.problem.kind if self.problem else None


def executable_rules(rules: str | RuleSet) -> RuleSet:
    """Return the rule set, if calls that it accepts may be executed; else InputError names what it breaks.

    The invariants are enumerated here again: what a rule set says of itself is not taken.
    """
    try:
        checked = load_rules(rules)
    except RulesError as error:
        raise InputError(f"the runtime takes executable rule tables only: {error}") from None
    if type(checked) is not RuleSet:
        raise InputError("the runtime takes rule tables only, no wrapper around one")
    broken = {invariant for invariant, _, _ in check_invariants(checked)}
    if broken:
        names = "; ".join(f"{name} ({INVARIANTS[name]})" for name in sorted(broken))
        raise InputError(f"the runtime refuses rule set {checked.name}, it breaks {names}")
    return checked


def checked_address(address: str) -> httpx.URL:
    """Return a base address that may be sent to: HTTPS, or HTTP on loopback, without query or credentials."""
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise InputError("the server's address is not a valid URL") from None
    if url.port is not None and not 0 < url.port < 1 << 16:
        raise InputError("the server's address is not a valid URL")
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(
            "the server's address must begin with https:// (or http:// on loopback) and name a host"
        )
    if url.userinfo or url.query or url.fragment:
        raise InputError(
            "the server's address may hold no user, query or fragment; the key has its own variable"
        )
    if url.scheme == "http" and not is_loopback(url.host):
        raise InputError("the server's address must begin with https://, plain http is for loopback only")
    return url


def checked_key(key: str | None) -> str | None:
    """Return a key that a header can carry; raise InputError for any other."""
    if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key and key):
        raise InputError("the key is empty or holds characters that no header can carry")
    return key


@dataclass(frozen=True)
class Gateway:
    """Asks one server and model. ``repr`` shows neither address, model nor key.

    With ``live`` the kit's own provider is no server that could be asked. Raises InputError for an unusable
    address or key and for rules that may not serve execution.

    ::

        reply = Gateway("https://api.example/v1", "some-model", key).ask(messages)
        reply.result.calls if reply.refusal is None else reply.refusal
    """

    address: str = field(repr=False)
    model: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    rules: str | RuleSet = DEFAULT_RULES
    timeouts: Timeouts = Timeouts()
    live: bool = False

    def __post_init__(self) -> None:
        checked_address(self.address)
        checked_key(self.key)
        if not self.model or not self.model.isprintable():
            raise InputError("the model's name is empty or holds characters that cannot be sent")
        executable_rules(self.rules)

    def ask(self, messages: Sequence[Mapping[str, Any]], seconds: float | None = None) -> Reply:
        """Send one request; its reply comes within ``seconds``, or ``timeouts.total``.

        Works inside a running event loop too.
        """
        answer = _Answer(Assembler(self.rules, KNOWN_TOOLS))
        started = time.monotonic()
        _run_apart(self._exchange(answer, messages, self.timeouts.total if seconds is None else seconds))
        return Reply(answer.result, answer.problem, time.monotonic() - started)

    async def _exchange(self, answer: _Answer, messages: Sequence[Mapping[str, Any]], seconds: float) -> None:
        limits = self.timeouts
        try:
            async with asyncio.timeout(seconds) as deadline, self._stream(messages) as response:
                answer.problem = self._head_problem(response)
                if answer.problem is not None:
                    return None
                async for read in response.aiter_raw():
                    answer.begun = True
                    answer.assembler.feed(read)
                    if answer.assembler.fault:
                        return answer.end("aborted")
                    if answer.assembler.done:
                        deadline.reschedule(
                            min(deadline.when() or 0.0, asyncio.get_running_loop().time() + limits.linger)
                        )
                if answer.begun:
                    answer.end("clean" if _states_its_length(response) else "unknown")
                else:
                    answer.problem = Problem("gateway.empty")
        except TimeoutError:
            answer.broke(Problem("gateway.deadline", limits.total))
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            answer.problem = Problem("gateway.connect_timeout", limits.connect)
        except httpx.TimeoutException:
            answer.broke(Problem("gateway.idle", limits.idle))
        except httpx.ConnectError as error:
            answer.problem = connection_problem(error)
        except httpx.RemoteProtocolError as error:
            # httpcore says so of a connection that closed before any answer; anything else was not HTTP.
            closed = "without sending a response" in str(error)
            answer.broke(Problem("gateway.closed" if closed else "gateway.protocol"))
        except (httpx.TransportError, OSError):
            answer.broke(Problem("gateway.closed"))

    def _head_problem(self, response: httpx.Response) -> Problem | None:
        if self.live and PROVIDER_HEADER in response.headers:
            return Problem("gateway.own")
        if response.status_code != 200:
            return status_problem(response.status_code)
        kind = response.headers.get("content-type", EVENT_STREAM).partition(";")[0].strip().lower()
        if kind in _WEB_PAGES:
            return Problem("gateway.html")
        if kind != EVENT_STREAM:
            return Problem("gateway.not_sse")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            return Problem("gateway.encoding")
        return None

    @asynccontextmanager
    async def _stream(self, messages: Sequence[Mapping[str, Any]]) -> AsyncIterator[httpx.Response]:
        url = checked_address(self.address)
        headers = {"Accept": EVENT_STREAM, "Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        body = {"model": self.model, "messages": list(messages), "tools": DECLARATIONS, "stream": True}
        timeout = httpx.Timeout(self.timeouts.idle, connect=self.timeouts.connect)
        async with (
            httpx.AsyncClient(
                verify=trusted() if url.scheme == "https" else False,
                timeout=timeout,
                trust_env=False,
                follow_redirects=False,
            ) as client,
            client.stream(
                "POST", f"{str(url).rstrip('/')}/chat/completions", json=body, headers=headers
            ) as response,
        ):
            yield response


class _Answer:
    """What is known of one answer so far."""

    def __init__(self, assembler: Assembler) -> None:
        self.assembler = assembler
        self.begun = False
        self.result: Result | None = None
        self.problem: Problem | None = None

    def end(self, end: Any) -> None:
        self.result = self.assembler.finish(end)

    def broke(self, problem: Problem) -> None:
        """The transport failed: before the stream it is the whole answer, within it the assembler decides."""
        if not self.begun:
            self.problem = problem
        elif self.result is None:
            midway = (
                Problem("gateway.cut") if problem.kind in ("gateway.closed", "gateway.protocol") else problem
            )
            self.problem = None if self.assembler.done else midway
            self.end("aborted")


def _states_its_length(response: httpx.Response) -> bool:
    return (
        "content-length" in response.headers
        or "chunked" in response.headers.get("transfer-encoding", "").lower()
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def trusted() -> ssl.SSLContext:
    """The system's certificate authorities and those that httpx brings."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def _is_of_others(record: logging.LogRecord) -> bool:
    """Whether a log record is not of this gateway: the client logs addresses and headers of what it sends."""
    return record.threadName != _THREAD


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_is_of_others)


def _run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end in a thread and loop of their own: a notebook's thread already has a running loop.

    The result is taken before the loop is torn down, which waits for a name lookup that cannot be cancelled.
    """
    ended: Future[None] = Future()

    async def deliver() -> None:
        try:
            await work
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=asyncio.run, args=(deliver(),), daemon=True, name=_THREAD).start()
    ended.result()
