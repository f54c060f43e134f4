"""Characters to fixed filler of the same class and size, and words to placeholders that keep who equals
whom."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_ASCII = dict.fromkeys(range(97, 123), "x") | dict.fromkeys(range(65, 91), "X")
_ASCII |= dict.fromkeys(range(48, 58), "0")
_ASCII |= {code: "." for code in range(0x21, 0x7F) if code not in _ASCII and chr(code) not in '"\\'}
_RUN = re.compile(r"[ -\[\]-~]+|(?:\\u[0-9a-fA-F]{4}|\\.|[^ -\[\]-~])+", re.DOTALL)
_HIGH, _LOW, _STRAY = "\ud83d", "\ude00", "\udcff"
_FILLERS = {2: "é", 3: "中", 4: "😀"}
_ALPHABETS = {1: ord("a"), 2: 0x3B1, 3: 0x4E00, 4: 0x1F600}
"""The first of 26 characters that placeholders are written with, by UTF-8 size."""
_UNIT = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<code>\\u[0-9a-fA-F]{4})"
    r"|(?P<short>\\[\"\\/bfnrt])"
    r"|(?P<halves>[\ud800-\udbff][\udc00-\udfff])"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Unit(NamedTuple):
    """One character of a JSON string as it is written: ``form`` is pair, code, short, halves or plain."""

    form: str
    written: str
    char: str


def units(raw: str) -> Iterator[Unit]:
    """Take the inside of a JSON string apart; never fails, an escape that is none is read as plain
    characters."""
    for match in _UNIT.finditer(raw):
        form, written = match.lastgroup or "plain", match[0]
        if form == "code":
            char = chr(int(written[2:], 16))
        elif form == "pair":
            char = _joined(chr(int(written[2:6], 16)) + chr(int(written[8:], 16)))
        elif form == "short":
            char = _SHORT[written[1]]
        else:
            char = _joined(written) if form == "halves" else written
        yield Unit(form, written, char)


def written_as(unit: Unit, char: str) -> str:
    """Write ``char``, of the same class, in the unit's form and with as many characters."""
    if char == unit.char:
        return unit.written
    if unit.form == "code":
        return f"\\u{ord(char):04x}"
    if unit.form in ("pair", "halves"):
        high, low = split_surrogates(char)
        return f"\\u{ord(high):04x}\\u{ord(low):04x}" if unit.form == "pair" else high + low
    return unit.written if unit.form == "short" else char


def _joined(halves: str) -> str:
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def split_surrogates(char: str) -> tuple[str, str]:
    """Return the two halves of a character above U+FFFF."""
    code = ord(char) - 0x10000
    return chr(0xD800 + (code >> 10)), chr(0xDC00 + (code & 0x3FF))


def is_fixed(char: str) -> bool:
    """Whether the character stays: blanks, controls, quotes and backslashes shape JSON text; U+FFFD is
    counted."""
    return char <= " " or char in '"\\/\x7f\ufffd'


def filler(char: str, stray_bytes: bool = False) -> str:
    """Return the filler of one character's class. ``stray_bytes``: surrogates stand for bytes that are not
    UTF-8."""
    if char <= "\x7f":
        return _ASCII.get(ord(char), char)
    if char == "\ufffd":
        return char
    if "\ud800" <= char <= "\udfff":
        return _STRAY if stray_bytes else _HIGH if char < "\udc00" else _LOW
    return _FILLERS[len(char.encode())]


def fill(raw: str, stray_bytes: bool = False) -> str:
    """Replace the inside of a JSON string, or any text, by filler; escapes keep their form."""

    def replaced(match: re.Match[str]) -> str:
        run = match[0]
        if run[0] != "\\" and " " <= run[0] <= "~":
            return run.translate(_ASCII)
        return "".join(
            written_as(unit, filler(unit.char, stray_bytes and unit.form == "plain")) for unit in units(run)
        )

    return _RUN.sub(replaced, raw)


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


def placeholder(text: str, marker: str, number: int) -> str:
    """Write ``number`` in the free characters of ``text``, least significant first, so that none begins
    another.

    Characters keep their class; the first free one says what kind of word it is, where there is room.
    """
    free = [char for char in text if not (is_fixed(char) or "\ud800" <= char <= "\udfff")]
    marked = len(free) >= 4
    written = []
    for char in text:
        if is_fixed(char) or "\ud800" <= char <= "\udfff":
            # A slash stays one: it may be written as an escape, which has no other character of its class.
            written.append(char if is_fixed(char) else filler(char))
            continue
        size = len(char.encode())
        if marked:
            marked = False
            digit = ord(marker) - ord("a")
        else:
            number, digit = divmod(number, 26)
        written.append(chr(_ALPHABETS[size] + digit))
    return "".join(written)
