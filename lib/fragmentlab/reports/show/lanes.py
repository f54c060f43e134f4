"""Draws fragments as lanes by index: what each says is a marker, what is then known is a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from fragmentlab.reports.show.figures import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Stretch = Any
"""A row of ``timeline.stretches`` as a named tuple."""
_SAYS = {
    "omitted": "no ID",
    "null": "null",
    "empty_string": "an empty string",
    "string": "an ID",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    None: "nothing readable",
}
_MARKERS = {"omitted": "o", "null": "D", "empty_string": "s", "string": "o", None: "X"}
_HOLLOW = ("null", "empty_string")
_LINES = {"established": "-", "empty": "--", "absent": ":", None: ":"}


def kind_in_words(kind: str | None) -> str:
    """What a fragment says of its ID, in words."""
    return _SAYS.get(kind, "another type")


def says_of(stretch: Stretch) -> str:
    """The same with the ID's letter."""
    letter = stretch.incoming_alias
    return f"ID {letter}" if letter else kind_in_words(stretch.incoming_kind)


def lane_name(index: int | None) -> str:
    """The name of an index for people."""
    return "no index" if index is None else f"index {index}"


def draw_lanes(
    axes: Axes, theme: Theme, lanes: Mapping[int | None, pd.DataFrame], elsewhere: Sequence[str]
) -> None:
    """Draw a lane for each index; ``elsewhere`` are categories of faults that no fragment brought."""
    rows = {index: list(frame.itertuples(index=False)) for index, frame in lanes.items()}
    drawn = [each for lane in rows.values() for each in lane]
    stops = sorted({ordinal for each in drawn for ordinal in (each.fragment, each.last_fragment)})
    place = {ordinal: float(number) for number, ordinal in enumerate(stops)}
    end = len(stops) - 0.5 if stops else 1.0
    for level, lane in enumerate(rows.values()):
        _draw_lane(axes, theme, -float(level), lane, place, end)
    bottom = -float(max(len(lanes), 1) - 1)
    _draw_endings(axes, theme, elsewhere, end, bottom)
    _draw_scales(axes, theme, list(lanes), stops, bottom)
    _draw_key(axes, theme, drawn)
    axes.set_xlim(-0.5, end + 0.02 * len(stops))
    axes.set_ylim(bottom - 0.45, 0.8)


def _draw_lane(
    axes: Axes, theme: Theme, level: float, lane: Sequence[Stretch], place: Mapping[int, float], end: float
) -> None:
    for each, following in zip(lane, [*lane[1:], None], strict=True):
        left, right = place[each.fragment], place[each.last_fragment]
        until = place[following.fragment] if following else end
        style, colour = _LINES[each.next_identity], _colour(theme, each)
        axes.plot(
            [left, until], [level, level], style, color=theme.soft, lw=2, zorder=1, solid_capstyle="butt"
        )
        if each.count > 1:
            axes.plot([left, right], [level, level], "-", color=colour, lw=7, alpha=0.35, zorder=2)
            middle, many = (left + right) / 2, f"×{each.count:,}"
            axes.text(middle, level + 0.2, many, ha="center", fontsize=8.5, color=theme.soft)
            _mark(axes, theme, right, level, each)
        _mark(axes, theme, left, level, each)
    if refused := next((each for each in lane if each.decision == "reject"), None):
        x = place[refused.fragment]
        side = "right" if x > 0.6 * end else "left"
        axes.text(x, level + 0.27, refused.category or "", color=theme.refuse, ha=side, fontsize=9)
    last = lane[-1]
    if last.next_identity:
        known = f"ID {last.id_alias} known" if last.id_alias else f"identity {last.next_identity}"
        _beside(axes, end, level, known, theme.ink)


def _beside(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(
        text, (x, y), (9, 0), textcoords="offset points", va="center", color=colour, fontsize=9,
        annotation_clip=False,
    )  # fmt: skip


def _colour(theme: Theme, each: Stretch) -> str:
    return {"reject": theme.refuse, "set": theme.change}.get(each.decision, theme.keep)


def _mark(axes: Axes, theme: Theme, x: float, level: float, each: Stretch) -> None:
    colour, letter = _colour(theme, each), each.incoming_alias
    if each.decision == "reject":
        axes.plot([x], [level], marker="X", ms=11, color=colour, mec=theme.sheet, mew=1, zorder=4)
        return
    size = 13 if letter else 5 if each.incoming_kind == "omitted" else 8.5
    face = theme.sheet if each.incoming_kind in _HOLLOW else colour
    marker = _MARKERS.get(each.incoming_kind, "^")
    axes.plot([x], [level], marker=marker, ms=size, mfc=face, mec=colour, mew=1.6, zorder=3)
    if letter:
        axes.text(
            x, level, letter, ha="center", va="center_baseline", fontsize=8, color=theme.sheet, zorder=5
        )


def _draw_endings(axes: Axes, theme: Theme, categories: Sequence[str], end: float, bottom: float) -> None:
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


def _draw_key(axes: Axes, theme: Theme, drawn: Sequence[Stretch]) -> None:
    from matplotlib.lines import Line2D

    def entry(marker: str, face: str, edge: str, label: str) -> Line2D:
        return Line2D([], [], marker=marker, ls="", ms=7, mfc=face, mec=edge, mew=1.5, label=label)

    kinds: dict[str | None, str] = {}
    for each in sorted(drawn, key=lambda each: each.fragment):
        if each.decision != "reject":
            kinds.setdefault(each.incoming_kind, _colour(theme, each))
    entries = [
        entry(
            _MARKERS.get(kind, "^"),
            theme.sheet if kind in _HOLLOW else colour,
            colour,
            f"says {kind_in_words(kind)}",
        )
        for kind, colour in kinds.items()
    ]
    if any(each.decision == "reject" for each in drawn):
        entries.append(entry("X", theme.refuse, theme.refuse, "refused"))
    states = dict.fromkeys(each.next_identity for each in drawn)
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
