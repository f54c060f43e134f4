"""Refusals by category across runs, as stacked bars."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import HATCHES, Figure, Theme
from fragmentlab.reports.show.shapes_charts import counts_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 9
"""Categories that get a colour of their own in one chart; the rest is one bar, and the table has them all."""
OTHER = "all other categories"
_COMPOUND_HATCH = "OO"
_ROW_INCHES = 0.5


def category_styles(categories: pd.Series) -> dict[str, int]:
    """Give each of the most common categories a number, the same in every chart; others are drawn together.

    The compound category of the past is always drawn as its own.
    """
    counts = categories.astype(str).value_counts()
    common = [name for name in counts.index if name != COMPOUND][:DRAWN]
    return {name: number for number, name in enumerate(common)} | (
        {COMPOUND: -1} if COMPOUND in counts else {}
    )


def category_figure(kind: str, counts: pd.DataFrame, styles: Mapping[str, int]) -> Figure:
    """Refused streams of one kind of evidence: a bar for each run (column), a colour for each category."""
    own = counts.index.isin(list(styles))
    drawn = pd.concat([counts[own].reindex([name for name in styles if name in counts.index]),
                       counts[~own].sum().to_frame(OTHER).T])  # fmt: skip
    drawn = drawn[drawn.sum(axis=1) > 0]

    def draw(axes: Axes, theme: Theme) -> None:
        from matplotlib.patches import Patch
        from matplotlib.ticker import MaxNLocator

        totals = drawn.sum().to_numpy()
        left = totals * 0
        handles = []
        for name, widths in drawn.iterrows():
            colour, hatch = _style(name, styles, theme)
            look: Any = {"color": colour, "hatch": hatch, "edgecolor": theme.sheet}
            axes.barh(range(len(totals)), widths, left=left, height=0.62, **look)
            left = left + widths.to_numpy()
            handles.append(
                Patch(facecolor=colour, hatch=hatch, edgecolor=theme.sheet, label=for_figure(name))
            )
        for row, total in enumerate(totals):
            axes.text(total, row, f" {total}", va="center", color=theme.ink)
        axes.set_yticks(range(len(totals)), [_label(label) for label in drawn.columns])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.06 * max(totals) or 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("streams refused")
        # Outside the axes, where the layout keeps room for it however many categories there are.
        axes.figure.legend(
            handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8.5, handlelength=2.2
        )

    columns = [
        drawn.iloc[:, place].sort_values(ascending=False, kind="stable") for place in range(drawn.shape[1])
    ]
    told = "; ".join(f"{own.name}: {counts_in_words(own)}" for own in columns)
    return Figure(
        draw,
        alt=f"Stacked bars of refused streams of {kind} evidence by category. {told}.",
        caption=f"Refusals by category, {kind} evidence: one bar for each run",
        size=(9.0, 0.9 + _ROW_INCHES * drawn.shape[1] + 0.21 * -(-len(drawn) // 3)),
    )


def _style(name: str, styles: Mapping[str, int], theme: Theme) -> tuple[str, str]:
    if name == OTHER:
        return theme.line, ""
    if name == COMPOUND:
        return theme.ink, _COMPOUND_HATCH
    number = styles[name]
    # A second lap of the colours starts at another hatch.
    return theme.series[number % len(theme.series)], HATCHES[(number + number // len(HATCHES)) % len(HATCHES)]


def _label(text: str) -> str:
    return "\n".join(map(for_figure, textwrap.wrap(text, 30)))
