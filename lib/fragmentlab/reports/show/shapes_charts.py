"""Wire shapes by source, as a heat map with counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import Figure, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SOURCES = 30
"""Columns of the figure; the sources with most streams are drawn, the table has them all."""
_LONGEST_LABEL = 44


def shapes_figure(evidence: str, counts: pd.DataFrame, streams: pd.Series) -> Figure:
    """Shapes (rows) by source (columns): the number is how many streams show one, the shade their share.

    ``streams`` is how many each source has.
    """
    most = streams.sort_values(ascending=False, kind="stable").index[:MAX_SOURCES]
    kept = counts.loc[:, counts.columns.isin(most)]
    kept = kept[kept.sum(axis=1) > 0]
    shares = kept / streams[kept.columns]

    def draw(axes: Axes, theme: Theme) -> None:
        from matplotlib.patches import Rectangle

        for row, shape in enumerate(kept.index):
            for column, name in enumerate(kept.columns):
                if not (count := kept.at[shape, name]):
                    continue
                corner, alpha = (column - 0.48, row - 0.46), 0.12 + 0.5 * shares.at[shape, name]
                axes.add_patch(Rectangle(corner, 0.96, 0.92, color=theme.keep, alpha=alpha))
                axes.text(column, row, str(count), ha="center", va="center", fontsize=7.5, color=theme.ink)
        labels = [for_figure(f"{_short(name)} ({streams[name]})") for name in kept.columns]
        axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=8)
        axes.set_yticks(range(len(kept)), [for_figure(shape) for shape in kept.index], fontsize=8)
        axes.set_xlim(-0.5, max(len(labels), 6) - 0.5)
        axes.set_ylim(len(kept) - 0.5, -0.5)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    told = "; ".join(
        f"{name}: {streams[name]} streams, {counts_in_words(kept[name])}" for name in kept.columns
    )
    left_out = f" The {MAX_SOURCES} sources with most streams." if len(counts.columns) > MAX_SOURCES else ""
    return Figure(
        draw,
        alt=f"Heat map of wire shapes by source, {evidence} evidence. {told}.",
        caption=f"Wire shapes by source, {evidence} evidence: how many streams show a shape; the darker, the "
        f"larger their share.{left_out}",
        size=(9.0, 2.9 + 0.21 * len(kept)),
    )


def counts_in_words(counts: pd.Series) -> str:
    """Names with their counts, those that are not zero."""
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
