"""Wire shapes by source, as a heat map with counts."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import Figure, Theme, heat_map
from fragmentlab.reports.show.prose import counts_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SOURCES = 30
"""Columns of the figure; the sources with most streams are drawn, the table has them all."""


def shapes_figure(evidence: str, counts: pd.DataFrame, streams: pd.Series) -> Figure:
    """Shapes (rows) by source (columns): the number is how many streams show one, the shade their share.

    ``streams`` is how many each source has.
    """
    most = streams.sort_values(ascending=False, kind="stable").index[:MAX_SOURCES]
    kept = counts.loc[:, counts.columns.isin(most)]
    kept = kept[kept.sum(axis=1) > 0]
    shares = kept / streams[kept.columns]

    def draw(axes: Axes, theme: Theme) -> None:
        heat_map(axes, theme, kept.astype(str).where(kept > 0, ""), (0.12 + 0.38 * shares).where(kept > 0, 0))
        labels = [for_figure(f"{textwrap.shorten(name, 44)} ({streams[name]})") for name in kept.columns]
        axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=8)
        axes.set_yticks(range(len(kept)), [for_figure(shape) for shape in kept.index], fontsize=8)
        axes.set_xlim(-0.5, max(len(labels), 6) - 0.5)
        axes.set_ylim(len(kept) - 0.5, -0.5)
        axes.xaxis.tick_top()

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
