"""A rule table as frames and figures: the decision flow, and the cells that streams meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING

import pandas as pd

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.rules import CELLS, COLUMNS, IDENTITIES, IMPOSSIBLE
from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import Figure, Theme
from fragmentlab.reports.show.tables import Badge

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAYS = {
    "omitted": "nothing",
    "null": "null",
    "empty_string": '""',
    "same_string": "same ID",
    "other_string": "new ID",
    "number": "number",
    "boolean": "boolean",
    "array": "array",
    "object": "object",
}
"""Column -> what a person calls it."""
_AFTERWARDS = (
    "What is kept or set goes on: name and arguments are accumulated, the finished proposal is validated, "
    "the host authorizes. One refusal refuses the whole response."
)
_ACTIONS = {"keep": 0, "set": 1}


def cells_df(rules: RuleSet) -> pd.DataFrame:
    """Return one row per cell that a fragment can reach: ``identity``, ``column`` and ``action``."""
    frame = pd.DataFrame(
        [(identity, column, rules.action(identity, column)) for identity, column in CELLS],
        columns=["identity", "column", "action"],
    )
    return frame.astype({"identity": pd.CategoricalDtype(IDENTITIES), "column": pd.CategoricalDtype(COLUMNS)})


def grouped(cells: pd.DataFrame) -> pd.DataFrame:
    """Join the cells of one identity and action: ``says`` is what fragments say there, in words."""
    ordered = cells.sort_values(["identity", "column"])
    groups = ordered.groupby(["identity", "action"], observed=True, sort=False).column.agg(says_in_words)
    rows = groups.rename("says").reset_index()
    return rows.sort_values(
        ["identity", "action"],
        key=lambda values: values.map(_ACTIONS).fillna(2) if values.name == "action" else values.cat.codes,
        kind="stable",
        ignore_index=True,
    )


def says_in_words(columns: Iterable[str]) -> str:
    """What a fragment says, in words."""
    return ", ".join(SAYS[column] for column in columns)


def action_badge(action: str) -> Badge:
    """An action as a mark with its word or category."""
    return Badge(action, "ok") if action in _ACTIONS else Badge(action.removeprefix("reject:"), "bad")


def flow_figure(rules: RuleSet, shown_name: str) -> Figure:
    """From a fragment to the host's authorization, a lane for each identity, grouped by action."""
    groups = [(str(row.identity), row.action, row.says) for row in grouped(cells_df(rules)).itertuples()]
    told = [f"{identity}: {says} {_verb(action)}" for identity, action, says in groups]
    return Figure(
        lambda axes, theme: _draw_flow(axes, theme, groups),
        alt=f"Locate the fragment's index, inspect its identity. {'; '.join(told)}. {_AFTERWARDS}",
        caption=f"How {shown_name} decides, drawn from its table. A cross ends the response.",
        size=(9.0, 1.9 + 0.44 * len(groups)),
    )


def met_figure(met: Mapping[str, pd.DataFrame]) -> Figure:
    """Fragments counted by identity (rows) and what they say (columns), a panel for each kind of evidence."""
    told = [
        f"{evidence}: {(counts > 0).sum().sum()} of {len(CELLS)} cells met"
        for evidence, counts in met.items()
    ]
    return Figure(
        lambda axes, theme: _draw_met(axes, theme, met),
        alt="Fragments by known identity and by what they say of the ID. " + "; ".join(told) + ".",
        caption="Transitions that the streams exercise. Darker is more; a dash cannot occur.",
        size=(9.0, 0.8 + sum(1.35 if counts.to_numpy().any() else 0.3 for counts in met.values())),
    )


def _verb(action: str) -> str:
    if action in ("keep", "set"):
        return "keeps what is known" if action == "keep" else "is taken"
    return f"is refused as {action.removeprefix('reject:')}"


