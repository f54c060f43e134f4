"""What later fragments said of an ID that was already known, drawn for scenarios side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import HATCHES, Figure, Theme, legend_below, stacked_bars
from fragmentlab.reports.show.prose import counts_in_words
from fragmentlab.reports.show.tables import Badge
from fragmentlab.runtime.play import Played

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAYS = {"omitted": "omitted", "null": "null", "string": "the same ID"}
_OTHER = "something else"


def continuations_df(scenarios: Mapping[str, Played]) -> pd.DataFrame:
    """Return one row per scenario and one column per thing said: how many fragments of a known call said it.

    It is read from the bytes that were streamed.
    """
    counts = {
        name: pd.Series(
            [
                _SAYS.get(row.incoming_kind or "", _OTHER)
                for body in played.bodies
                for row in Stream("", body).assemble(diagnose=True).timeline
                if row.previous_identity == "established" and row.decision != "reject"
            ],
            dtype="str",
        ).value_counts()
        for name, played in scenarios.items()
    }
    frame = pd.DataFrame(counts).T.reindex(columns=[*_SAYS.values(), _OTHER])
    return frame.fillna(0).astype(int).rename_axis("scenario")


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
