"""What later fragments said of an ID that was already known, drawn for scenarios side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import HATCHES, Figure, Theme
from fragmentlab.reports.show.tables import Badge
from fragmentlab.runtime.play import Played

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAID = {"omitted": "omitted", "null": "null", "string": "the same ID", "other": "something else"}


def said(played: Played) -> Counter[str]:
    """How often a fragment of an already identified call said what; read from the bytes
    that were streamed."""
    counts: Counter[str] = Counter()
    for body in played.bodies:
        for row in Stream("", body).assemble(diagnose=True).timeline:
            if row.previous_identity == "established" and row.decision != "reject":
                counts[row.incoming_kind if row.incoming_kind in _SAID else "other"] += 1
    return counts


def continuations_figure(scenarios: Sequence[tuple[Played, Badge]]) -> Figure:
    """A bar a scenario: what its later fragments said, and at its end how the task ended."""
    rows = [(played.scenario.name, said(played), verdict) for played, verdict in scenarios]
    kinds = [kind for kind in _SAID if any(counts[kind] for _, counts, _ in rows)]

    def draw(axes: Axes, theme: Theme) -> None:
        places = range(len(rows))
        left = [0] * len(rows)
        for number, kind in enumerate(kinds):
            widths = [counts[kind] for _, counts, _ in rows]
            axes.barh(
                places,
                widths,
                left=left,
                height=0.6,
                color=theme.series[number],
                hatch=HATCHES[number],
                label=_SAID[kind],
            )
            left = [a + b for a, b in zip(left, widths, strict=True)]
        most = max([*left, 1])
        for place, (_, _, verdict) in zip(places, rows, strict=True):
            colour = theme.refuse if verdict.kind == "bad" else theme.ink
            axes.text(
                left[place] + most * 0.01,
                place,
                for_figure(verdict.text if verdict.kind == "ok" else f"does not hold: {verdict.text}"),
                va="center",
                color=colour,
            )
        axes.set_yticks(list(places), [for_figure(name) for name, _, _ in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, most * 1.3)
        axes.set_xlabel("fragments after the call's ID was known")
        if kinds:
            said_of = axes.legend(frameon=False, ncols=len(kinds), loc="lower left", bbox_to_anchor=(0, 1))
            said_of.set_title("They said of the ID")

    told = []
    for name, counts, verdict in rows:
        parts = [f"{counts[kind]:,} {_SAID[kind]}" for kind in kinds if counts[kind]]
        told.append(f"{name}: {', '.join(parts) or 'none'}; {verdict.text}")
    return Figure(
        draw,
        alt=f"Bars of what later fragments said of the ID, and how each task ended. {'. '.join(told)}.",
        caption="What the provider streamed after a call's ID was known, and how the task ended.",
        size=(9.0, 1.3 + 0.32 * len(rows)),
    )