def _draw_flow(axes: Axes, theme: Theme, groups: Sequence[tuple[str, str, str]]) -> None:
    height = len(groups)
    axes.set_xlim(0, 100)
    axes.set_ylim(height + 0.3, -1.75)
    axes.axis("off")
    middle = height / 2 - 0.5
    for x, width, text in (
        (0, 11, "a fragment:\nlocate\nits index"),
        (74, 12, "accumulate\nname and\narguments"),
        (88, 12, "validate the\nproposal"),
    ):
        _box(axes, theme, x, middle, width, 1.9, text)
    _box(axes, theme, 88, -1.0, 12, 0.9, "host\nauthorization")
    _arrow(axes, theme, (94, middle - 0.98), (94, -0.5))
    _arrow(axes, theme, (86, middle), (88, middle))
    axes.text(13.5, -1.2, "inspect\nidentity", color=theme.soft, va="center")
    axes.text(28, -1.2, "the fragment says", color=theme.soft, va="center")
    axes.text(53, -1.2, "so the table", color=theme.soft, va="center")
    for identity in IDENTITIES:
        places = [place for place, group in enumerate(groups) if group[0] == identity]
        centre = (places[0] + places[-1]) / 2
        _arrow(axes, theme, (11, middle), (13, centre))
        _box(axes, theme, 13, centre, 12.5, len(places) - 0.2, identity)
        axes.axhline(places[-1] + 0.5, 0.13, 0.73, color=theme.line, lw=0.6)
    for place, (_, action, says) in enumerate(groups):
        _draw_group(axes, theme, place, says, action, middle)


def _draw_group(axes: Axes, theme: Theme, place: int, says: str, action: str, middle: float) -> None:
    kind = action if action in ("keep", "set") else "refuse"
    colour = {"keep": theme.keep, "set": theme.change, "refuse": theme.refuse}[kind]
    mark = {"keep": "=", "set": "+", "refuse": "×"}[kind]
    text = {"keep": "keeps the identity", "set": "takes the ID"}.get(kind, action.removeprefix("reject:"))
    axes.text(28, place, for_figure(says), va="center", fontsize=8.5)
    axes.text(51, place, mark, color=colour, va="center", ha="center", fontsize=12, fontweight="bold")
    axes.text(53, place, for_figure(text), color=colour, va="center", fontsize=8.5)
    if kind != "refuse":
        _arrow(axes, theme, (70, place), (74, middle))


def _box(axes: Axes, theme: Theme, x: float, centre: float, width: float, height: float, text: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={min(0.2, height / 4)}"
    corner = (x, centre - height / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle=style, mutation_aspect=0.2, fc=theme.sheet, ec=theme.soft, lw=1
        )
    )
    axes.text(x + width / 2, centre, text, ha="center", va="center", fontsize=8.5)


def _arrow(axes: Axes, theme: Theme, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": theme.soft, "lw": 0.9})


def _draw_met(axes: Axes, theme: Theme, met: Mapping[str, pd.DataFrame]) -> None:
    from matplotlib.patches import Rectangle

    most = max([1, *(counts.to_numpy().max() for counts in met.values())])
    ticks: dict[float, str] = {}
    top = 0.0
    for evidence, counts in met.items():
        total = counts.to_numpy().sum()
        heading = f"{evidence}: {total:,} fragments" if total else f"{evidence}: none"
        axes.text(-0.5, top - 0.68, for_figure(heading), fontweight="bold", va="center")
        if not total:
            top += 0.9
            continue
        for row, identity in enumerate(IDENTITIES):
            ticks[top + row] = identity
            for place, column in enumerate(COLUMNS):
                count, corner = counts.at[identity, column], (place - 0.5, top + row - 0.5)
                text, colour = "–" if (identity, column) in IMPOSSIBLE else f"{count:,}", theme.soft
                axes.add_patch(Rectangle(corner, 1, 1, fc="none", ec=theme.line))
                if count:
                    strength = 0.12 + 0.75 * log1p(count) / log1p(most)
                    axes.add_patch(Rectangle(corner, 1, 1, fc=theme.keep, alpha=strength, ec="none"))
                    colour = theme.sheet if strength > 0.5 else theme.ink
                axes.text(place, top + row, text, ha="center", va="center", color=colour, fontsize=8.5)
        top += len(IDENTITIES) + 1.1
    axes.set_xlim(-0.5, len(COLUMNS) - 0.5)
    axes.set_ylim(top - 1.1, -1.2)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_xticks(range(len(COLUMNS)), [for_figure(SAYS[column]) for column in COLUMNS])
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
