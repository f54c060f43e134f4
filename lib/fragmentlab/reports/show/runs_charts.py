"""Charts of qualification runs: categories of refusal as stacked bars, acceptance with its interval."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fragmentlab.assembler import COMPOUND
from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import HATCHES, Figure, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 9
"""Categories that get a colour of their own in one chart; the rest is one bar, and the table has them all."""
OTHER = "all other categories"
_COMPOUND_HATCH = "OO"
_ROW_INCHES = 0.5


@dataclass(frozen=True)
class Acceptance:
    """One row of the acceptance chart: a label, how many streams, how many accepted, and the interval of the
    share."""

    label: str
    streams: int
    accepted: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.accepted / self.streams if self.streams else 0.0


def category_styles(counts: Sequence[Counter[str]]) -> dict[str, int]:
    """Give each of the most common categories a number, the same in every chart; others are drawn together.

    The compound category of the past is always drawn as its own.
    """
    total = sum(counts, Counter[str]())
    common = [name for name, _ in total.most_common() if name != COMPOUND][:DRAWN]
    return {name: number for number, name in enumerate(common)} | ({COMPOUND: -1} if total[COMPOUND] else {})


def category_figure(kind: str, runs: Mapping[str, Counter[str]], styles: Mapping[str, int]) -> Figure:
    """Rejections by category of the streams of one kind of evidence: one bar a run, one colour and hatch a
    category."""
    present = [name for name in styles if any(counts[name] for counts in runs.values())]
    grouped = {label: _grouped(counts, present) for label, counts in runs.items()}
    shown = [name for name in (*present, OTHER) if any(counts[name] for counts in grouped.values())]

    def draw(axes: Axes, theme: Theme) -> None:
        from matplotlib.ticker import MaxNLocator

        for row, counts in enumerate(grouped.values()):
            left = 0
            for name in shown:
                _segment(axes, theme, row, left, counts[name], _style(name, styles, theme))
                left += counts[name]
            axes.text(left, row, f" {left}", va="center", color=theme.ink)
        axes.set_yticks(range(len(grouped)), [_label(label) for label in grouped])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.06 * max(counts.total() for counts in grouped.values()) or 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("streams refused")
        _legend(axes, theme, shown, styles)

    said = "; ".join(f"{label}: {_spoken(counts)}" for label, counts in grouped.items())
    height = 0.9 + _ROW_INCHES * len(grouped) + 0.21 * -(-len(shown) // 3)
    return Figure(
        draw,
        alt=f"Stacked bars of refused streams of {kind} evidence by category. {said}.",
        caption=f"Refusals by category, {kind} evidence: one bar a run",
        size=(9.0, height),
    )


def acceptance_figure(rows: Sequence[Acceptance]) -> Figure:
    """The share of accepted streams of each run and kind of evidence, with its 95 % Wilson interval."""

    def draw(axes: Axes, theme: Theme) -> None:
        for number, row in enumerate(rows):
            axes.plot(
                [row.low, row.high], [number, number], color=theme.soft, linewidth=2, solid_capstyle="butt"
            )
            axes.plot([row.share], [number], marker="D", color=theme.keep, markersize=6)
            axes.text(1.02, number, f"{row.accepted} of {row.streams}", va="center", color=theme.ink)
        axes.set_yticks(range(len(rows)), [for_figure(row.label) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.0)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel("share of streams accepted")

    said = "; ".join(f"{row.label}: {row.accepted} of {row.streams}, {row.share:.0%}" for row in rows)
    return Figure(
        draw,
        alt=f"Share of accepted streams with its 95 percent interval. {said}.",
        caption="Acceptance by run and kind of evidence, with 95 % Wilson intervals. Controlled streams "
        "were chosen by us: their share says nothing of any provider",
        size=(9.0, 1.1 + 0.34 * len(rows)),
    )


def _grouped(counts: Counter[str], present: Sequence[str]) -> Counter[str]:
    kept = Counter({name: counts[name] for name in present})
    kept[OTHER] = counts.total() - kept.total()
    return kept


def _style(name: str, styles: Mapping[str, int], theme: Theme) -> tuple[str, str]:
    if name == OTHER:
        return theme.line, ""
    if name == COMPOUND:
        return theme.ink, _COMPOUND_HATCH
    number = styles[name]
    # A second lap of the colours starts at another hatch.
    return theme.series[number % len(theme.series)], HATCHES[(number + number // len(HATCHES)) % len(HATCHES)]


def _segment(axes: Axes, theme: Theme, row: int, left: int, width: int, style: tuple[str, str]) -> None:
    if width:
        axes.barh(row, width, left=left, height=0.62, color=style[0], hatch=style[1], edgecolor=theme.sheet)


def _legend(axes: Axes, theme: Theme, shown: Sequence[str], styles: Mapping[str, int]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=theme.sheet, label=for_figure(name))
        for name in shown
        for colour, hatch in [_style(name, styles, theme)]
    ]
    # Outside the axes, where the layout keeps room for it however many categories there are.
    axes.figure.legend(
        handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=8.5, handlelength=2.2
    )


def _label(text: str) -> str:
    return "\n".join(map(for_figure, textwrap.wrap(text, 30)))


def _spoken(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common() if count) or "none"
