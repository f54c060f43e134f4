"""What the fragments of one response get for their names and arguments: replaced as one text, cut at the
same borders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fragmentlab.assembler import Limits
from fragmentlab.assembler.chunks import Refused, decode_chunk
from fragmentlab.assembler.proposal import join_surrogates
from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.events import Path
from fragmentlab.corpus.scrubbing.json_text import scrub_arguments
from fragmentlab.corpus.scrubbing.text import split_surrogates

_MAX_INDEX = 127
_LIMITS = Limits()


@dataclass(repr=False)
class _Text:
    """The pieces of one call's name or arguments: their places, as (event, path), and what they say."""

    places: list[tuple[int, Path]] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)


class FragmentTexts:
    """Collects what the fragments of a response say, event by event, then says what to write in their place.

    Only fragments that the assembler would add to a call are joined; the rest are replaced one by one.
    """

    def __init__(self) -> None:
        self._names: dict[int, _Text] = {}
        self._arguments: dict[int, _Text] = {}
        self._finished = False
        self._done = False

    def take(self, event: int, data: bytes) -> None:
        """Take the data of one event, the end marker included."""
        if data.strip(b" \t") == b"[DONE]":
            self._done = True
            return
        if self._done:
            return
        try:
            chunk = decode_chunk(data, _LIMITS)
        except Refused:
            return
        choices = chunk.get("choices")
        if chunk.get("error") is None and isinstance(choices, list):
            for number, choice in enumerate(choices):
                self._choice(event, ("choices", number), choice)

    def _choice(self, event: int, path: Path, choice: Any) -> None:
        if not isinstance(choice, dict) or choice.get("index") not in (None, 0):
            return
        delta = choice.get("delta")
        fragments = delta.get("tool_calls") if isinstance(delta, dict) else None
        if isinstance(fragments, list) and not self._finished:
            for number, fragment in enumerate(fragments):
                if isinstance(fragment, dict):
                    self._fragment(event, (*path, "delta", "tool_calls", number, "function"), fragment)
        reason = choice.get("finish_reason")
        self._finished = self._finished or (reason is not None and reason != "")

    def _fragment(self, event: int, path: Path, fragment: dict[str, Any]) -> None:
        index, function = fragment.get("index"), fragment.get("function")
        if type(index) is not int or not 0 <= index <= _MAX_INDEX or not isinstance(function, dict):
            return
        for name, texts in (("name", self._names), ("arguments", self._arguments)):
            if isinstance(piece := function.get(name), str) and piece:
                text = texts.setdefault(index, _Text())
                text.places.append((event, (*path, name)))
                text.pieces.append(piece)

    def replaced(self, words: Aliases) -> dict[int, dict[Path, str]]:
        """Return, by event, where to write what."""
        written: dict[int, dict[Path, str]] = {}
        for _, text in sorted(self._names.items()):
            _spread(written, text, _alias_name(text.pieces, words))
        for _, text in sorted(self._arguments.items()):
            _spread(written, text, scrub_arguments("".join(text.pieces), words))
        return written


def _alias_name(pieces: list[str], words: Aliases) -> str:
    """Replace the name that the pieces make. A first piece that is repeated is a word of its own."""
    name = "".join(pieces)
    if not name.isascii() and (joined := join_surrogates(name)) != name:
        return _in_halves(name, words.of("tool", joined))
    times, rest = divmod(len(name), len(pieces[0]))
    if times > 1 and not rest and name == pieces[0] * times and not words.knows("tool", name):
        words.of("tool", pieces[0])
    return words.of("tool", name)


def _in_halves(name: str, alias: str) -> str:
    """Write the alias with as many surrogate halves as the name, whose pairs stood in different pieces."""
    written = ""
    for char in alias:
        is_pair = "\ud800" <= name[len(written)] <= "\udbff" and char > "\uffff"
        written += "".join(split_surrogates(char)) if is_pair else char
    return written


def _spread(written: dict[int, dict[Path, str]], text: _Text, replacement: str) -> None:
    at = 0
    for (event, path), piece in zip(text.places, text.pieces, strict=True):
        written.setdefault(event, {})[path] = replacement[at : at + len(piece)]
        at += len(piece)
