"""YAML documents to plain values, from parser events: no tag is obeyed, nothing is built but lists, dicts
and scalars.

Aliases give the same object again, never a copy, and what they add up to is counted: a small text cannot
grow large.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import yaml

from fragmentlab.corpus.importing.unpack import Unreadable

MAX_DEPTH = 200
"""The deepest nesting of lists and mappings."""
MAX_ALIASED = 64 << 20
"""The most that all aliases of one document may stand for, in characters and values."""
MAX_VALUES = 10_000_000
"""The most values of one document, each alias counted as what it stands for."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def yaml_documents(text: str) -> Iterator[Any]:
    """Yield each document of the text; raise Unreadable where it is not YAML or nested too deeply."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder()
            elif isinstance(event, yaml.DocumentEndEvent):
                yield builder.root
            else:
                builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise Unreadable(f"is not valid YAML{where}") from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None


class NotBase64(str):
    """The text of a binary scalar that somebody broke."""

    __slots__ = ()


class _Builder:
    def __init__(self) -> None:
        self.root: Any = None
        self._aliased = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(_scalar(event), 1, 1 + len(event.value), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise Unreadable("has an alias whose anchor is missing or still open")
            value, size, weight = self._anchors[event.anchor]
            self._aliased += weight
            if self._aliased > MAX_ALIASED:
                raise Unreadable(f"grows by more than {MAX_ALIASED >> 20} MiB through its aliases")
            self._add(value, size, weight, None)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            if len(self._open) >= MAX_DEPTH:
                raise Unreadable(f"is nested deeper than {MAX_DEPTH}")
            self._anchors.pop(event.anchor or "", None)
            self._open.append(_Open([] if isinstance(event, yaml.SequenceStartEvent) else {}, event.anchor))
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            closed = self._open.pop()
            self._add(closed.collection, closed.size, closed.weight, closed.anchor)

    def _add(self, value: Any, size: int, weight: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size, weight)
        if not self._open:
            self.root = value
            return
        holder = self._open[-1]
        holder.size += size
        holder.weight += weight
        if holder.size > MAX_VALUES:
            raise Unreadable(f"grows to more than {MAX_VALUES} values through its aliases")
        if isinstance(holder.collection, list):
            holder.collection.append(value)
        elif not holder.has_key:
            holder.key, holder.has_key = _key(value), True
        else:
            holder.collection[holder.key] = value
            holder.has_key = False


class _Open:
    """A collection that is being filled; ``key`` waits for its value; ``size`` counts the values inside,
    ``weight`` their characters too."""

    __slots__ = ("anchor", "collection", "has_key", "key", "size", "weight")

    def __init__(self, collection: Any, anchor: str | None) -> None:
        self.collection = collection
        self.anchor = anchor
        self.size = 1
        self.weight = 1
        self.key = ""
        self.has_key = False


def _key(value: Any) -> str:
    """A mapping's key as text; vcrpy once wrote header names as one-item lists."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value[0]
    return value if isinstance(value, str) else "" if isinstance(value, (list, dict)) else str(value)


def _scalar(event: yaml.ScalarEvent) -> Any:
    value: str = event.value
    if event.tag in ("tag:yaml.org,2002:binary", "!binary"):
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            return NotBase64(value)
    if not event.implicit[0] or event.tag is not None:
        return value
    if value in _NULLS:
        return None
    if value in _TRUTH:
        return _TRUTH[value]
    if _INTEGER.fullmatch(value):
        return int(value)
    return float(value) if _FLOAT.fullmatch(value) else value
