"""A response's fragments in order of arrival, as a table and as lanes by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.fragment_runs import Run, lane_name, runs_of, says
from fragmentlab.reports.show.lanes import draw_lanes
from fragmentlab.reports.show.tables import Badge, Cell, Table

if TYPE_CHECKING:
    from fragmentlab.assembler import Fault, FragmentRow

SHOWN_ONE_BY_ONE = 30
"""Longer responses are drawn with runs of like fragments joined."""
LANES_DRAWN = 12
RUNS_DRAWN = 60
"""Changes drawn over all lanes."""


def timeline_table(rows: Sequence[FragmentRow], omitted: int) -> Table:
    """One line a fragment, or a run of like fragments in a long response; sizes are UTF-8 bytes."""
    runs = list(runs_of(rows, len(rows) <= SHOWN_ONE_BY_ONE))
    note = "Letters stand for IDs; the IDs themselves, names and arguments are not shown."
    if omitted:
        note = f"The last {omitted:,} fragments are beyond what a diagnosis keeps. {note}"
    return Table(
        "Fragments in order of arrival",
        "fragment,event,index,says,identity,known ID,decision,name bytes,argument bytes".split(","),
        [_line(run) for run in runs],
        note=note,
    )


def timeline_figure(rows: Sequence[FragmentRow], faults: Sequence[Fault]) -> Figure:
    """Lanes by index: what each fragment says (marker), what is known (line) and where the response is
    refused."""
    lanes = _lanes(rows)
    most = _runs_of_each(lanes)
    drawn = {index: runs[:most] for index, runs in list(lanes.items())[:LANES_DRAWN]}
    elsewhere = [fault for fault in faults if fault.fragment is None]
    return Figure(
        lambda axes, theme: draw_lanes(axes, theme, drawn, elsewhere),
        alt=_alt(rows, lanes, elsewhere),
        caption=_caption(rows, lanes),
        size=(9.0, 1.0 + 0.52 * max(1, len(drawn))),
    )


def _line(run: Run) -> list[Cell]:
    first = run.first
    kind = f"ID {first.incoming_alias}" if first.incoming_alias else says(first.incoming_kind)
    decision: Cell = Badge(first.category or "refused", "bad") if run.refused else first.decision
    return [
        run.span("fragment"),
        run.span("event"),
        "none" if first.index is None else str(first.index),
        kind,
        _change(first.previous_identity, run.last.next_identity),
        run.last.id_alias,
        decision,
        sum(row.name_bytes for row in run.rows),
        sum(row.arguments_bytes for row in run.rows),
    ]


def _change(before: str | None, after: str | None) -> str | None:
    return before if before == after else f"{before} → {after}"


def _lanes(rows: Sequence[FragmentRow]) -> dict[int | None, list[Run]]:
    by_index: dict[int | None, list[FragmentRow]] = {}
    for row in rows:
        by_index.setdefault(row.index, []).append(row)
    one_by_one = len(rows) <= SHOWN_ONE_BY_ONE
    order = sorted(by_index, key=lambda index: (index is None, index))
    return {index: list(runs_of(by_index[index], one_by_one)) for index in order}


def _runs_of_each(lanes: dict[int | None, list[Run]]) -> int:
    return max(4, RUNS_DRAWN // max(1, min(len(lanes), LANES_DRAWN)))


def _caption(rows: Sequence[FragmentRow], lanes: dict[int | None, list[Run]]) -> str:
    parts = ["Fragments by index, in order of arrival."]
    if len(rows) > SHOWN_ONE_BY_ONE:
        parts.append("Runs of like fragments are joined; distances are not to scale.")
    if len(lanes) > LANES_DRAWN:
        parts.append(f"{len(lanes) - LANES_DRAWN} more indices are not drawn.")
    most = _runs_of_each(lanes)
    if any(len(runs) > most for runs in lanes.values()):
        parts.append(f"Of each index the first {most} changes are drawn.")
    return " ".join(parts)


def _alt(rows: Sequence[FragmentRow], lanes: dict[int | None, list[Run]], elsewhere: Sequence[Fault]) -> str:
    if not rows:
        return "No fragment arrived. " + _endings(elsewhere)
    plural = "index" if len(lanes) == 1 else "indices"
    parts = [f"Timeline of {len(rows):,} fragments over {len(lanes)} {plural}."]
    for index, runs in list(lanes.items())[:6]:
        told = [_told(run) for run in runs_of(row for run in runs for row in run.rows)]
        more = f"; {len(told) - 6} more changes" if len(told) > 6 else ""
        parts.append(f"{lane_name(index).capitalize()}: {'; '.join(told[:6])}{more}.")
    if len(lanes) > 6:
        parts.append(f"{len(lanes) - 6} more indices.")
    return " ".join([*parts, _endings(elsewhere)]).strip()


def _told(run: Run) -> str:
    row, several = run.first, len(run.rows) > 1
    word = "fragments" if several else "fragment"
    verb = "say" if several else "says"
    said = f"ID {row.incoming_alias}" if row.incoming_alias else says(row.incoming_kind)
    if run.refused:
        return f"{word} {run.span('fragment')} {verb} {said}, refused as {row.category}"
    return f"{word} {run.span('fragment')} {verb} {said}, identity {run.last.next_identity}"


def _endings(elsewhere: Sequence[Fault]) -> str:
    categories = list(dict.fromkeys(fault.category for fault in elsewhere))
    return f"Refused outside the fragments: {', '.join(categories[:4])}." if categories else ""
