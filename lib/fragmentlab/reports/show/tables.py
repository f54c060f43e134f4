"""Accessible tables for notebooks: HTML with caption and headers, the same as aligned text for terminals
and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

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


class Table:
    """Rows under named columns; every cell is escaped, ``None`` is shown as a dash, numbers are aligned
    right.

    At most ``ROW_LIMIT`` rows are shown; a last line then says how many were left out.
    """

    def __init__(
        self, caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = ""
    ) -> None:
        self.caption, self.columns, self.note = caption, list(columns), note
        self.rows = [list(row) for row in rows]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.to_html(), "text/plain": self.to_text()}

    def to_text(self) -> str:
        """Aligned text: caption, header, rule, rows."""
        rows: list[Sequence[Cell]] = [self.columns, *self._shown()]
        lines = [[for_terminal(_text(cell)) for cell in row] for row in rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        numeric = [self._is_numeric(i) for i in range(len(self.columns))]
        aligned = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        ]
        rule = "  ".join("-" * width for width in widths)
        around = [for_terminal(text) for text in (self.caption, *self._notes())]
        return "\n".join([around[0], aligned[0], rule, *aligned[1:], *around[1:]])

    def to_html(self) -> str:
        """A captioned HTML table inside a focusable region that scrolls on narrow screens."""
        numeric = [' class="fl-num"' if self._is_numeric(i) else "" for i in range(len(self.columns))]
        titles = zip(self.columns, numeric, strict=True)
        head = "".join(f'<th scope="col"{attribute}>{for_html(title)}</th>' for title, attribute in titles)
        body = "".join(_html_row(row, numeric) for row in self._shown())
        notes = "".join(f'<p class="fl-note">{for_html(line)}</p>' for line in self._notes())
        caption = for_html(self.caption)
        return (
            f'<div class="fl-scroll" role="region" tabindex="0" aria-label="{caption}">'
            f'<table class="fl-table"><caption>{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
        )

    def _shown(self) -> list[list[Cell]]:
        return self.rows[:ROW_LIMIT]

    def _notes(self) -> list[str]:
        left_out = len(self.rows) - ROW_LIMIT
        more = [f"{left_out} more rows are not shown."] if left_out > 0 else []
        return [*([] if self.rows else ["None."]), *more, *([self.note] if self.note else [])]

    def _is_numeric(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column] is not None]
        return bool(cells) and all(
            isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells
        )


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3g}" if isinstance(cell, float) else str(cell)


def _html_row(row: list[Cell], attributes: list[str]) -> str:
    tags = ["th", *["td"] * (len(row) - 1)]
    cells = zip(row, tags, attributes, strict=True)
    return f"<tr>{''.join(_html_cell(*cell) for cell in cells)}</tr>"


def _html_cell(cell: Cell, tag: str, attribute: str) -> str:
    content = for_html(_text(cell))
    if isinstance(cell, Badge):
        content = f'<span class="fl-{cell.kind}">{content}</span>'
    scope = ' scope="row"' if tag == "th" else ""
    return f"<{tag}{scope}{attribute}>{content}</{tag}>"
