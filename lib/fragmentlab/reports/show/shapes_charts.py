"""Charts of provider shapes: a heat map with counts, and refusals by argument size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import Figure, Theme
from fragmentlab.wire.observing import SHAPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SOURCES = 30
"""Columns of a heat map; the sources with most streams are drawn, the table has them all."""
_LONGEST_LABEL = 44
_MARKERS = {"captured": "o", "controlled": "s", "imported": "^", "live": "D"}


@dataclass(frozen=True)
class SizeRow:
    """Streams of one range of argument bytes: how many, how many refused, and the interval of the share."""

    evidence: str
    label: str
    streams: int
    refused: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The refused share, from 0 to 1."""
        return self.refused / self.streams


def heat_map(evidence: str, sources: Mapping[str, tuple[int, Counter[str]]]) -> Figure:
    """Shapes by source: the number is how many streams show the shape, the shade their share of the
    source's."""
    kept = sorted(sources, key=lambda name: -sources[name][0])[:MAX_SOURCES]
    kept = [name for name in sources if name in kept]
    shapes = [shape for shape in SHAPES if any(sources[name][1][shape] for name in kept)]

    def draw(axes: Axes, theme: Theme) -> None:
        from matplotlib.patches import Rectangle

        for column, name in enumerate(kept):
            streams, counts = sources[name]
            for row, shape in enumerate(shapes):
                count = counts[shape]
                if not count:
                    continue
                share = count / streams
                axes.add_patch(
                    Rectangle(
                        (column - 0.48, row - 0.46), 0.96, 0.92, color=theme.keep, alpha=0.12 + 0.5 * share
                    )
                )
                axes.text(column, row, str(count), ha="center", va="center", fontsize=7.5, color=theme.ink)
        labels = [for_figure(f"{_short(name)} ({sources[name][0]})") for name in kept]
        axes.set_xticks(range(len(kept)), labels, rotation=90, fontsize=8)
        axes.set_yticks(range(len(shapes)), [for_figure(shape) for shape in shapes], fontsize=8)
        axes.set_xlim(-0.5, max(len(kept), 6) - 0.5)
        axes.set_ylim(len(shapes) - 0.5, -0.5)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    said = "; ".join(f"{name}: {_spoken(*sources[name])}" for name in kept)
    left_out = f" The {len(kept)} sources with most streams." if len(kept) < len(sources) else ""
    return Figure(
        draw,
        alt=f"Heat map of wire shapes by source, {evidence} evidence. {said}.",
        caption=f"Wire shapes by source, {evidence} evidence: how many streams show a shape; the darker, the "
        f"larger their share.{left_out}",
        size=(9.0, 2.9 + 0.21 * len(shapes)),
    )


def size_figure(rows: Sequence[SizeRow], rules: str) -> Figure:
    """The refused share by argument bytes, one marker a kind of evidence, with 95 % Wilson intervals."""

    def draw(axes: Axes, theme: Theme) -> None:
        colours = dict(zip(_MARKERS, theme.series, strict=False))
        for number, row in enumerate(rows):
            axes.plot([row.low, row.high], [number, number], color=theme.soft, linewidth=2)
            axes.plot(
                [row.share],
                [number],
                marker=_MARKERS[row.evidence],
                color=colours[row.evidence],
                markersize=6,
            )
            axes.text(1.02, number, f"{row.refused} of {row.streams}", va="center", color=theme.ink)
        axes.set_yticks(range(len(rows)), [for_figure(f"{row.evidence}, {row.label}") for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel(f"share of streams refused under {for_figure(rules)}")

    said = "; ".join(f"{row.evidence}, {row.label} bytes: {row.refused} of {row.streams}" for row in rows)
    return Figure(
        draw,
        alt=f"Share of refused streams by bytes of arguments. {said}.",
        caption="Refused streams by bytes of arguments, with 95 % Wilson intervals. The share of controlled "
        "streams is the one that we chose",
        size=(9.0, 1.0 + 0.3 * max(len(rows), 1)),
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"


def _spoken(streams: int, counts: Counter[str]) -> str:
    return f"{streams} streams, " + (
        ", ".join(f"{shape} {counts[shape]}" for shape in SHAPES if counts[shape]) or "none"
    )
