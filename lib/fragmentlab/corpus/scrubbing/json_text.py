"""Text that should be JSON, token by token; argument text scrubbed with it, broken text stays as broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.text import characters, fill, fill_number, written_as

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]++)
    |(?P<string>"(?:[^"\\]++|\\.)*+"?)
    |(?P<word>(?:true|false|null|NaN|-?Infinity)(?![0-9A-Za-z_])|\[DONE\])
    |(?P<mark>[{}\[\]:,])
    |(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z.+-]))
    |(?P<other>[^ \t\r\n"{}\[\]:,]++(?:[ \t\r\n]++[^ \t\r\n"{}\[\]:,]++)*+)""",
    re.VERBOSE | re.DOTALL,
)
_COLON_FOLLOWS = re.compile(r"[ \t\r\n]*+:")
_BLANKS = " \t\r\n"
_BLANK = re.compile(f"[{_BLANKS}]")
_CUT_ESCAPE = re.compile(r"((?:[^\\]|\\(?:[^u]|u[0-9a-fA-F]{4}))*+)(\\(?:u[0-9a-fA-F]{0,3})?)", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORD = re.compile("true|false|null")
_CUT_WORD = re.compile(r"t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?")
_CUT_NUMBER = re.compile(r"-|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]*+)?")


class Token(NamedTuple):
    """A piece of the text; a string with a colon after it is a key.

    ``kind`` is blank, string, mark, number, word or other.
    """

    kind: str
    text: str
    is_key: bool


def tokens(text: str) -> Iterator[Token]:
    """Take any text apart; joined again, the pieces are the text."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        is_key = kind == "string" and _COLON_FOLLOWS.match(text, match.end()) is not None
        yield Token(kind, match[0], is_key)


def string_value(token: str) -> str | None:
    """Return the value of a string token, None where it is broken."""
    try:
        value = json.loads(token)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def with_inside(token: str, replace: Callable[[str], str]) -> str:
    """Replace what stands between a string's quotes, the last of which may be missing."""
    closed = len(token) > 1 and token.endswith('"') and string_value(token) is not None
    inside = token[1:-1] if closed else token[1:]
    return token[0] + replace(inside) + token[1 + len(inside) :]


def scrub_arguments(text: str, aliases: Aliases) -> str:
    """Replace argument text: keys by placeholders, values by filler, one character for each character.

    Valid JSON stays valid, with the same structure, duplicate keys, escapes and sizes; anything else keeps
    what breaks it.
    """
    start = len(text) - len(text.lstrip(_BLANKS))
    written = [text[:start]]
    for token in tokens(text[start:]):
        written.append(_scrubbed(token, aliases, is_first=len(written) == 1))
    return "".join(written)


def _scrubbed(token: Token, aliases: Aliases, is_first: bool) -> str:
    text = token.text
    if token.kind == "number":
        return fill_number(text)
    if token.kind == "other":
        return _other(text, is_first)
    if token.kind != "string":
        return text
    if string_value(text) is None:
        return with_inside(text, _broken)
    return with_inside(text, (lambda raw: _key(raw, aliases)) if token.is_key else fill)


def _key(raw: str, aliases: Aliases) -> str:
    """Write a key's placeholder with the escapes that the key has."""
    parts = list(characters(raw))
    alias = aliases.of("key", "".join(character.char for character in parts))
    return "".join(written_as(character, char) for character, char in zip(parts, alias, strict=True))


def _broken(raw: str) -> str:
    """Fill a broken string; where the end of the text cut it, it still does."""
    kept = raw.rstrip(_BLANKS)
    if raw[len(kept) :].strip(" "):
        return fill(kept) + raw[len(kept) :]
    cut = _CUT_ESCAPE.fullmatch(raw)
    return fill(cut[1]) + re.sub("[0-9a-fA-F]", "0", cut[2]) if cut else fill(raw)


def _other(text: str, is_first: bool) -> str:
    """Fill what is no JSON; a literal that the end of the text may have cut stays one.

    Where the text begins with a number or word that more follows at once, that is a whole document.
    """
    if _CUT_WORD.fullmatch(text):
        return text
    if _CUT_NUMBER.fullmatch(text):
        return re.sub("[1-9]", "1", text)
    number, word = (pattern.match(text) if is_first else None for pattern in (_NUMBER, _WORD))
    begun = fill_number(number[0]) if number else word[0] if word else ""
    return begun + _BLANK.sub("x", fill(text[len(begun) :]))
