"""Chunks and the fragments in them: the tolerant walk that reads them, and how they are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

Place = tuple[str | int, ...]


@dataclass(frozen=True, repr=False)
class WireCall:
    """One call as a server means it, before it is cut into fragments."""

    id: str
    name: str
    arguments: str


ENVELOPE: Mapping[str, Any] = {
    "id": "chatcmpl-fragmentlab",
    "object": "chat.completion.chunk",
    "created": 1764547200,
    "model": "fragmentlab",
}
"""The fields around the choices of a chunk that the kit makes."""


def choices_of(chunk: Any) -> Iterator[dict[str, Any]]:
    """Yield the choices of a chunk that are objects, whatever else the chunk holds."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    yield from (choice for choice in _items(choices) if isinstance(choice, dict))


def fragments_of(chunk: Any) -> Iterator[dict[str, Any]]:
    """Yield the fragments of a chunk that are objects, whatever else the chunk holds."""
    yield from (fragment for _, fragment in places_of(chunk))


def places_of(chunk: Any) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield each fragment that is an object with its path from the chunk."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    for at, choice in enumerate(_items(choices)):
        delta = choice.get("delta") if isinstance(choice, dict) else None
        fragments = delta.get("tool_calls") if isinstance(delta, dict) else None
        for number, fragment in enumerate(_items(fragments)):
            if isinstance(fragment, dict):
                yield ("choices", at, "delta", "tool_calls", number), fragment


def function_of(fragment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fragment's function, empty where it has none that is an object."""
    function = fragment.get("function")
    return function if isinstance(function, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def chunk(
    delta: Mapping[str, Any],
    finish_reason: str | None = None,
    envelope: Mapping[str, Any] = ENVELOPE,
) -> dict[str, Any]:
    """Return a chunk of one choice."""
    return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def delta(*fragments: Mapping[str, Any], **said: Any) -> dict[str, Any]:
    """Return a delta that carries fragments and whatever else is ``said`` beside them."""
    return {**said, "tool_calls": list(fragments)}


def fragment(index: Any, function: Mapping[str, Any], **said: Any) -> dict[str, Any]:
    """Return a fragment; ``said`` are the fields before its function, such as ``id`` and ``type``.

    >>> fragment(0, {"arguments": "{}"}, id=None)
    {'index': 0, 'id': None, 'function': {'arguments': '{}'}}
    """
    return {"index": index, **said, "function": dict(function)}


def pieces(text: str, sizes: int | Iterable[int], *, halves: bool = False) -> Iterator[str]:
    """Cut text into pieces of the given sizes in characters; what is left is the last piece.

    With ``halves`` sizes count UTF-16 units, so that a piece can end within a surrogate pair.

    >>> list(pieces("abcde", 2)), list(pieces("abcde", [1, 3]))
    (['ab', 'cd', 'e'], ['a', 'bcd', 'e'])
    """
    width, codec = (2, "utf-16-le") if halves else (4, "utf-32-le")
    units = text.encode(codec, "surrogatepass")
    steps, at = repeat(sizes) if isinstance(sizes, int) else iter(sizes), 0
    while at < len(units):
        end = at + width * next(steps, len(text) or 1)
        yield units[at:end].decode(codec, "surrogatepass")
        at = end
