"""Draws fragments as lanes by index: what each says is a marker, what is then known is a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fragmentlab.reports.show.figures import Theme
from fragmentlab.reports.show.fragment_runs import Run, lane_name, says

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fragmentlab.assembler import Fault

_MARKERS = {"omitted": "o", "null": "D", "empty_string": "s", "string": "o", None: "X"}
_HOLLOW = ("null", "empty_string")
_LINES = {"established": "-", "empty": "--", "absent": ":", None: ":"}


def draw_lanes(
    axes: Axes, theme: Theme, lanes: dict[int | None, list[Run]], elsewhere: Sequence[Fault]
) -> None:
    """Draw one lane an index; ``elsewhere`` are the faults that no fragment brought."""
    stops = sorted(
        {n for runs in lanes.values() for run in runs for n in (run.first.fragment, run.last.fragment)}
    )
    place = {ordinal: float(number) for number, ordinal in enumerate(stops)}
    end = len(stops) - 0.5 if stops else 1.0
    for level, runs in enumerate(lanes.values()):
        _draw_lane(axes, theme, -float(level), runs, place, end)
    bottom = -float(max(len(lanes), 1) - 1)
    _draw_endings(axes, theme, elsewhere, end, bottom)
    _draw_scales(axes, theme, list(lanes), stops, bottom)
    _draw_key(axes, theme, [run for runs in lanes.values() for run in runs])
    axes.set_xlim(-0.5, end + 0.02 * len(stops))
    axes.set_ylim(bottom - 0.45, 0.8)


def _draw_lane(
    axes: Axes, theme: Theme, level: float, runs: Sequence[Run], place: dict[int, float], end: float
) -> None:
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        left, right = place[run.first.fragment], place[run.last.fragment]
        until = place[following.first.fragment] if following else end
        style = _LINES[run.last.next_identity]
        axes.plot(
            [left, until], [level, level], style, color=theme.soft, lw=2, zorder=1, solid_capstyle="butt"
        )
        if len(run.rows) > 1:
            axes.plot(
                [left, right], [level, level], "-", color=_colour(theme, run), lw=7, alpha=0.35, zorder=2
            )
            axes.text(
                (left + right) / 2,
                level + 0.2,
                f"×{len(run.rows):,}",
                ha="center",
                fontsize=8.5,
                color=theme.soft,
            )
            _mark(axes, theme, right, level, run)
        _mark(axes, theme, left, level, run)
    refused = next((run for run in runs if run.refused), None)
    if refused:
        x = place[refused.first.fragment]
        side = "right" if x > 0.6 * end else "left"
        axes.text(x, level + 0.27, refused.first.category or "", color=theme.refuse, ha=side, fontsize=9)
    last = runs[-1].last
    if last.next_identity:
        known = f"ID {last.id_alias} known" if last.id_alias else f"identity {last.next_identity}"
        _beside(axes, end, level, known, theme.ink)


def _beside(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text,
        (x, y),
        (9, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=9,
        annotation_clip=False,
    )


def _colour(theme: Theme, run: Run) -> str:
    return theme.refuse if run.refused else theme.change if run.first.decision == "set" else theme.keep


def _mark(axes: Axes, theme: Theme, x: float, level: float, run: Run) -> None:
    row, colour = run.first, _colour(theme, run)
    if run.refused:
        axes.plot([x], [level], marker="X", ms=11, color=colour, mec=theme.sheet, mew=1, zorder=4)
        return
    letter = row.incoming_alias
    size = 13 if letter else 5 if row.incoming_kind == "omitted" else 8.5
    face = theme.sheet if row.incoming_kind in _HOLLOW else colour
    marker = _MARKERS.get(row.incoming_kind, "^")
    axes.plot([x], [level], marker=marker, ms=size, mfc=face, mec=colour, mew=1.6, zorder=3)
    if letter:
        axes.text(
            x, level, letter, ha="center", va="center_baseline", fontsize=8, color=theme.sheet, zorder=5
        )


def _draw_endings(axes: Axes, theme: Theme, elsewhere: Sequence[Fault], end: float, bottom: float) -> None:
    categories = list(dict.fromkeys(fault.category for fault in elsewhere))
    if not categories:
        return
    more = f" and {len(categories) - 1} more" if len(categories) > 1 else ""
    axes.plot([end, end], [0.5, bottom - 0.38], color=theme.refuse, lw=2.2, zorder=2, clip_on=False)
    axes.plot(
        [end], [0.5], marker="X", ms=11, color=theme.refuse, mec=theme.sheet, mew=1, zorder=4, clip_on=False
    )
    _beside(axes, end, 0.5, categories[0] + more, theme.refuse)


def _draw_scales(
    axes: Axes, theme: Theme, names: Sequence[int | None], stops: Sequence[int], bottom: float
) -> None:
    every = max(1, -(-len(stops) // 24))
    kept = [(number, ordinal) for number, ordinal in enumerate(stops) if number % every == 0]
    axes.set_xticks([number for number, _ in kept], [str(ordinal) for _, ordinal in kept])
    axes.set_yticks([-float(level) for level in range(len(names))], [lane_name(index) for index in names])
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.annotate(
        "fragment", (0, 0), (-4, -4), xycoords="axes fraction", textcoords="offset points",
        ha="right", va="top", color=theme.soft, annotation_clip=False,
    )  # fmt: skip


def _draw_key(axes: Axes, theme: Theme, runs: Sequence[Run]) -> None:
    from matplotlib.lines import Line2D

    def entry(marker: str, face: str, edge: str, label: str) -> Line2D:
        return Line2D([], [], marker=marker, ls="", ms=7, mfc=face, mec=edge, mew=1.5, label=label)

    entries = []
    kinds: dict[str | None, Run] = {}
    for run in sorted(runs, key=lambda run: run.first.fragment):
        if not run.refused:
            kinds.setdefault(run.first.incoming_kind, run)
    for kind, run in kinds.items():
        colour = _colour(theme, run)
        face = theme.sheet if kind in _HOLLOW else colour
        entries.append(entry(_MARKERS.get(kind, "^"), face, colour, f"says {says(kind)}"))
    if any(run.refused for run in runs):
        entries.append(entry("X", theme.refuse, theme.refuse, "refused"))
    states = dict.fromkeys(run.last.next_identity for run in runs)
    entries += [
        Line2D([], [], ls=_LINES[state], color=theme.soft, lw=2, label=f"identity {state}")
        for state in states
        if state
    ]
    if entries:
        axes.figure.legend(
            handles=entries, loc="outside lower left", ncols=min(5, len(entries)), frameon=False, fontsize=9,
            handletextpad=0.5, columnspacing=1.6,
        )  # fmt: skip
