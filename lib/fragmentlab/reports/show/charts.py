"""The charts of notebooks 02, 04 and 05: bars, heat maps and shares, each with its data as alt text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.disclosure import for_figure
from fragmentlab.qualification.comparing.comparison import acceptance_interval
from fragmentlab.reports.show.figures import HATCHES, Figure, Theme, heat_map, legend_below, stacked_bars
from fragmentlab.reports.show.prose import counts_in_words
from fragmentlab.reports.show.tables import Badge

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"captured": "o", "controlled": "s", "imported": "^", "live": "D"}
DRAWN = 9
"""Categories that get a colour of their own in one chart; the rest is one bar, and the table has them all."""
OTHER = "all other categories"
MAX_SOURCES = 30
"""Columns of the figure; the sources with most streams are drawn, the table has them all."""


def with_shares(counts: pd.DataFrame) -> pd.DataFrame:
    """Add ``share``, ``low`` and ``high``, and in words ``percent`` and ``interval``.

    Rows hold ``part`` out of ``streams``, of at least one stream.
    """
    pairs = zip(counts.part, counts.streams, strict=True)
    bounds = pd.DataFrame([acceptance_interval(*pair) for pair in pairs], columns=["low", "high"])
    shares = counts.reset_index(drop=True).join(bounds)
    return shares.assign(
        share=shares.part / shares.streams,
        percent=(shares.part / shares.streams).map("{:.1%}".format),
        interval=shares.low.map("{:.1%}".format) + " to " + shares.high.map("{:.1%}".format),
    )


def share_figure(shares: pd.DataFrame, what: str, caption: str) -> Figure:
    """A marker per row and kind of ``evidence`` with its interval; ``label`` names the row."""
    rows = list(shares.itertuples(index=False))

    def draw(axes: Axes, theme: Theme) -> None:
        colours = dict(zip(_MARKERS, theme.series, strict=False))
        for place, row in enumerate(rows):
            axes.plot([row.low, row.high], [place, place], color=theme.soft, lw=2, solid_capstyle="butt")
            axes.plot([row.share], [place], _MARKERS[row.evidence], color=colours[row.evidence], ms=6)
            axes.text(1.02, place, f"{row.part} of {row.streams}", va="center", color=theme.ink)
        axes.set_yticks(range(len(rows)), [for_figure(row.label) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1.0)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel(f"share of streams {for_figure(what)}")

    told = "; ".join(f"{row.label}: {row.part} of {row.streams}, {row.share:.0%}" for row in rows)
    return Figure(
        draw,
        alt=f"Share of streams {what}, with its 95 percent interval. {told}.",
        caption=f"{caption}, with 95 % Wilson intervals. Controlled streams were chosen by us: their share "
        "says nothing of any provider",
        size=(9.0, 1.1 + 0.32 * max(len(rows), 1)),
    )


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


def continuations_figure(counts: pd.DataFrame, endings: Sequence[Badge]) -> Figure:
    """A bar for each scenario of ``continuations_df``, and at its end how the task ended."""
    counts = counts.loc[:, counts.sum() > 0]

    def draw(axes: Axes, theme: Theme) -> None:
        stacked_bars(
            axes, counts, [{"color": c, "hatch": h} for c, h in zip(theme.series, HATCHES, strict=True)]
        )
        totals = counts.sum(axis=1)
        most = max([*totals, 1])
        for place, (ending, total) in enumerate(zip(endings, totals, strict=True)):
            text = ending.text if ending.kind == "ok" else f"does not hold: {ending.text}"
            colour = theme.refuse if ending.kind == "bad" else theme.ink
            axes.text(total + most * 0.01, place, for_figure(text), va="center", color=colour)
        axes.set_xlim(0, most * 1.3)
        axes.set_xlabel("fragments after the call's ID was known, by what they said of the ID")
        legend_below(axes, len(counts.columns))

    told = [
        f"{name}: {counts_in_words(row)}; {ending.text}"
        for (name, row), ending in zip(counts.iterrows(), endings, strict=True)
    ]
    return Figure(
        draw,
        alt=f"Bars of what later fragments said of the ID, and how each task ended. {'. '.join(told)}.",
        caption="What the provider streamed after a call's ID was known, and how the task ended.",
        size=(9.0, 1.3 + 0.32 * len(counts)),
    )
