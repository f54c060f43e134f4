"""What stands around a body in its container: the request, who was asked, and how the transport ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fragmentlab.assembler import End
from fragmentlab.corpus.importing.unpack import Budget, from_base64

Step = tuple[Any, str | int]
"""A container and the key or position taken from it."""

REQUEST_KEYS = frozenset(
    "request when httpRequest req requests requestBody request_body requestHeaders request_headers "
    "postData".split()
)
"""Keys under which a container keeps what was asked; bodies that stand there are not answers."""
_ANSWER_KEYS = frozenset(
    "response then httpResponse res responses responseBody response_body responseHeaders".split()
)
_FLAT_REQUEST_KEYS = ("body", "path", "scope", "method", "url", "uri", "matchKey", "host", "endpoint")
_FLAT_MARKS = frozenset(("path", "scope", "method", "url", "uri"))
"""Of an exchange whose request is not kept apart (nock): there ``body`` is the request's."""
_HEADER_KEYS = frozenset(("headers", "header", "responseheaders", "response_headers", "rawheaders"))
_HOST = re.compile(
    r"(?<![A-Za-z0-9.-])((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}|localhost)(?::\d{1,5})?(?=[/:\s]|$)"
)
_MAX_VISITED = 4000
_BROKEN_MARKS = ("_error", "error", "fault", "aborted", "truncated")


@dataclass(frozen=True, repr=False)
class Facts:
    """What the container says of one body; None where it does not say."""

    model: str | None
    tools: tuple[str, ...] | None
    host: str | None
    path: str | None
    end: End
    recorded_bytes: int | None
    """The size of the body by the container's own account."""
    entry: int
    """Identifies the recorded exchange inside its file."""


def is_interaction(value: dict[str, Any]) -> bool:
    """Whether the mapping holds an answer of an exchange."""
    return not _ANSWER_KEYS.isdisjoint(value)


def request_keys(value: dict[str, Any]) -> frozenset[str]:
    """Return the keys of the mapping that hold what was asked, not what was answered."""
    if not is_interaction(value):
        return frozenset()
    is_flat = not _FLAT_MARKS.isdisjoint(value)
    return REQUEST_KEYS | {"body"} if is_flat else REQUEST_KEYS


def facts_of(steps: Sequence[Step]) -> Facts:
    """Collect what stands around a body. The innermost exchange with a request counts."""
    entry, requests = _entry(steps)
    body = _request_body(requests)
    url = _first_url(requests, entry)
    return Facts(
        model=body.get("model") if isinstance(body.get("model"), str) else None,
        tools=_tool_names(body),
        host=url[0],
        path=url[1],
        end=_end(steps, entry),
        recorded_bytes=_recorded_bytes(steps),
        entry=id(entry) if entry is not None else _item(steps),
    )


def content_encoding(steps: Sequence[Step]) -> str:
    """Return the response's Content-Encoding in lower case, empty where none is recorded."""
    for holder, key in reversed(steps):
        if not isinstance(holder, dict) or key in REQUEST_KEYS:
            continue
        for name, headers in holder.items():
            if isinstance(name, str) and name.lower() in _HEADER_KEYS:
                found = header(headers, "content-encoding")
                if found is not None:
                    return found.lower()
        if is_interaction(holder):
            break
    return ""


def header(headers: Any, wanted: str) -> str | None:
    """Find a header in any of the recorders' forms: a mapping, name and value pairs, or a flat list."""
    if isinstance(headers, dict):
        for name, value in headers.items():
            if isinstance(name, str) and name.lower() == wanted:
                value = value[0] if isinstance(value, list) and value else value
                return value if isinstance(value, str) else None
    elif isinstance(headers, list):
        for item in headers:
            if isinstance(item, dict) and str(item.get("name", "")).lower() == wanted:
                return str(item.get("value", ""))
        texts = [item for item in headers if isinstance(item, str)]
        for name, value in zip(texts[::2], texts[1::2], strict=False):
            if name.lower() == wanted:
                return value
    return None


