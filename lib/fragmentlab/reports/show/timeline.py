"""A response's fragments in order of arrival, as a table and as lanes by index.

Both are made from ``fragments_df``. Neighbours that say the same in the same state are joined to a stretch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pandas as pd

from fragmentlab.reports.show.figures import Figure, Theme, legend_below
from fragmentlab.reports.show.tables import Badge, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fragmentlab.assembler import Fault

SHOWN_ONE_BY_ONE = 30
"""Longer responses are shown with stretches of like fragments joined."""
LANES_DRAWN = 12
STRETCHES_DRAWN = 60
"""Over all lanes."""
_TOLD = 6
_LIKENESS = [
    "index", "incoming_kind", "previous_identity", "next_identity", "id_alias", "incoming_alias", "decision",
    "category",
]  # fmt: skip
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


def change_in_words(before: str | None, after: str | None) -> str | None:
    """An identity before and after a fragment, said once where it stays."""
    return before if before == after else f"{before} → {after}"


def stretches(fragments: pd.DataFrame, one_by_one: bool = False) -> pd.DataFrame:
    """Return one row per stretch of like neighbours, or per fragment; what is missing is None.

    To the first fragment's columns come ``last_fragment``, ``last_event`` and ``count``; bytes are summed.
    """
    facts = fragments[_LIKENESS].astype(object).fillna("")
    begins = (facts != facts.shift()).any(axis=1) | one_by_one
    ends = fragments[begins.shift(-1, fill_value=True)]
    grouped = fragments.groupby(begins.cumsum())
    joined = fragments[begins].assign(
        last_fragment=ends.fragment.to_numpy(),
        last_event=ends.event.to_numpy(),
        count=grouped.size().to_numpy(),
        **{name: grouped[name].sum().to_numpy() for name in ("name_bytes", "arguments_bytes")},
    )
    return joined.astype(object).where(joined.notna(), None)


def timeline_table(fragments: pd.DataFrame, omitted: int) -> Table:
    """One row per fragment, or per stretch in a long response; sizes are bytes of UTF-8."""
    note = "Letters stand for IDs; the IDs themselves, names and arguments are not shown."
    if omitted:
        note = f"The last {omitted:,} fragments are beyond what a diagnosis keeps. {note}"
    told = stretches(fragments, len(fragments) <= SHOWN_ONE_BY_ONE)
    rows = list(told.itertuples(index=False))
    told = told.assign(
        fragment=[_span(each.fragment, each.last_fragment) for each in rows],
        event=[_span(each.event, each.last_event) for each in rows],
        index=["none" if each.index is None else str(each.index) for each in rows],
        says=list(map(_says, rows)),
        identity=[change_in_words(each.previous_identity, each.next_identity) for each in rows],
        decision=[Badge(each.category, "bad") if _refused(each) else each.decision for each in rows],
    )
    columns = "fragment, event, index, says, identity, id_alias as known ID, decision, "
    columns += "name_bytes as name bytes, arguments_bytes as argument bytes"
    return Table("Fragments in order of arrival", told, columns, note)


def timeline_figure(fragments: pd.DataFrame, faults: Sequence[Fault]) -> Figure:
    """Lanes by index: what each fragment says (marker), what is known (line), where it is refused."""
    one_by_one = len(fragments) <= SHOWN_ONE_BY_ONE
    by_index = {
        "no index" if pd.isna(index) else f"index {index:.0f}": rows
        for index, rows in fragments.groupby("index", dropna=False)
    }
    most = max(4, STRETCHES_DRAWN // max(1, min(len(by_index), LANES_DRAWN)))
    joined = {name: stretches(rows, one_by_one) for name, rows in by_index.items()}
    drawn = {
        name: list(rows.head(most).itertuples(index=False))
        for name, rows in list(joined.items())[:LANES_DRAWN]
    }
    elsewhere = list(dict.fromkeys(fault.category for fault in faults if fault.fragment is None))
    caption = ["Fragments by index, in order of arrival."]
    if not one_by_one:
        caption.append("Stretches of like fragments are joined; distances are not to scale.")
    if len(joined) > LANES_DRAWN:
        caption.append(f"{len(joined) - LANES_DRAWN} more indices are not drawn.")
    if any(len(rows) > most for rows in joined.values()):
        caption.append(f"Of each index the first {most} changes are drawn.")
    return Figure(
        lambda axes, theme: _draw(axes, theme, drawn, elsewhere),
        alt=_alt(len(fragments), by_index, elsewhere),
        caption=" ".join(caption),
        size=(9.0, 1.0 + 0.52 * max(1, len(drawn))),
    )


def _alt(count: int, by_index: Mapping[str, pd.DataFrame], elsewhere: Sequence[str]) -> str:
    endings = f"Refused outside the fragments: {', '.join(elsewhere[:4])}." if elsewhere else ""
    if not count:
        return f"No fragment arrived. {endings}".strip()
    plural = "index" if len(by_index) == 1 else "indices"
    parts = [f"Timeline of {count:,} fragments over {len(by_index)} {plural}."]
    for name, rows in list(by_index.items())[:_TOLD]:
        told = [_told(each) for each in stretches(rows).itertuples(index=False)]
        more = f"; {len(told) - _TOLD} more changes" if len(told) > _TOLD else ""
        parts.append(f"{name.capitalize()}: {'; '.join(told[:_TOLD])}{more}.")
    if len(by_index) > _TOLD:
        parts.append(f"{len(by_index) - _TOLD} more indices.")
    return " ".join([*parts, endings]).strip()


def _told(each: Any) -> str:
    who = "fragments {} say" if each.count > 1 else "fragment {} says"
    end = f"refused as {each.category}" if _refused(each) else f"identity {each.next_identity}"
    return f"{who.format(_span(each.fragment, each.last_fragment))} {_says(each)}, {end}"


def _refused(each: Any) -> bool:
    return bool(each.decision == "reject")


def _says(each: Any) -> str:
    return f"ID {each.incoming_alias}" if each.incoming_alias else kind_in_words(each.incoming_kind)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _draw(axes: Axes, theme: Theme, lanes: Mapping[str, Sequence[Any]], elsewhere: Sequence[str]) -> None:
    """``elsewhere`` are categories of faults that no fragment brought."""
    drawn = [each for lane in lanes.values() for each in lane]
    stops = sorted({stop for each in drawn for stop in (each.fragment, each.last_fragment)})
    place = {ordinal: number for number, ordinal in enumerate(stops)}
    end, bottom = len(stops) - 0.5 if stops else 1.0, 1 - max(len(lanes), 1)
    for level, lane in enumerate(lanes.values()):
        for each, following in pairwise([*lane, None]):
            until = place[following.fragment] if following else end
            _draw_stretch(axes, theme, -level, each, place, until)
        if refused := next(filter(_refused, lane), None):
            x = place[refused.fragment]
            side = "right" if x > 0.6 * end else "left"
            axes.text(x, 0.27 - level, refused.category, color=theme.refuse, ha=side, fontsize=9)
        if identity := lane[-1].next_identity:
            known = lane[-1].id_alias
            _beside(axes, end, -level, f"ID {known} known" if known else f"identity {identity}", theme.ink)
    if elsewhere:
        more = f" and {len(elsewhere) - 1} more" if len(elsewhere) > 1 else ""
        line: Any = {"color": theme.refuse, "marker": "X", "ms": 11, "mec": theme.sheet, "clip_on": False}
        axes.plot([end, end], [0.5, bottom - 0.38], lw=2.2, markevery=[0], **line)
        _beside(axes, end, 0.5, elsewhere[0] + more, theme.refuse)
    every = max(1, -(-len(stops) // 24))
    axes.set_xticks(range(0, len(stops), every), list(map(str, stops[::every])))
    axes.set_yticks([-level for level in range(len(lanes))], list(lanes))
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlabel("fragment", loc="left")
    axes.set_xlim(-0.5, end + 0.02 * len(stops))
    axes.set_ylim(bottom - 0.45, 0.8)
    legend_below(axes, 5)


def _draw_stretch(
    axes: Axes, theme: Theme, y: float, each: Any, place: Mapping[int, int], until: float
) -> None:
    left, right = place[each.fragment], place[each.last_fragment]
    colour = {"reject": theme.refuse, "set": theme.change}.get(each.decision, theme.keep)
    hollow, letter = each.incoming_kind in _HOLLOW, each.incoming_alias
    mark: dict[str, Any] = {
        "marker": _MARKERS.get(each.incoming_kind, "^"),
        "mec": colour,
        "mew": 1.6,
        "ls": "",
        "zorder": 3,
    }
    mark |= {"label": f"says {kind_in_words(each.incoming_kind)}", "mfc": theme.sheet if hollow else colour}
    mark["ms"] = 13 if letter else 5 if each.incoming_kind == "omitted" else 8.5
    if _refused(each):
        letter = None
        mark |= {"marker": "X", "ms": 11, "mfc": colour, "mec": theme.sheet, "mew": 1, "label": "refused"}
    for x in {left, right}:
        axes.plot([x], [y], **mark)
        if letter:
            look: Any = {"ha": "center", "va": "center_baseline", "fontsize": 8, "zorder": 5}
            axes.text(x, y, letter, color=theme.sheet, **look)
    state = f"identity {each.next_identity}" if each.next_identity else None
    axes.plot(
        [left, until], [y, y], _LINES[each.next_identity], color=theme.soft, lw=2, zorder=1, label=state
    )
    if each.count > 1:
        axes.plot([left, right], [y, y], color=colour, lw=7, alpha=0.35, zorder=2)
        axes.text(
            (left + right) / 2, y + 0.2, f"×{each.count:,}", ha="center", fontsize=8.5, color=theme.soft
        )


def _beside(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    look: Any = {"va": "center", "color": colour, "annotation_clip": False}
    axes.annotate(text, (x, y), (9, 0), textcoords="offset points", **look)
