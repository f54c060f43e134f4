"""Untrusted text on its way to a person: one function for each place where it can be shown.

Every function is total (any ``str``, lone surrogates included) and makes what cannot be seen visible: control
characters, bidirectional marks, zero-width and unassigned characters become ``\\x1b``, ``\\u202e``,
``\\U000e0041``. So nothing hides, reorders a line, or moves a cursor. Source: docs/design.md, section 5.
"""

from __future__ import annotations

import html
import re
import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|~$:=]")
# Code points that DejaVu Sans, the font of the figures, draws without a gap; any other would be an empty box.
_FIGURE_RANGES = (
    (0x20, 0x24F),
    (0x391, 0x3A1),
    (0x3A3, 0x3CE),
    (0x400, 0x45F),
    (0x2010, 0x2027),
    (0x2030, 0x205E),
    (0x2190, 0x22FF),
)


def for_html(text: str) -> str:
    """Text for HTML content or a quoted attribute: markup escaped; line feeds and tabs stay."""
    return html.escape(_visible(text, keep="\n\t"), quote=True)


def for_figure(text: str) -> str:
    """One line for any matplotlib text: never math text, no character that the figures' font lacks."""
    shown = "".join(ch if _drawable(ch) else _escape(ch) for ch in _visible(text))
    return shown.replace("$", r"\$")


def for_markdown(text: str) -> str:
    """One line for inline Markdown: no markup, HTML, math, link or mention comes out of it."""
    escaped = _MARKDOWN.sub(r"\\\g<0>", html.escape(_visible(text), quote=False))
    # Mentions and mail links are found in the rendered text, where a backslash no longer helps.
    return escaped.replace("@", "@\u2060")


def for_xml(text: str) -> str:
    """Characters that XML 1.0 can hold; line feeds and tabs stay. The XML writer escapes the markup."""
    return _visible(text, keep="\n\t")


def for_terminal(text: str) -> str:
    """One line for a terminal or a log: no control sequence, no line break, no reordering."""
    return _visible(text)


def _visible(text: str, keep: str = "") -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escape(ch) if unicodedata.category(ch) in _INVISIBLE and ch not in keep else ch for ch in text
    )


def _escape(ch: str) -> str:
    code = ord(ch)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _drawable(ch: str) -> bool:
    return any(low <= ord(ch) <= high for low, high in _FIGURE_RANGES)
