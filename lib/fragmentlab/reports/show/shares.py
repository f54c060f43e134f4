"""Shares with their 95 % Wilson interval: computed on a DataFrame of counts, drawn as one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.disclosure import for_figure
from fragmentlab.qualification.comparing.comparison import acceptance_interval
from fragmentlab.reports.show.figures import Figure, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"captured": "o", "controlled": "s", "imported": "^", "live": "D"}


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
