"""Validation of the complete proposal: identity, name and arguments of each call.

Source: docs/design.md, section 4, end of the order of checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fragmentlab.assembler import strictjson
from fragmentlab.assembler.limits import Limits


@dataclass(frozen=True)
class Tool:
    """A known tool; ``schema`` is a JSON Schema of its arguments, checked with jsonschema where that is
    installed."""

    name: str = field(repr=False)
    schema: Mapping[str, Any] | bool | None = field(default=None, repr=False)


class _Validator(Protocol):
    def is_valid(self, instance: Any) -> bool: ...


class Tools:
    """The known tools of a request, their schemas compiled once."""

    def __init__(self, tools: Iterable[str | Tool | Mapping[str, Any]]) -> None:
        self._validators: dict[str, _Validator | None] = {}
        for tool in map(_tool, tools):
            self._validators[tool.name] = None if tool.schema is None else _compile(tool.schema)

    def __contains__(self, name: str) -> bool:
        return name in self._validators

    def is_repeated_name(self, name: str) -> bool:
        """Whether the name is a known one written two or more times in a row."""
        return any(
            known
            and len(name) > len(known)
            and len(name) % len(known) == 0
            and name == known * (len(name) // len(known))
            for known in self._validators
        )

    def satisfies(self, name: str, arguments: Any) -> bool:
        """Whether the arguments satisfy the tool's schema, if it has one. An unusable schema satisfies
        nothing."""
        validator = self._validators.get(name)
        if validator is None:
            return True
        try:
            return validator.is_valid(arguments)
        except (
            Exception
        ):  # whatever a schema provokes (unresolvable references, bad patterns) may quote values
            return False


def _tool(tool: str | Tool | Mapping[str, Any]) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, str):
        return Tool(tool)
    if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
        return Tool(tool["name"], tool.get("schema"))
    raise ValueError("a tool is a name, or an object with a name and, if wanted, a schema")


def _compile(schema: Any) -> _Validator:
    try:
        from jsonschema.validators import validator_for  # optional for the core
        from referencing import Registry
    except ImportError:
        raise ValueError("checking a tool's schema needs the package jsonschema") from None
    try:
        kind = validator_for(schema)
        kind.check_schema(schema)
    except Exception:  # its messages quote the schema
        raise ValueError("a tool's schema is not a valid JSON Schema") from None
    validator: _Validator = kind(schema, registry=Registry())
    return validator


_SURROGATE = re.compile("[\ud800-\udfff]")


def join_surrogates(text: str) -> str:
    """Join surrogate halves that stood in different pieces; a half left alone stays."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def name_faults(name: str, tools: Tools | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (category, flags) of a call's joined name."""
    if not name:
        yield "proposal.name_missing", {}
        return
    if _SURROGATE.search(name):
        yield "proposal.name_invalid_unicode", {}
    if tools is not None and name not in tools:
        yield "proposal.name_unknown", {"name_repeated": True} if tools.is_repeated_name(name) else {}


def arguments_faults(text: str, name: str, tools: Tools | None, limits: Limits) -> Iterator[str]:
    """Yield the categories of a call's joined arguments in the order of checks; what depends on a failed
    one is left out."""
    if not text:
        yield "proposal.arguments_empty"
        return
    if not text.isascii() and _SURROGATE.search(text):
        yield "proposal.arguments_invalid_unicode"
        return
    try:
        document = strictjson.parse(text, limits.number_digits, limits.depth)
    except strictjson.Malformed:
        yield "proposal.arguments_invalid_json"
        return
    if document.lone_surrogate:
        yield "proposal.arguments_invalid_unicode"
    if document.repeats:
        yield "proposal.arguments_duplicate_key"
    if not isinstance(document.value, dict):
        yield "proposal.arguments_not_object"
    if document.depth > limits.depth:
        yield "limit.depth"
        return
    if document.wide_number:
        yield "limit.number"
        return
    if isinstance(document.value, dict) and tools is not None and not tools.satisfies(name, document.value):
        yield "proposal.arguments_schema"
