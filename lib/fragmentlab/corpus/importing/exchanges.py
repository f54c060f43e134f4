"""What stands around a body in its container: the request, who was asked, and how the transport ended."""

from __future__ import annotations

import base64
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from fragmentlab.assembler.assembler import End

REQUEST_KEYS = frozenset(
    "request when httpRequest req requests requestBody request_body requestHeaders request_headers "
    "postData originalRequest inputs".split()
)
"""Keys under which a container keeps what was asked; bodies that stand there are not answers."""
ANSWER_KEYS = frozenset(
    "response then httpResponse res responses responseBody response_body responseHeaders".split()
)
_FLAT_REQUEST_KEYS = ("body", "path", "scope", "method", "url", "uri", "matchKey", "host", "endpoint")
_FLAT_MARKS = frozenset(("path", "scope", "method", "url", "uri"))
"""Of an exchange whose request is not kept apart (nock): there ``body`` is the request's."""
_URL_KEYS = frozenset("url uri scope host matchkey endpoint :authority base_url".split())
_PATH_KEYS = frozenset("url uri path urlpath matchkey endpoint request_path".split())
_HOST = re.compile(
    r"(?<![A-Za-z0-9.-])((?:[A-Za-z0-9-]++\.)++[A-Za-z]{2,24}|localhost)(?::\d{1,5})?(?=[/:\s]|$)"
)
_MAX_VISITED = 2000
_LONGEST_OPENED = 8 << 20
_BROKEN_MARKS = ("_error", "error", "fault", "aborted", "truncated")


class Exchange:
    """A recorded request and its answer; the facts are read once, when they are asked for."""

    def __init__(self, holder: Mapping[str, Any]) -> None:
        self._holder = holder
        self.bodies: set[bytes] = set()
        """What was taken from it: a body that stands in it twice is one answer."""
        self.recorded_bytes: int | None = None
        """The size of the answer by the container's own account."""

    @cached_property
    def end(self) -> End:
        """``aborted`` where the container says so, otherwise ``unknown``."""
        for part in (self._holder, *self._answers):
            for mark in _BROKEN_MARKS if isinstance(part, dict) else ():
                value = part.get(mark)
                if value is True or (value and isinstance(value, (str, dict))):
                    return "aborted"
        return "unknown"

    @cached_property
    def content_encoding(self) -> str:
        """The answer's Content-Encoding in lower case, empty where none is recorded."""
        return (_header([*self._answers, self._flat], "content-encoding") or "").lower()

    @cached_property
    def model(self) -> str | None:
        """The model that was asked."""
        model = self._asked.get("model")
        return model if isinstance(model, str) else None

    @cached_property
    def tools(self) -> tuple[str, ...] | None:
        """The names of the tools that the request offered; None where it says nothing."""
        functions = [tool.get("function") for tool in _objects(self._asked.get("tools"))]
        functions += _objects(self._asked.get("functions"))
        names = [function.get("name") for function in functions if isinstance(function, dict)]
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name)) or None

    @cached_property
    def host(self) -> str | None:
        """The host that was asked."""
        for name, value in self._addresses:
            if name in _URL_KEYS and (match := _HOST.search(value)):
                return match[0].rstrip("/")
        return None

    @cached_property
    def path(self) -> str | None:
        """The address of the request where it is that of a completion."""
        return next(
            (value for name, value in self._addresses if name in _PATH_KEYS and "/completions" in value), None
        )

    @property
    def _answers(self) -> list[Any]:
        return [self._holder[key] for key in self._holder if key in ANSWER_KEYS]

    @property
    def _flat(self) -> dict[str, Any]:
        return {
            key: value
            for key, value in self._holder.items()
            if key not in ANSWER_KEYS and key not in REQUEST_KEYS
        }

    @cached_property
    def _requests(self) -> list[Any]:
        parts = [self._holder[key] for key in self._holder if key in REQUEST_KEYS]
        if not parts:
            return [self._flat]
        return [*parts, {key: self._holder[key] for key in _FLAT_REQUEST_KEYS if key in self._holder}]

    @cached_property
    def _asked(self) -> dict[str, Any]:
        """The request's JSON: the first mapping with a model or tools beside messages, or with a model."""
        second: dict[str, Any] = {}
        for item in _visit(self._requests):
            if isinstance(item, dict):
                if "messages" in item and ("model" in item or "tools" in item):
                    return item
                if not second and isinstance(item.get("model"), str):
                    second = item
        return second

    @cached_property
    def _addresses(self) -> list[tuple[str, str]]:
        found = []
        for item in _visit(self._requests):
            for key, value in item.items() if isinstance(item, dict) else ():
                name = str(item.get("name", "")).lower() if key == "value" else key.lower()
                value = value[0] if isinstance(value, list) and name == "host" and value else value
                if isinstance(value, str) and len(value) <= 2000 and name in _URL_KEYS | _PATH_KEYS:
                    found.append((name, value))
        return found


NO_EXCHANGE = Exchange({})
"""What a body has around it that stands alone."""


def is_exchange(value: Mapping[str, Any]) -> bool:
    """Return whether the mapping holds an answer, so that what was asked may stand beside it."""
    return not ANSWER_KEYS.isdisjoint(value)


def asked_keys(value: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of an exchange that hold what was asked, not what was answered."""
    return REQUEST_KEYS | {"body"} if not _FLAT_MARKS.isdisjoint(value) else REQUEST_KEYS


def _header(parts: list[Any], wanted: str) -> str | None:
    """Find a header in any of the recorders' forms: a mapping, name and value pairs, or a flat list."""
    for item in _visit(parts, opened=2):
        if isinstance(item, dict):
            if str(item.get("name", "")).lower() == wanted:
                return str(item.get("value", ""))
            for name, value in item.items():
                if name.lower() == wanted:
                    value = value[0] if isinstance(value, list) and value else value
                    return value if isinstance(value, str) else None
        elif isinstance(item, list):
            for name, value in zip(item[:512:2], item[1:512:2], strict=False):
                if isinstance(name, str) and isinstance(value, str) and name.lower() == wanted:
                    return value
    return None


def _visit(value: Any, opened: int = 0) -> Iterator[Any]:
    """Yield every mapping and list below ``value``, texts with JSON opened, a bounded number of them."""
    waiting = deque([(value, opened)])
    visited = 0
    while waiting and visited < _MAX_VISITED:
        item, opened = waiting.popleft()
        visited += 1
        if isinstance(item, dict):
            yield item
            waiting.extend((child, opened) for child in item.values())
        elif isinstance(item, list):
            yield item
            waiting.extend((child, opened) for child in item[:256])
        elif isinstance(item, (str, bytes)) and opened < 2:
            document = _opened(item)
            if document is not None:
                waiting.append((document, opened + 1))


def _opened(item: str | bytes) -> Any:
    if item[:3] in ("eyJ", b"eyJ"):
        try:
            item = base64.b64decode(item)
        except ValueError:
            return None
    start = item[:1]
    if start not in ("{", "[", b"{", b"[") or len(item) > _LONGEST_OPENED:
        return None
    try:
        return json.loads(item)
    except (ValueError, RecursionError):
        return None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
