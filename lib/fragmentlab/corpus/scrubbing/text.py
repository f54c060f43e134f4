"""Characters to a fixed filler of their class, so that no word or number can be guessed from its form.

A class is how many UTF-8 bytes a character takes, and whether JSON must escape it: what fragments add to a
call keeps its size, and a value that was equal to another one stays equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_FILLERS = {1: "x", 2: "é", 3: "中", 4: "😀"}
_ESCAPED = "\n"
_HIGH, _LOW, _STRAY = "\ud83d", "\ude00", "\udcff"
_RUN = re.compile(r"[ !#-\[\]-~]+|(?:\\u[0-9a-fA-F]{4}|\\.|[^ !#-\[\]-~])+", re.DOTALL)
_CHARACTER = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<code>\\u[0-9a-fA-F]{4})"
    r"|(?P<short>\\[\"\\/bfnrt])"
    r"|(?P<halves>[\ud800-\udbff][\udc00-\udfff])"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Character(NamedTuple):
    """One character of a JSON string as it is written: ``form`` is pair, code, short, halves or plain."""

    form: str
    written: str
    char: str


def characters(raw: str) -> Iterator[Character]:
    """Take the inside of a JSON string apart; an escape that is none is read as plain characters."""
    for match in _CHARACTER.finditer(raw):
        form, written = match.lastgroup or "plain", match[0]
        if form == "code":
            char = chr(int(written[2:], 16))
        elif form == "pair":
            char = _joined(chr(int(written[2:6], 16)) + chr(int(written[8:], 16)))
        elif form == "short":
            char = _SHORT[written[1]]
        else:
            char = _joined(written) if form == "halves" else written
        yield Character(form, written, char)


def written_as(character: Character, char: str) -> str:
    """Write ``char``, of the same class, in the character's form and with as many characters."""
    if char == character.char:
        return character.written
    if character.form == "code":
        return f"\\u{ord(char):04x}"
    if character.form in ("pair", "halves"):
        high, low = split_surrogates(char)
        return f"\\u{ord(high):04x}\\u{ord(low):04x}" if character.form == "pair" else high + low
    return "\\n" if character.form == "short" else char


def _joined(halves: str) -> str:
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def split_surrogates(char: str) -> tuple[str, str]:
    """Return the two halves of a character above U+FFFF."""
    code = ord(char) - 0x10000
    return chr(0xD800 + (code >> 10)), chr(0xDC00 + (code & 0x3FF))


def fill(raw: str, stray_bytes: bool = False) -> str:
    """Replace the inside of a JSON string, or any text, by filler; escapes keep their form.

    What breaks a string stays: plain quotes, backslashes and controls. ``stray_bytes`` says that surrogates
    stand for bytes that are not UTF-8. U+FFFD stays, because it is counted.
    """

    def filled(match: re.Match[str]) -> str:
        run = match[0]
        if " " <= run[0] <= "~" and run[0] not in '"\\':
            return "x" * len(run)
        return "".join(
            written_as(character, _filler(character, stray_bytes)) for character in characters(run)
        )

    return _RUN.sub(filled, raw)


def _filler(character: Character, stray_bytes: bool) -> str:
    char = character.char
    if char < " " or char in '"\\\x7f':
        return char if character.form == "plain" else _ESCAPED
    if char == "\ufffd":
        return char
    if "\ud800" <= char <= "\udfff":
        return _STRAY if stray_bytes and character.form == "plain" else _HIGH if char < "\udc00" else _LOW
    return _FILLERS[len(char.encode())]


def fill_number(token: str) -> str:
    """Replace the digits of a JSON number: it keeps its form, its length and whether a double can hold it."""
    if token in ("0", "-0"):
        return token
    mantissa, mark, exponent = token.partition("e" if "e" in token else "E")
    filled = token
    for digit, power in ("11", "10", "99", "90"):
        filled = re.sub("[0-9]", digit, mantissa) + mark + re.sub("[0-9]", power, exponent)
        if math.isfinite(float(filled)) == math.isfinite(float(token)):
            break
    return filled


def fill_index(token: str) -> str:
    """Replace an index outside 0 to 127, in the form of any number, by one that is outside too."""
    if re.fullmatch(r"-?[0-9]{1,3}", token) and -1 <= int(token) <= 127:
        return token
    return re.sub("[0-9]", "9", token)
