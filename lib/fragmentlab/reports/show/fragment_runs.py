"""Neighbouring fragments that say the same, and the words for what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragmentlab.assembler import FragmentRow

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


@dataclass(frozen=True)
class Run:
    """Neighbouring fragments that say the same in the same state: ``rows`` is never empty."""

    rows: tuple[FragmentRow, ...]

    @property
    def first(self) -> FragmentRow:
        return self.rows[0]

    @property
    def last(self) -> FragmentRow:
        return self.rows[-1]

    @property
    def refused(self) -> bool:
        return self.first.decision == "reject"

    def span(self, ordinal: str) -> str:
        start, end = getattr(self.first, ordinal), getattr(self.last, ordinal)
        return str(start) if start == end else f"{start} to {end}"


def says(kind: str | None) -> str:
    """What a fragment says of its ID, in words."""
    return _SAYS.get(kind, "another type")


def runs_of(rows: Iterable[FragmentRow], one_by_one: bool = False) -> Iterator[Run]:
    """Join neighbours in the same state that say the same, or keep each alone."""
    joined: list[FragmentRow] = []
    for row in rows:
        if joined and (one_by_one or _likeness(row) != _likeness(joined[-1])):
            yield Run(tuple(joined))
            joined = []
        joined.append(row)
    if joined:
        yield Run(tuple(joined))


def _likeness(row: FragmentRow) -> tuple[object, ...]:
    return (
        row.index,
        row.incoming_kind,
        row.previous_identity,
        row.next_identity,
        row.id_alias,
        row.incoming_alias,
        row.decision,
        row.category,
    )


def lane_name(index: int | None) -> str:
    """The name of an index for people."""
    return "no index" if index is None else f"index {index}"
