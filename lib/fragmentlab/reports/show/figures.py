"""Figures for notebooks, drawn for light and dark pages.

Who makes one gives its alt text and caption, both built from data.
"""

from __future__ import annotations

import base64
import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fragmentlab.disclosure import for_figure, for_html, for_terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LONG_NUMBER = re.compile(rb"(?<![\w#.])-?\d+\.\d{3,}(?!\w)")


@dataclass(frozen=True)
class Theme:
    """Colours of one page style.

    ``keep``, ``change`` and ``refuse`` are told apart by the colour-blind too, but a figure always carries a
    second cue (marker, hatch, label).
    """

    ink: str
    soft: str
    line: str
    sheet: str
    keep: str
    change: str
    refuse: str
    series: tuple[str, ...]


LIGHT = Theme(
    ink="#18212f",
    soft="#566175",
    line="#c5ccd8",
    sheet="#ffffff",
    keep="#0b5cab",
    change="#0b7a59",
    refuse="#b3400a",
    series=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a7d00", "#555555"),
)
DARK = Theme(
    ink="#e7ebf2",
    soft="#a2aebf",
    line="#465163",
    sheet="#171d27",
    keep="#78b7ff",
    change="#58cfa8",
    refuse="#ff9d66",
    series=("#56b4e9", "#e69f00", "#2bc79a", "#e39ac4", "#ff8c42", "#9ad7ff", "#f0e442", "#b8c0cc"),
)
HATCHES = ("", "///", "\\\\\\", "xx", "--", "||", "++", "////")
"""The second cue of ``Theme.series``: the hatch at a colour's place. Lines only: dots and circles make a page
ten times as large."""


def legend_below(axes: Axes, columns: int) -> None:
    """Name each label that was drawn, once, where the layout keeps room however many there are."""
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    if unique:
        look: Any = {"frameon": False, "fontsize": 8.5, "columnspacing": 1.6}
        columns = min(columns, len(unique))
        axes.figure.legend(
            list(unique.values()), list(unique), loc="outside lower left", ncols=columns, **look
        )


def stacked_bars(axes: Axes, counts: pd.DataFrame, looks: Sequence[Mapping[str, Any]]) -> None:
    """Draw a bar for each row, from the top, a part for each column in its look."""
    lefts = counts.cumsum(axis=1) - counts
    for name, look in zip(counts.columns, looks, strict=False):
        label = for_figure(str(name))
        axes.barh(range(len(counts)), counts[name], left=lefts[name], height=0.6, label=label, **look)
    lines = [map(for_figure, textwrap.wrap(name, 30)) for name in counts.index]
    axes.set_yticks(range(len(counts)), list(map("\n".join, lines)))
    axes.invert_yaxis()


def heat_map(axes: Axes, theme: Theme, counts: pd.DataFrame, strength: pd.DataFrame, top: float = 0) -> None:
    """Write each count of a table into its cell, shaded by its strength from 0 to 1, from ``top`` down."""
    from matplotlib.patches import Rectangle

    for (row, column), text in np.ndenumerate(counts.to_numpy()):
        alpha = strength.iat[row, column]
        if not alpha and not text:
            continue
        corner = (column - 0.48, top + row - 0.46)
        axes.add_patch(Rectangle(corner, 0.96, 0.92, color=theme.keep, alpha=alpha, lw=0))
        colour = theme.sheet if alpha > 0.5 else theme.ink if alpha else theme.soft
        axes.text(column, top + row, text, ha="center", va="center", color=colour, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)


@dataclass(frozen=True)
class Figure:
    """A figure as one HTML element that carries its own alt text and caption.

    ``draw(axes, theme)`` draws it, once for light and once for dark pages; ``size`` is in inches (the width
    of a page is 9). Text that is not our own must have passed ``disclosure.for_figure``.
    """

    draw: Callable[[Axes, Theme], None]
    alt: str
    caption: str
    size: tuple[float, float] = (9.0, 3.0)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {
            "text/html": self.to_html(),
            "text/plain": f"Figure: {for_terminal(self.caption)} {for_terminal(self.alt)}",
        }

    def to_html(self) -> str:
        """A figure with both pictures inside; the page's colour scheme chooses."""
        alt, caption = for_html(self.alt), for_html(self.caption)
        return (
            f'<figure class="fl-figure">'
            f'<div class="fl-scroll" role="region" tabindex="0" aria-label="{caption}"><picture>'
            f'<source media="(prefers-color-scheme: dark)" srcset="{self._picture(DARK)}">'
            f'<img alt="{alt}" src="{self._picture(LIGHT)}"></picture></div>'
            f"<figcaption>{caption}</figcaption></figure>"
        )

    def to_svg(self, theme: Theme) -> bytes:
        """The picture alone, the same bytes for the same data; its text stays text."""
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Canvas

        with matplotlib.rc_context(_style(theme)):
            canvas = Canvas(figsize=self.size, layout="constrained")
            self.draw(canvas.add_subplot(), theme)
            out = io.BytesIO()
            FigureCanvasSVG(canvas).print_svg(out, metadata={"Date": None, "Creator": None})
        # Verdana has the widths of the font that the layout was made with.
        return _compact(out.getvalue()).replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")

    def _picture(self, theme: Theme) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(self.to_svg(theme)).decode("ascii")


def _compact(svg: bytes) -> bytes:
    """Shorten coordinates to a hundredth of a point and drop the line breaks between elements and numbers."""
    rounded = _LONG_NUMBER.sub(lambda match: b"%.2f" % float(match[0]), svg)
    return b" ".join(rounded.split()).replace(b"> <", b"><")


def _style(theme: Theme) -> dict[Any, Any]:
    return {
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "svg.fonttype": "none",
        "svg.hashsalt": "fragmentlab",
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
        "axes.edgecolor": theme.line,
        **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), theme.soft),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
        "text.color": theme.ink,
        "hatch.linewidth": 0.6,
        "hatch.color": theme.sheet,
    }
