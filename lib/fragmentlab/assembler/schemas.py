"""Arguments against a tool's JSON Schema, within a bound: neither may be able to stop the host.

jsonschema checks. Each keyword spends steps from a budget, patterns are matched by RE2 in linear time, and
what jsonschema does in quadratic time (unique items, enumerations) is done here in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

_COMPILING = 20_000_000
"""Steps that checking a schema itself may take."""
_REFERENCE = 4
"""Steps of following a reference by a JSON pointer."""
_UNICODE_ESCAPE = re.compile(r"((?<!\\)(?:\\\\)*)\\u([0-9a-fA-F]{4})")
_Keyword = Callable[[Any, Any, Any, Any], "Iterable[Any] | None"]


class WorkExceeded(Exception):
    """The arguments cannot be checked within the bound."""


class _Budget:
    """The steps that are left of one check; ``text_size`` bounds what a message may quote."""

    def __init__(self, steps: int, text_size: int, facts: _Facts) -> None:
        self.left = steps
        self.text_size = text_size
        self.facts = facts
        self.numbers: dict[Any, int] = {}
        """Array or object met -> its number, so that a value that holds it is compared at once."""
        self.choices: dict[int, set[Any]] = {}
        """An enumeration, by where it is held -> the identities of its values."""

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise WorkExceeded


_BUDGET: ContextVar[_Budget] = ContextVar("budget")


class ArgumentSchema:
    """One compiled JSON Schema; ValueError for what is none, quoting nothing of it.

    Raises ModuleNotFoundError where jsonschema or google-re2 is missing, which only schemas need.
    """

    def __init__(self, schema: Any) -> None:
        from jsonschema.validators import validator_for
        from referencing import Registry

        try:
            kind = _bounded(validator_for(schema))
        except TypeError:  # no object, or one whose $schema is no word
            raise ValueError("a tool's schema is not a valid JSON Schema") from None
        self._facts = _Facts(schema)
        meta = kind(kind.META_SCHEMA, format_checker=kind.FORMAT_CHECKER)
        own = _Budget(_COMPILING, self._facts.size, _Facts(kind.META_SCHEMA))
        try:
            is_schema = self._is_valid(meta, schema, own)
        except WorkExceeded:
            raise ValueError("a tool's schema is too large to be checked") from None
        if not is_schema:
            raise ValueError("a tool's schema is not a valid JSON Schema")
        self._validator = kind(schema, registry=Registry())

    def is_satisfied(self, arguments: Any, text_size: int, steps: int) -> bool:
        """Whether the arguments satisfy the schema; one that cannot be used is satisfied by nothing.

        Raises WorkExceeded where that cannot be said within so many steps.
        """
        return self._is_valid(self._validator, arguments, _Budget(steps, text_size, self._facts))

    @staticmethod
    def _is_valid(validator: Any, instance: Any, budget: _Budget) -> bool:
        token = _BUDGET.set(budget)
        try:
            return bool(validator.is_valid(instance))
        except RecursionError:
            raise WorkExceeded from None
        except WorkExceeded:
            raise
        except Exception:  # unresolvable references and the like, in words that may quote values
            return False
        finally:
            _BUDGET.reset(token)


@lru_cache
def _bounded(kind: Any) -> Any:
    """Return the class of validators of one draft with every keyword counted."""
    import re2  # noqa: F401  # that it is missing must be said before anything is checked
    from jsonschema.validators import extend

    own = {name: function for name, function in _OWN.items() if name in kind.VALIDATORS}
    return extend(kind, {name: _counted(name, f) for name, f in ({**kind.VALIDATORS, **own}).items()})


def _counted(name: str, function: _Keyword) -> _Keyword:
    holds_subschemas = name not in ("enum", "const")

    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        budget = _BUDGET.get()
        size = len(instance) if isinstance(instance, (dict, list)) else 0
        members = _members(value) if holds_subschemas else []
        budget.spend(1 + size + len(members) + sum(len(item) for item in members if isinstance(item, list)))
        if name.endswith(("$ref", "Ref")) and isinstance(value, str):
            budget.spend(_REFERENCE if value == "#" or value.startswith("#/") else budget.facts.size)
        if name.startswith("unevaluated"):
            budget.spend(size**2 >> 4)  # members are looked up in a list
            is_object = name == "unevaluatedProperties" and isinstance(instance, dict)
            if is_object and budget.facts.has_patterns:
                raise WorkExceeded  # they would be matched by Python's engine
        if refused := sum(member is False for member in members) or value is False:
            budget.spend(refused * budget.text_size >> 6)  # a message quotes what false refuses
        for error in function(validator, value, instance, schema) or ():
            budget.spend(len(error.message) >> 6)
            yield error

    return keyword


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


class _Facts:
    """What bounds the work of a schema: the values in it, and whether it matches properties by patterns."""

    def __init__(self, schema: Any) -> None:
        self.size, self.has_patterns = 0, False
        level = [schema]
        while level:
            self.size += len(level)
            self.has_patterns |= any(isinstance(v, dict) and "patternProperties" in v for v in level)
            level = [item for holder in level for item in _members(holder)]


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_UNICODE_ESCAPE.sub(r"\1\\x{\2}", pattern), options)
    except (re2.error, UnicodeError):
        re.compile(pattern)  # what is no pattern at all makes the schema unusable
        return None  # lookarounds, backreferences: no linear engine matches them


def _matches(pattern: str, text: str) -> bool:
    _BUDGET.get().spend(1 + (len(text) >> 6))
    compiled = _compiled(pattern)
    if compiled is None:
        raise WorkExceeded
    return compiled.search(text) is not None


def _error(keyword: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(keyword)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield _error("pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, subschema)


def _additional_properties(validator: Any, subschema: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for key, value in instance.items():
            if key not in known and not any(_matches(pattern, key) for pattern in patterns):
                yield from validator.descend(value, subschema)


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if wanted and isinstance(instance, list) and len(set(map(_identity, instance))) < len(instance):
        yield _error("uniqueItems")


def _enum(validator: Any, values: Any, instance: Any, schema: Any) -> Iterator[Any]:
    choices = _BUDGET.get().choices
    if id(values) not in choices:
        choices[id(values)] = set(map(_identity, values))
    if _identity(instance) not in choices[id(values)]:
        yield _error("enum")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if _identity(instance) != _identity(value):
        yield _error("const")


def _identity(value: Any) -> tuple[str, Any]:
    """What equal JSON values share and others do not: 1 is 1.0, and true is neither."""
    budget = _BUDGET.get()
    budget.spend(1)
    if isinstance(value, list):
        key: Any = tuple(map(_identity, value))
    elif isinstance(value, dict):
        key = frozenset((name, _identity(item)) for name, item in value.items())
    else:
        return "boolean" if isinstance(value, bool) else "scalar", value
    return "holder", budget.numbers.setdefault(key, len(budget.numbers))


_OWN: dict[str, _Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "enum": _enum,
    "const": _const,
}
