"""File formats, each declared once as a msgspec Struct: decoded, validated and exported as JSON Schema.

A format that has a ``schema`` field declares it as its tag, so that a file of another format, or of a newer
version, is refused by name::

    class Policy(StrictStruct, tag_field="schema", tag="fragmentlab-policy-v1"):
        allow: dict[str, bool | list[str]]

    policy = decode(path.read_bytes(), Policy, "policy.json")
"""

from __future__ import annotations

import importlib
import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta

from fragmentlab.errors import InputError

SCHEMAS = {
    "answer": "fragmentlab.subjects.answer:Answer",
    "batch": "fragmentlab.corpus.batches:Manifest",
    "expectations": "fragmentlab.qualification.comparing.expectations:Expectations",
    "imported-log": "fragmentlab.qualification.runs.imported:LogLine",
    "ledger": "fragmentlab.qualification.runs.ledger:Entry",
    "policy": "fragmentlab.runtime.policy:Policy",
    "rules": "fragmentlab.corpus.rules:RulesDocument",
    "run": "fragmentlab.qualification.runs.run_files:RunFile",
    "scenario": "fragmentlab.runtime.scenarios:Scenario",
    "shapes": "fragmentlab.corpus.synth.provider_shapes:ShapesDocument",
    "stream": "fragmentlab.corpus.batches:StreamRecord",
    "vectors": "fragmentlab.corpus.vectors:VectorDocument",
}
"""Name of a format -> the Struct that declares it, as ``module:name``; its JSON Schema is
``data/schemas/NAME.schema.json``."""
SHA256 = Meta(pattern="^[0-9a-f]{64}$", description="A SHA-256, in hex.")
_LONGEST_INTEGER = 4000
_T = TypeVar("_T")
# These messages of msgspec quote what was read, or a pattern; the others name types, bounds and our fields.
_QUOTING = (
    (re.compile(r"Object contains unknown field .*", re.DOTALL), "unknown field"),
    (re.compile(r"Invalid (enum )?value .*", re.DOTALL), "not one of the known values"),
    (re.compile(r"Expected `str` matching regex .*", re.DOTALL), "not of the known form"),
    (re.compile(r"Expected `\w+`, got `_KeyTwice`"), "an object holds a key twice"),
)


class StrictStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a format of this kit is made of: immutable, and without unknown fields."""


@dataclass(frozen=True)
class HugeNumber:
    """A number that Python's own types cannot hold, where a format takes any JSON."""

    text: str


class _KeyTwice:
    """Stands for an object that holds a key twice, so that msgspec says where it is."""


def decode(data: bytes | str, kind: type[_T], where: str) -> _T:
    """Decode one JSON document; ``where`` names it in messages.

    Raises InputError with the path of the first fault, such as ``vectors[3].expect.category``. It never
    quotes a value or a key that is not the format's own.
    """
    twice: list[_KeyTwice] = []

    def whole(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        twice.append(_KeyTwice())
        return twice[-1]

    try:
        value = json.loads(
            data if isinstance(data, str) else data.decode("utf-8-sig"),
            object_pairs_hook=whole,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse_constant,
        )
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except ValueError:
        raise InputError(f"{where} is not a JSON document") from None
    _check_tag(value, kind, where)
    made = convert(value, kind, where)
    if twice:
        raise InputError(f"{where}: an object holds a key twice")
    return made


def convert(value: Any, kind: type[_T], where: str) -> _T:
    """Make a value of a format from what another reader gave; the errors are those of ``decode``."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_masked(str(error), kind)}") from None


def canonical(value: object) -> str:
    """Return a value as JSON text, the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a format in SCHEMAS."""
    module, _, attribute = SCHEMAS[name].partition(":")
    kind = getattr(importlib.import_module(module), attribute)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fragmentlab:{name}",
        "title": kind.__struct_config__.tag or name,
        **msgspec.json.schema(kind),
    }


def _integer(text: str) -> int | HugeNumber:
    return int(text) if len(text) <= _LONGEST_INTEGER else HugeNumber(text)


def _float(text: str) -> float | HugeNumber:
    value = float(text)
    return value if math.isfinite(value) else HugeNumber(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError


def _check_tag(value: Any, kind: Any, where: str) -> None:
    config = getattr(kind, "__struct_config__", None)
    if config is None:
        return
    field, tag = config.tag_field, config.tag
    given = value.get(field) if isinstance(value, dict) else None
    if field is None or given == tag or isinstance(value, _KeyTwice):
        return
    if isinstance(given, str) and re.fullmatch(re.escape(tag.rstrip("0123456789")) + r"\d{1,3}", given):
        raise InputError(f"{where} was written by another version of the kit; {tag} is known, so update")
    raise InputError(f'{where} needs "{field}": "{tag}"')


def _masked(message: str, kind: type) -> str:
    """The path and what is wrong there, in words that hold nothing of the document."""
    text, _, path = message.rpartition(" - at ")
    text = text or path
    for pattern, words in _QUOTING:
        if pattern.fullmatch(text):
            text = words + (_see(kind) if "known" in words else "")
    text = text.replace("`", "")
    text = f"{text[0].lower()}{text[1:]}"
    path = path.strip("`").removeprefix("$").removeprefix(".") if path != message else ""
    return f"{path}: {text}" if path else text


def _see(kind: type) -> str:
    declared = f"{kind.__module__}:{kind.__qualname__}"
    name = next((name for name, place in SCHEMAS.items() if place == declared), None)
    return f"; see data/schemas/{name}.schema.json" if name else ""
