"""YAML: cassettes. No tag is obeyed but ``!!binary``; numbers and dates stay as they are written."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import yaml

from fragmentlab.corpus.importing.budget import MAX_DOCUMENT_VALUES, Budget, OtherKind, Unreadable
from fragmentlab.corpus.importing.documents import Document
from fragmentlab.corpus.importing.lines import data_mark
from fragmentlab.corpus.importing.values import Number, record
from fragmentlab.wire.events import looks_like_events

MAX_DEPTH = 200
"""The deepest nesting of lists and mappings."""
MAX_ALIASED = 64 << 20
"""The most characters that aliases may add to a file."""
_START = re.compile(r"(?:#[^\n]*+\n\s*+)*+(?:---|%YAML|- |[\"']?[A-Za-z_][\w.-]*+[\"']?:(?:\s|$))")
_SECOND_LINE = re.compile(
    r"(?:#[^\n]*+\n\s*+)*+(?!(?:data|event|id|retry):)[\"']?[\w.-]++[\"']?: *+[^\n]{0,100}\n"
    r"(?:\s*+- |\s++[\w\"'-]+:|[\w.-]++:)"
)
_SUFFIXES = (".yaml", ".yml")
_BINARY = ("tag:yaml.org,2002:binary", "!binary")
_PLAIN = "tag:yaml.org,2002:"
_RESOLVED = (
    ("null", re.compile(r"~|null|Null|NULL|\Z"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    ("int", re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]+)?\Z"), list("-0123456789")),
)


class NotBase64(str):
    """The text of a binary scalar that somebody broke."""

    __slots__ = ()


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]
    """Builds lists, objects, texts and numbers, whatever the tags say."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.values = MAX_DOCUMENT_VALUES
        self.characters = len(text) + MAX_ALIASED

    def plain(self, node: yaml.Node, depth: int = 0) -> Any:
        """Return the value of a node."""
        self.values -= 1
        if self.values < 0:
            raise Unreadable(f"holds more than {MAX_DOCUMENT_VALUES:,} values, each alias counted; split it")
        if depth > MAX_DEPTH:
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}")
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return record(
                [(_key(self.plain(key, depth + 1)), self.plain(item, depth + 1)) for key, item in node.value]
            )
        self.characters -= len(node.value)
        if self.characters < 0:
            raise Unreadable(f"grows by more than {MAX_ALIASED >> 20} MiB through its aliases")
        return _scalar(node)


for _name, _pattern, _first in _RESOLVED:
    _Loader.add_implicit_resolver(_PLAIN + _name, _pattern, _first)


def recognise(document: Document) -> bool:
    if not isinstance(document.content, (str, bytes)) or not document.name or document.head[:1] in ("{", "["):
        return False
    if document.suffix in _SUFFIXES:
        return data_mark(document.head) != 0
    return (
        _START.match(document.head) is not None
        and not looks_like_events(document.data)
        and not any(map(_is_logged, document.head.split("\n")))
        and _is_yaml(document)
    )


def _is_logged(line: str) -> bool:
    """Return whether a line is an event with something before it that no cassette has there."""
    prefix = line[: data_mark(line) or 0].strip()
    return bool(prefix) and prefix[-1] not in "\"'"


def _is_yaml(document: Document) -> bool:
    """Return whether a file of another name is YAML: it says so, or its first key is followed by more."""
    return document.head.startswith(("---\n", "%YAML", "- ")) or _SECOND_LINE.match(document.head) is not None


def read(document: Document, budget: Budget) -> Iterator[Document]:
    # YAML allows no stray bytes; they stand as U+FFFD, as the recorder's own reader would show them.
    text = re.sub("[\U0010ff80-\U0010ffff]", "\ufffd", document.text)
    try:
        loader = _Loader(text)
        number = 0
        budget.visit(text.count("\n"))
        while loader.check_node():
            yield document.inner(loader.plain(loader.get_node()), f"[{number}]" if number else "")
            number += 1
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        if document.suffix not in _SUFFIXES:
            raise OtherKind("is not YAML") from None
        mark = getattr(error, "problem_mark", None)
        if "nesting depth" in str(error):
            raise Unreadable(f"is nested deeper than {MAX_DEPTH}") from None
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise Unreadable(f"is not valid YAML{where}") from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None


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
    kind = node.tag.removeprefix(_PLAIN)
    if kind == "null":
        return None
    if kind == "bool":
        return value.lower() == "true"
    return Number(value) if kind == "int" else value
