"""A response's fragments in order of arrival, as a table and as lanes by index.

Both are made from ``fragments_df``. Neighbours that say the same in the same state are joined to a stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.lanes import draw_lanes, lane_name, says_of
from fragmentlab.reports.show.tables import Badge, Table

if TYPE_CHECKING:
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
_COLUMNS = "fragment,event,index,says,identity,known ID,decision,name bytes,argument bytes".split(",")


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
    rows = [
        [
            _span(each.fragment, each.last_fragment),
            _span(each.event, each.last_event),
            "none" if each.index is None else str(each.index),
            says_of(each),
            _change(each.previous_identity, each.next_identity),
            each.id_alias,
            Badge(each.category or "refused", "bad") if each.decision == "reject" else each.decision,
            each.name_bytes,
            each.arguments_bytes,
        ]
        for each in stretches(fragments, len(fragments) <= SHOWN_ONE_BY_ONE).itertuples(index=False)
    ]
    return Table(
        "Fragments in order of arrival", pd.DataFrame(rows, columns=_COLUMNS, dtype=object), note=note
    )


def timeline_figure(fragments: pd.DataFrame, faults: Sequence[Fault]) -> Figure:
    """Lanes by index: what each fragment says (marker), what is known (line), where it is refused."""
    one_by_one = len(fragments) <= SHOWN_ONE_BY_ONE
    by_index = {
        None if pd.isna(index) else int(index): rows
        for index, rows in fragments.groupby("index", dropna=False)
    }
    most = max(4, STRETCHES_DRAWN // max(1, min(len(by_index), LANES_DRAWN)))
    joined = {index: stretches(rows, one_by_one) for index, rows in by_index.items()}
    drawn = {index: rows.head(most) for index, rows in list(joined.items())[:LANES_DRAWN]}
    elsewhere = list(dict.fromkeys(fault.category for fault in faults if fault.fragment is None))
    caption = ["Fragments by index, in order of arrival."]
    if not one_by_one:
        caption.append("Stretches of like fragments are joined; distances are not to scale.")
    if len(joined) > LANES_DRAWN:
        caption.append(f"{len(joined) - LANES_DRAWN} more indices are not drawn.")
    if any(len(rows) > most for rows in joined.values()):
        caption.append(f"Of each index the first {most} changes are drawn.")
    return Figure(
        lambda axes, theme: draw_lanes(axes, theme, drawn, elsewhere),
        alt=_alt(len(fragments), by_index, elsewhere),
        caption=" ".join(caption),
        size=(9.0, 1.0 + 0.52 * max(1, len(drawn))),
    )


def _alt(count: int, by_index: dict[int | None, pd.DataFrame], elsewhere: Sequence[str]) -> str:
    endings = f"Refused outside the fragments: {', '.join(elsewhere[:4])}." if elsewhere else ""
    if not count:
        return f"No fragment arrived. {endings}".strip()
    plural = "index" if len(by_index) == 1 else "indices"
    parts = [f"Timeline of {count:,} fragments over {len(by_index)} {plural}."]
    for index, rows in list(by_index.items())[:_TOLD]:
        told = [_told(each) for each in stretches(rows).itertuples(index=False)]
        more = f"; {len(told) - _TOLD} more changes" if len(told) > _TOLD else ""
        parts.append(f"{lane_name(index).capitalize()}: {'; '.join(told[:_TOLD])}{more}.")
    if len(by_index) > _TOLD:
        parts.append(f"{len(by_index) - _TOLD} more indices.")
    return " ".join([*parts, endings]).strip()


def _told(each: Any) -> str:
    who = "fragments" if each.count > 1 else "fragment"
    verb = "say" if each.count > 1 else "says"
    end = f"refused as {each.category}" if each.decision == "reject" else f"identity {each.next_identity}"
    return f"{who} {_span(each.fragment, each.last_fragment)} {verb} {says_of(each)}, {end}"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _change(before: str | None, after: str | None) -> str | None:
    return before if before == after else f"{before} → {after}"
