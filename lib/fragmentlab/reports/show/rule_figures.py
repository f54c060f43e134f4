"""A rule table as frames and figures: the decision flow, and the cells that streams meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.rules import CELLS, COLUMNS, IDENTITIES, IMPOSSIBLE
from fragmentlab.disclosure import for_figure
from fragmentlab.reports.show.figures import Figure, Theme, heat_map
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
_VERBS = {"keep": "keeps what is known", "set": "is taken"}
Point = tuple[float, float]


def cells_df(rules: RuleSet) -> pd.DataFrame:
    """Return one row per cell that a fragment can reach: ``identity``, ``column`` and ``action``."""
    cells = [(*cell, rules.action(*cell)) for cell in CELLS]
    frame = pd.DataFrame(cells, columns=["identity", "column", "action"])
    return frame.astype({"identity": pd.CategoricalDtype(IDENTITIES), "column": pd.CategoricalDtype(COLUMNS)})


def grouped(cells: pd.DataFrame) -> pd.DataFrame:
    """Join the cells of one identity and action: ``says`` is what fragments say there, in words."""
    ordered = cells.sort_values(["identity", "column"])
    groups = ordered.groupby(["identity", "action"], observed=True, sort=False).column.agg(says_in_words)
    rows = groups.rename("says").reset_index()
    return rows.sort_values(
        ["identity", "action"],
        key=lambda values: values.map({"keep": 0, "set": 1}).fillna(2) if values.name == "action" else values,
        kind="stable",
        ignore_index=True,
    )


def says_in_words(columns: Iterable[str]) -> str:
    """What a fragment says, in words."""
    return ", ".join(SAYS[column] for column in columns)


def action_badge(action: str) -> Badge:
    """An action as a mark with its word or category."""
    return Badge(action, "ok") if action in _VERBS else Badge(action.removeprefix("reject:"), "bad")


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
    told = [f"{kind}: {(own > 0).sum().sum()} of {len(CELLS)} cells met" for kind, own in met.items()]
    return Figure(
        lambda axes, theme: _draw_met(axes, theme, met),
        alt="Fragments by known identity and by what they say of the ID. " + "; ".join(told) + ".",
        caption="Transitions that the streams exercise. Darker is more; a dash cannot occur.",
        size=(9.0, 0.8 + sum(1.35 if counts.to_numpy().any() else 0.3 for counts in met.values())),
    )


def _verb(action: str) -> str:
    return _VERBS.get(action) or f"is refused as {action.removeprefix('reject:')}"


def _draw_flow(axes: Axes, theme: Theme, groups: Sequence[tuple[str, str, str]]) -> None:
    middle = len(groups) / 2 - 0.5
    axes.set_xlim(0, 100)
    axes.set_ylim(len(groups) + 0.3, -1.75)
    axes.axis("off")
    _box(axes, theme, (5.5, middle), "a fragment:\nlocate\nits index")
    _box(axes, theme, (80, middle), "accumulate\nname and\narguments")
    _box(axes, theme, (94, middle), "validate the\nproposal", after=(85.5, middle))
    _box(axes, theme, (94, -1.0), "host\nauthorization", after=(94, middle - 0.98))
    for x, text in ((13.5, "inspect\nidentity"), (27, "the fragment says"), (53, "so the table")):
        axes.text(x, -1.2, text, color=theme.soft, va="center")
    for identity in IDENTITIES:
        places = [place for place, group in enumerate(groups) if group[0] == identity]
        _box(axes, theme, (19, (places[0] + places[-1]) / 2), identity, after=(11, middle))
        axes.axhline(places[-1] + 0.5, 0.13, 0.73, color=theme.line, lw=0.6)
    looks = {"keep": ("=", theme.keep, "keeps the identity"), "set": ("+", theme.change, "takes the ID")}
    for place, (_, action, says) in enumerate(groups):
        mark, colour, text = looks.get(action, ("×", theme.refuse, action.removeprefix("reject:")))
        axes.text(27, place, for_figure(says), va="center", fontsize=8.5)
        axes.text(51, place, mark, color=colour, va="center", ha="center", fontsize=12, fontweight="bold")
        axes.text(53, place, for_figure(text), color=colour, va="center", fontsize=8.5)
        if action in looks:
            axes.annotate("", (74, middle), (70, place), arrowprops=_arrow("->", theme))


def _arrow(style: str, theme: Theme) -> dict[str, Any]:
    return {"arrowstyle": style, "color": theme.soft, "lw": 0.9}


def _box(axes: Axes, theme: Theme, place: Point, text: str, after: Point | None = None) -> None:
    """A text in a box, with an arrow to it from the point ``after``."""
    box = {"boxstyle": "round,pad=0.5", "fc": theme.sheet, "ec": theme.soft}
    look: Any = {"ha": "center", "va": "center", "fontsize": 8.5, "bbox": box}
    axes.annotate(text, after or place, place, arrowprops=_arrow("<-", theme) if after else None, **look)


def _draw_met(axes: Axes, theme: Theme, met: Mapping[str, pd.DataFrame]) -> None:
    most = max([1, *(counts.to_numpy().max() for counts in met.values())])
    ticks: dict[float, str] = {}
    top = 0.0
    for evidence, counts in met.items():
        total = counts.to_numpy().sum()
        heading = f"{evidence}: {total:,} fragments" if total else f"{evidence}: none"
        axes.text(-0.5, top - 0.68, for_figure(heading), fontweight="bold", va="center")
        if total:
            texts = counts.map("{:,}".format)
            for cell in IMPOSSIBLE:
                texts.loc[cell] = "–"
            shades = (0.12 + 0.75 * np.log1p(counts) / np.log1p(most)).where(counts > 0, 0)
            heat_map(axes, theme, texts, shades, top)
            ticks |= {top + row: identity for row, identity in enumerate(IDENTITIES)}
        top += len(IDENTITIES) + 1.1 if total else 0.9
    axes.set_xlim(-0.5, len(COLUMNS) - 0.5)
    axes.set_ylim(top - 1.1, -1.2)
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_xticks(range(len(COLUMNS)), [for_figure(SAYS[column]) for column in COLUMNS])
