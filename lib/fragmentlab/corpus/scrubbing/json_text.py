"""A lexer for text that should be JSON, and the replacement of argument text with it; broken text stays as
broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.text import fill, fill_number, units, written_as

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]++)
    |(?P<string>"(?:[^"\\]++|\\.)*+"?)
    |(?P<word>(?:true|false|null|NaN|-?Infinity)(?![0-9A-Za-z_])|\[DONE\])
    |(?P<mark>[{}\[\]:,])
    |(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z.+-]))
    |(?P<other>[^ \t\r\n"{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)
_COLON_FOLLOWS = re.compile(r"[ \t\r\n]*+:")


class Token(NamedTuple):
    """A piece of the text: ``kind`` is blank, string, mark, number, word or other; a key is a string with a
    colon after it."""

    kind: str
    text: str
    is_key: bool


def tokens(text: str) -> Iterator[Token]:
    """Take any text apart; joined again, the pieces are the text."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        is_key = kind == "string" and _COLON_FOLLOWS.match(text, match.end()) is not None
        yield Token(kind, match[0], is_key)


def inside(token: str) -> str:
    """Return what stands between a string's quotes, the last of which may be missing."""
    return token[1:-1] if len(token) > 1 and token.endswith('"') and decoded(token) is not None else token[1:]


def decoded(token: str) -> str | None:
    """Return the value of a string token, None where it is broken."""
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def with_inside(token: str, replace: Callable[[str], str]) -> str:
    """Replace what stands between the quotes."""
    content = inside(token)
    return token[0] + replace(content) + token[1 + len(content) :]


def alias_string(token: str, aliases: Aliases, kind: str) -> str:
    """Replace a word by its placeholder, written character for character in the form of the original; a
    broken word by filler, as a placeholder could mend its escapes."""
    if decoded(token) is None:
        return with_inside(token, fill)
    pieces = list(units(inside(token)))
    word = "".join(unit.char for unit in pieces)
    alias = aliases.of(kind, word)
    if len(alias) != len(pieces):
        return json.dumps(alias)
    body = "".join(written_as(unit, char) for unit, char in zip(pieces, alias, strict=True))
    return token[0] + body + token[1 + len(inside(token)) :]


def scrub_arguments(text: str, aliases: Aliases) -> str:
    """Replace argument text: keys by placeholders, values by filler, one character for each character.

    Valid JSON stays valid, with the same structure, duplicate keys, escapes and sizes; anything else keeps
    what breaks it.
    """
    written = []
    for token in tokens(text):
        if token.kind == "string":
            written.append(
                alias_string(token.text, aliases, "key") if token.is_key else with_inside(token.text, fill)
            )
        elif token.kind == "number":
            written.append(fill_number(token.text))
        else:
            written.append(fill(token.text) if token.kind == "other" else token.text)
    scrubbed = "".join(written)
    return scrubbed if len(scrubbed) == len(text) else fill(text)
