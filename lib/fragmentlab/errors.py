"""The one error that reaches a person: a line that says what, where and what to do."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class InputError(Exception):
    """Bad input or a bad environment; the command line prints it as one line and exits 2.

    The message is written by this kit. It may name a path that a person gave, but never quotes what was read.
    What cannot be seen in it is made visible here, so that no path steers a terminal.
    """

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))


def visible(text: str, keep: str = "") -> str:
    r"""Escape all that hides, reorders or steers, other than the characters in ``keep``.

    >>> print(visible("\x1b[31m \u202e"))
    \x1b[31m \u202e
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        escaped(ch) if unicodedata.category(ch) in _INVISIBLE and ch not in keep else ch for ch in text
    )


def escaped(ch: str) -> str:
    """One character as the escape that Python would write."""
    code = ord(ch)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
