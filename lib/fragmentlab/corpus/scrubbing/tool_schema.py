"""A tool's JSON Schema with its keys renamed like the arguments', values replaced and prose dropped."""

from __future__ import annotations

import json
from typing import Any

from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.json_text import scrub_arguments

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMAS = (
    *"items additionalProperties propertyNames contains not if then else".split(),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SIZES = [f"{bound}{of}" for bound in ("min", "max") for of in ("Length", "Items", "Properties", "Contains")]
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_TYPES = frozenset("string number integer object array boolean null".split())
_LARGEST_SIZE = 100_000


def scrub_schema(schema: Any, words: Aliases) -> Any:
    """Return the schema with only what decides structure.

    Patterns and formats are dropped: filler would break them.
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else True
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _MAPS and isinstance(value, dict):
            kept[name] = {words.of("key", key): scrub_schema(part, words) for key, part in value.items()}
        elif name in _SCHEMAS:
            kept[name] = scrub_schema(value, words)
        elif name in _LISTS and isinstance(value, list):
            kept[name] = [scrub_schema(part, words) for part in value]
        elif name == "required" and isinstance(value, list):
            kept[name] = [words.of("key", key) for key in value if isinstance(key, str)]
        elif name == "$ref" and isinstance(value, str) and value.startswith("#/"):
            kept[name] = _reference(value, words)
        elif name in ("enum", "const"):
            kept[name] = json.loads(scrub_arguments(json.dumps(value, ensure_ascii=False), words))
        else:
            _keep_scalar(kept, name, value, words)
    kept.pop("patternProperties", None)
    return kept


def _keep_scalar(kept: dict[str, Any], name: str, value: Any, words: Aliases) -> None:
    if name == "type":
        types = [value] if isinstance(value, str) else value
        if isinstance(types, list) and all(isinstance(item, str) and item in _TYPES for item in types):
            kept[name] = value
    elif name in _SIZES and type(value) is int and 0 <= value <= _LARGEST_SIZE:
        kept[name] = value
    elif name in _BOUNDS and type(value) in (int, float):
        kept[name] = json.loads(scrub_arguments(json.dumps(value), words))
    elif name == "uniqueItems" and isinstance(value, bool):
        kept[name] = False


def _reference(value: str, words: Aliases) -> str:
    steps = value.removeprefix("#/").split("/")
    named = [
        step if position % 2 == 0 and (step in _MAPS or step in _SCHEMAS) else words.of("key", step)
        for position, step in enumerate(steps)
    ]
    return "#/" + "/".join(named)
