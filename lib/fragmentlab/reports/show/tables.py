"""Tables for notebooks, made from DataFrames: accessible HTML, and the same as aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from fragmentlab.disclosure import for_html, for_terminal

Kind = Literal["ok", "bad", "plain"]
_MARKS = {"ok": "✓ ", "bad": "✗ ", "plain": ""}
ROW_LIMIT = 200


@dataclass(frozen=True)
class Badge:
    """A cell whose meaning is good or bad: shown by a mark and by a colour."""

    text: str
    kind: Kind

    def __str__(self) -> str:
        return _MARKS[self.kind] + self.text


Cell = str | int | float | Badge | None


def badges(holds: Iterable[bool], yes: str | Iterable[str], no: str | Iterable[str]) -> list[Badge]:
    """Return a badge for each truth; ``yes`` and ``no`` are one text, or one per row."""
    truths = list(holds)
    good, bad = ([text] * len(truths) if isinstance(text, str) else list(text) for text in (yes, no))
    return [Badge(good[row], "ok") if truth else Badge(bad[row], "bad") for row, truth in enumerate(truths)]


class Table:
    """A DataFrame under a caption; its labels head the columns, its index is not shown.

    ``columns`` says which ones, and how they are headed; without it all are shown. Every cell is escaped, a
    missing one is a dash, numbers are aligned right. At most ``ROW_LIMIT`` rows are shown; a last line then
    says how many were left out. ``frame`` is the whole DataFrame as it is shown.

    >>> calls = pd.DataFrame({"tool": ["look_up"], "bytes": [1234]})
    >>> print(Table("Calls", calls, "tool as name, bytes").to_text())
    Calls
    name     bytes
    -------  -----
    look_up  1,234
    """

    def __init__(self, caption: str, frame: pd.DataFrame, columns: str = "", note: str = "") -> None:
        if columns:
            named = [column.partition(" as ") for column in columns.split(", ")]
            frame = frame[[name for name, _, _ in named]]
            frame = frame.set_axis([head or name for name, _, head in named], axis="columns")
        self.caption, self.frame, self.note = caption, frame, note
        shown = frame.head(ROW_LIMIT).astype(object).itertuples(index=False, name=None)
        self._rows = [[None if pd.isna(cell) else cell for cell in row] for row in shown]
        self._heads = [str(label) for label in frame.columns]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.to_html(), "text/plain": self.to_text()}

    def to_text(self) -> str:
        """Aligned text: caption, header, rule, rows."""
        rows: list[Sequence[Cell]] = [self._heads, *self._rows]
        lines = [[for_terminal(_text(cell)) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        formats = [
            f"{{:{'>' if right else '<'}{width}}}"
            for right, width in zip(self._numeric(), widths, strict=True)
        ]
        head, *aligned = ["  ".join(formats).format(*line).rstrip() for line in lines]
        rule = "  ".join("-" * width for width in widths)
        caption, *notes = map(for_terminal, [self.caption, *self._notes()])
        return "\n".join([caption, head, rule, *aligned, *notes])

    def to_html(self) -> str:
        """A captioned HTML table inside a focusable region that scrolls on narrow screens."""
        numeric = [' class="fl-num"' if right else "" for right in self._numeric()]
        titles = zip(self._heads, numeric, strict=True)
        head = "".join(f'<th scope="col"{attribute}>{for_html(title)}</th>' for title, attribute in titles)
        body = "".join(_html_row(row, numeric) for row in self._rows)
        notes = "".join(f'<p class="fl-note">{for_html(line)}</p>' for line in self._notes())
        caption = for_html(self.caption)
        return (
            f'<div class="fl-scroll" role="region" tabindex="0" aria-label="{caption}">'
            f'<table class="fl-table"><caption>{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
        )

    def _notes(self) -> list[str]:
        left_out = len(self.frame) - ROW_LIMIT
        more = f"{left_out} more rows are not shown." if left_out > 0 else ""
        return [note for note in ("" if self._rows else "None.", more, self.note) if note]

    def _numeric(self) -> list[bool]:
        columns = ([row[i] for row in self._rows if row[i] is not None] for i in range(len(self._heads)))
        return [bool(cells) and all(type(cell) in (int, float) for cell in cells) for cells in columns]


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3g}" if isinstance(cell, float) else str(cell)


def _html_row(row: list[Cell], attributes: list[str]) -> str:
    first, *others = map(_html_text, row)
    cells = "".join(f"<td{look}>{text}</td>" for look, text in zip(attributes[1:], others, strict=True))
    return f'<tr><th scope="row"{attributes[0]}>{first}</th>{cells}</tr>'


def _html_text(cell: Cell) -> str:
    text = for_html(_text(cell))
    return f'<span class="fl-{cell.kind}">{text}</span>' if isinstance(cell, Badge) else text