def _entry(steps: Sequence[Step]) -> tuple[dict[str, Any] | None, list[Any]]:
    """Return the innermost mapping that holds a request beside the way to the body, and its request parts."""
    for holder, key in reversed(steps):
        if not isinstance(holder, dict):
            continue
        parts = [holder[name] for name in holder if name in REQUEST_KEYS and name != key]
        if parts:
            flat = {name: holder[name] for name in _FLAT_REQUEST_KEYS if name in holder and name != key}
            return holder, [*parts, flat]
        if key in _ANSWER_KEYS:
            return holder, [{name: holder[name] for name in holder if name != key}]
    return None, []


def _item(steps: Sequence[Step]) -> int:
    """Identify the list item that a body stands in, where no exchange is told apart."""
    return next((hash((id(holder), key)) for holder, key in reversed(steps) if isinstance(key, int)), 0)


def _visit(value: Any) -> Iterator[Any]:
    """Yield every mapping and text below ``value``, texts that hold JSON opened, a bounded number of them."""
    waiting = [(value, 0)]
    visited = 0
    while waiting and visited < _MAX_VISITED:
        item, opened = waiting.pop(0)
        visited += 1
        yield item
        if isinstance(item, dict):
            waiting += [(child, opened) for child in item.values()]
        elif isinstance(item, list):
            waiting += [(child, opened) for child in item[:256]]
        elif isinstance(item, (str, bytes)) and opened < 2:
            document = _opened(item)
            if document is not None:
                waiting.append((document, opened + 1))


def _opened(item: str | bytes) -> Any:
    text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
    if text[:1] not in ("{", "[") and '"model"' not in text:
        data = from_base64(text, Budget())
        if data is None or data[:1] != b"{":
            return None
        text = data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _request_body(requests: list[Any]) -> dict[str, Any]:
    """Find the request's JSON: the first mapping with a model or tools beside messages, or with either."""
    second: dict[str, Any] = {}
    for item in _visit(requests):
        if isinstance(item, dict):
            if "messages" in item and ("model" in item or "tools" in item):
                return item
            if not second and isinstance(item.get("model"), str):
                second = item
    return second


def _tool_names(body: dict[str, Any]) -> tuple[str, ...] | None:
    named = []
    for tool in _items(body.get("tools")):
        function = tool.get("function") if isinstance(tool, dict) else None
        named.append(function.get("name") if isinstance(function, dict) else None)
    for function in _items(body.get("functions")):
        named.append(function.get("name") if isinstance(function, dict) else None)
    names = tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))
    return names or None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first_url(requests: list[Any], entry: dict[str, Any] | None) -> tuple[str | None, str | None]:
    host = path = None
    places = (
        [*requests, {name: entry[name] for name in _FLAT_REQUEST_KEYS if name in entry}]
        if entry
        else requests
    )
    for item in _visit(places):
        if not isinstance(item, dict):
            continue
        for key, value in item.items():
            if isinstance(value, list) and key.lower() == "host" and value:
                value = value[0]
            if not isinstance(value, str) or len(value) > 2000:
                continue
            name = str(item.get("name", "")).lower() if key == "value" else key.lower()
            if name in ("url", "uri", "scope", "host", "matchkey", "endpoint", ":authority", "base_url"):
                host = host or ((match := _HOST.search(value)) and match[0].rstrip("/")) or None
            if "/completions" in value and name in ("url", "uri", "path", "urlpath", "matchkey", "endpoint"):
                path = path or value
        if host and path:
            break
    return host, path


def _end(steps: Sequence[Step], entry: dict[str, Any] | None) -> End:
    """Say ``aborted`` where the container says so, otherwise ``unknown``."""
    for holder, key in reversed(steps):
        if not isinstance(holder, dict) or key in REQUEST_KEYS:
            continue
        for mark in _BROKEN_MARKS:
            if mark != key and (
                holder.get(mark) is True or (isinstance(holder.get(mark), str) and holder[mark])
            ):
                return "aborted"
        if holder is entry:
            break
    return "unknown"


def _recorded_bytes(steps: Sequence[Step]) -> int | None:
    """The size that HAR keeps beside the text."""
    if steps and isinstance(steps[-1][0], dict) and steps[-1][1] == "text":
        size = steps[-1][0].get("size")
        return size if type(size) is int and size >= 0 else None
    return None
