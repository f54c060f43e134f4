"""Refusals by category across runs, as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.reports.show.figures import HATCHES, Figure, Theme, legend_below, stacked_bars
from fragmentlab.reports.show.prose import counts_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 9
"""Categories that get a colour of their own in one chart; the rest is one bar, and the table has them all."""
OTHER = "all other categories"


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
        bars = drawn.T
        stacked_bars(axes, bars, [_style(name, styles, theme) for name in bars])
        totals = bars.sum(axis=1).to_list()
        for row, total in enumerate(totals):
            axes.text(total, row, f" {total}", va="center", color=theme.ink)
        axes.set_xlim(0, 1.06 * max(totals) or 1)
        axes.locator_params("x", integer=True)
        axes.set_xlabel("streams refused")
        legend_below(axes, 3)

    told = "; ".join(
        f"{run}: {counts_in_words(own.sort_values(ascending=False, kind='stable'))}"
        for run, own in drawn.items()
    )
    return Figure(
        draw,
        alt=f"Stacked bars of refused streams of {kind} evidence by category. {told}.",
        caption=f"Refusals by category, {kind} evidence: one bar for each run",
        size=(9.0, 0.9 + 0.5 * drawn.shape[1] + 0.21 * -(-len(drawn) // 3)),
    )


def _style(name: str, styles: Mapping[str, int], theme: Theme) -> dict[str, str]:
    if name == OTHER:
        return {"color": theme.line}
    if name == COMPOUND:
        return {"color": theme.ink, "hatch": "OO", "edgecolor": theme.sheet}
    lap, number = divmod(styles[name], len(theme.series))
    # A second lap of the colours starts at another hatch.
    hatch = HATCHES[(number + lap) % len(HATCHES)]
    return {"color": theme.series[number], "hatch": hatch, "edgecolor": theme.sheet}
