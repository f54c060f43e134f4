"""The values of YAML documents. No tag is obeyed but ``!!binary``; numbers and dates stay as written."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import yaml

from fragmentlab.corpus.importing.budget import Unreadable
from fragmentlab.corpus.importing.values import NotBase64, Number, object_of

MAX_DEPTH = 200
"""The deepest nesting of lists and mappings."""
MAX_NODES = 300_000
"""The most values of a file, each alias counted as what it stands for."""
MAX_ALIASED = 64 << 20
"""The most characters that aliases may add to a file."""
_TOO_MANY = f"holds more than {MAX_NODES:,} values, each alias counted; split it"
_BINARY = ("tag:yaml.org,2002:binary", "!binary")
_PLAIN = "plain"
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]+)?")


class NotYAML(Exception):
    """The text is no YAML; ``line`` is where that shows, if it is known."""

    def __init__(self, line: int | None) -> None:
        super().__init__()
        self.line = line


def yaml_values(text: str) -> Iterator[Any]:
    """Yield the value of each document; raise NotYAML, or Unreadable where it passes a bound."""
    if text.count(": !") + text.count("- !") > MAX_NODES:
        raise Unreadable(_TOO_MANY)
    try:
        loader = _Loader(text)
        while loader.check_node():
            yield loader.plain(loader.get_node())
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        if "nesting depth" in str(error):
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}") from None
        mark = getattr(error, "problem_mark", None)
        raise NotYAML(mark.line + 1 if mark else None) from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]
    """Builds lists, objects, texts and numbers, whatever the tags say."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.nodes = self.values = MAX_NODES
        self.characters = len(text) + MAX_ALIASED

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Say of a node without a tag whether it is a plain scalar; count it before it is kept."""
        self.nodes -= 1
        if self.nodes < 0:
            raise Unreadable(_TOO_MANY)
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else ""

    def plain(self, node: yaml.Node, depth: int = 0) -> Any:
        """Return the value of a node; an alias is counted as what it stands for."""
        self.values -= 1
        if self.values < 0:
            raise Unreadable(_TOO_MANY)
        if depth > MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}")
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return object_of(
                [(_key(self.plain(key, depth + 1)), self.plain(item, depth + 1)) for key, item in node.value]
            )
        self.characters -= len(node.value)
        if self.characters < 0:
            raise Unreadable(f"grows by more than {MAX_ALIASED >> 20} MiB through its aliases")
        return _scalar(node)


def _key(value: Any) -> str:
    """A mapping's key as text; vcrpy once wrote header names as one-item lists."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value[0]
    return value if isinstance(value, str) else "" if isinstance(value, (list, dict)) else str(value)


def _scalar(node: yaml.ScalarNode) -> Any:
    value: str = node.value
    if node.tag in _BINARY:
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            return NotBase64(value)
    if node.tag != _PLAIN:
        return value
    if value in _NULLS:
        return None
    return _TRUTH[value] if value in _TRUTH else Number(value) if _NUMBER.fullmatch(value) else value
