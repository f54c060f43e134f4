"""Validation of the complete proposal: name and arguments of each call (docs/design.md, end of section 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import strictjson
from .limits import Limits
from .schemas import ArgumentSchema, WorkExceeded

_SURROGATE = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
_SHORTEST_NAME = 3
Flags = dict[str, Any]


class Tools:
    """The known tools of a request, their schemas compiled once.

    A tool is a name, an object with a name and, if wanted, a schema, or an entry of a request's ``tools``
    list, of which those that are no functions are left out.

    >>> tools = Tools(["lookup_city", {"name": "save", "schema": {"required": ["path"]}}])
    >>> "save" in tools
    True
    """

    def __init__(self, tools: Iterable[str | Mapping[str, Any]]) -> None:
        self._schemas: dict[str, ArgumentSchema | None] = {}
        for tool in tools:
            if isinstance(tool, Mapping) and tool.get("type", "function") != "function":
                continue
            name, schema = _name_and_schema(tool)
            self._schemas[name] = None if schema is None else ArgumentSchema(schema)

    def __contains__(self, name: str) -> bool:
        return name in self._schemas

    def is_repeated_name(self, name: str) -> bool:
        """Whether the name is a known one written two or more times in a row."""
        return any(
            known and len(name) > len(known) and name == known * (len(name) // len(known))
            for known in self._schemas
        )

    def schema_fault(self, name: str, arguments: Any, text_size: int, limits: Limits) -> str | None:
        """Return the category that the arguments are refused with where the tool has a schema."""
        schema = self._schemas.get(name)
        if schema is None:
            return None
        try:
            is_satisfied = schema.is_satisfied(arguments, text_size, limits.schema_work)
        except WorkExceeded:
            return "limit.schema_work"
        return None if is_satisfied else "proposal.arguments_schema"


AnyTools = Tools | Iterable[str | Mapping[str, Any]]
"""What stands for the known tools wherever they are asked for."""


def known_tools(tools: AnyTools | None) -> Tools | None:
    """Compile the tools unless they are; raise ValueError for one that cannot be used."""
    if isinstance(tools, (str, bytes, Mapping)):
        raise ValueError("tools are a list; put a single one into a list of its own")
    return tools if tools is None or isinstance(tools, Tools) else Tools(tools)


def _name_and_schema(tool: Any) -> tuple[str, Any]:
    if isinstance(tool, str):
        return tool, None
    function = tool.get("function") if isinstance(tool, Mapping) else None
    entry, key = (function, "parameters") if isinstance(function, Mapping) else (tool, "schema")
    if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
        return entry["name"], entry.get(key)
    raise ValueError(
        "a tool is a name, an object with a name and, if wanted, a schema, or a request's own entry"
    )


def join_surrogates(text: str) -> str:
    """Join surrogate halves that stood in different pieces; a half left alone stays."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def is_self_repeating(name: str) -> bool:
    """Whether the name is one of at least three characters written two or more times in a row."""
    period = (name + name).find(name, 1)
    return _SHORTEST_NAME <= period < len(name)


def name_faults(name: str, tools: Tools | None) -> Iterator[tuple[str, Flags]]:
    """Yield (category, flags) of a call's joined name."""
    if not name:
        yield "proposal.name_missing", {}
        return
    if _SURROGATE.search(name):
        yield "proposal.name_invalid_unicode", {}
    if tools is not None and name not in tools:
        yield "proposal.name_unknown", {"name_repeated": True} if tools.is_repeated_name(name) else {}


def arguments_faults(
    text: str, name: str, tools: Tools | None, limits: Limits
) -> Iterator[tuple[str, Flags]]:
    """Yield (category, flags) of each fault of a call's joined arguments, in the order of checks.

    What depends on a failed check is left out.
    """
    if not text:
        yield "proposal.arguments_empty", {}
        return
    if not text.isascii() and _SURROGATE.search(text):
        yield "proposal.arguments_invalid_unicode", {}
        return
    try:
        document = strictjson.parse(text, limits.number_digits)
    except strictjson.Malformed as malformed:
        named = {"ends_early": malformed.ends_early, "more_follows": malformed.more_follows}
        yield "proposal.arguments_invalid_json", {flag: True for flag, holds in named.items() if holds}
        return
    is_object = isinstance(document.value, dict)
    if document.lone_surrogate:
        yield "proposal.arguments_invalid_unicode", {}
    if document.repeats:
        yield "proposal.arguments_duplicate_key", {}
    if not is_object:
        yield "proposal.arguments_not_object", {"found": _json_type(document.value)}
    if document.depth > limits.depth:
        yield "limit.depth", {}
    elif document.wide_number:
        yield "limit.number", {}
    elif is_object and tools is not None:
        category = tools.schema_fault(name, document.value, len(text), limits)
        if category:
            yield category, {}


def _json_type(value: Any) -> str:
    types = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return "null" if value is None else types.get(type(value), "object")
