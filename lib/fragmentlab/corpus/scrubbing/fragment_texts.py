"""What the fragments of one response say in names and arguments: replaced as one text, cut as before."""

from __future__ import annotations

from itertools import accumulate

from fragmentlab.assembler import Limits
from fragmentlab.assembler.chunks import InvalidEvent, decode_chunk
from fragmentlab.assembler.proposal import join_surrogates
from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.json_text import scrub_arguments
from fragmentlab.corpus.scrubbing.text import split_surrogates
from fragmentlab.wire.fragments import Place, choices_of, function_of, places_of

_MAX_INDEX = 127


class FragmentTexts:
    """Collects what the fragments of a response say, event by event, then says what to write in their place.

    Only fragments that the assembler would add to a call are joined; the rest are replaced one by one.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._texts: dict[tuple[str, int], list[tuple[int, Place, str]]] = {}
        """By (name or arguments, index): event, path and text of each piece."""
        self._finished = False
        self._done = False

    def take(self, event: int, data: bytes) -> None:
        """Take the data of one event, the end marker included."""
        self._done = self._done or data.strip(b" \t") == b"[DONE]"
        if self._done:
            return
        try:
            chunk = decode_chunk(data, self._limits)
        except InvalidEvent:
            return
        if chunk.get("error") is not None:
            return
        if not self._finished:
            for place, fragment in places_of(chunk):
                is_first = chunk["choices"][place[1]].get("index") in (None, 0)
                index = fragment.get("index")
                if is_first and type(index) is int and 0 <= index <= _MAX_INDEX:
                    function = function_of(fragment)
                    for name in ("name", "arguments"):
                        if isinstance(piece := function.get(name), str) and piece:
                            pieces = self._texts.setdefault((name, index), [])
                            pieces.append((event, (*place, "function", name), piece))
        reasons = (choice.get("finish_reason") for choice in choices_of(chunk))
        self._finished = self._finished or any(reason not in (None, "") for reason in reasons)

    def replaced(self, words: Aliases) -> dict[int, dict[Place, str]]:
        """Return, by event, where to write what."""
        written: dict[int, dict[Place, str]] = {}
        for (name, _), found in sorted(self._texts.items(), key=lambda item: (item[0][0] != "name", item[0])):
            pieces = [piece for _, _, piece in found]
            whole = _alias_name(pieces, words) if name == "name" else scrub_arguments("".join(pieces), words)
            ends = list(accumulate(map(len, pieces)))
            for (event, place, piece), end in zip(found, ends, strict=True):
                written.setdefault(event, {})[place] = whole[end - len(piece) : end]
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
    written: list[str] = []
    at = 0
    for char in alias:
        is_pair = "\ud800" <= name[at] <= "\udbff" and char > "\uffff"
        written.append("".join(split_surrogates(char)) if is_pair else char)
        at += len(written[-1])
    return "".join(written)
