"""Events of a log to the responses in it: which belong together, and where one ends and another begins.

Two responses in one log are two streams, but a response whose chunk ids change in mid-stream stays one. So an
id alone separates nothing: another id begins another response where a chunk says that one begins (its role),
or where the response before has ended.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from fragmentlab.corpus.importing.documents import Body, Document, Refusal
from fragmentlab.corpus.importing.values import END_MARKER, as_body, json_text
from fragmentlab.wire.events import event
from fragmentlab.wire.fragments import choices_of, fragments_of

BLANK_LINES_LOST = "blank lines between events were lost, put back"
SPLIT = "responses of one log told apart"
REVERSED = "events stood in reverse order"
_MAX_AT_ONCE = 64
_BLOCK = re.compile(r"(?:[^\r\n]++(?:\r\n|\n|\r|\Z))*+(?:\r\n|\n|\r)*+")


@dataclass(repr=False)
class Unit:
    """One event of a log: its data, and what it says of the response that it belongs to."""

    data: str
    name: str | None = None
    raw: str | None = None
    """The lines of the event as they were, where it was one of a text."""
    run: int = 0
    """The list that it stood in."""
    chunk: Any = None
    id: str | None = None
    starts: bool = False
    """Whether it gives the role, as the first chunk of a response does."""
    finishes: bool = False
    carries: bool = False
    """Whether it holds content or fragments."""

    @property
    def is_done(self) -> bool:
        """Whether it is the end marker."""
        return self.data.strip(" \t") == END_MARKER

    @property
    def is_usage(self) -> bool:
        """Whether it only reports what a response took, as some servers do after its end."""
        return (
            isinstance(self.chunk, dict) and bool(self.chunk.get("usage")) and not self.chunk.get("choices")
        )

    def __post_init__(self) -> None:
        if self.chunk is None and self.data[:1] == "{":
            try:
                self.chunk = json.loads(self.data)
            except (ValueError, RecursionError):
                return
        if isinstance(self.chunk, dict):
            told = self.chunk.get("id")
            self.id = told if isinstance(told, str) and told else None
        for choice in choices_of(self.chunk):
            delta = choice.get("delta")
            delta = delta if isinstance(delta, dict) else {}
            self.starts |= bool(delta.get("role"))
            self.finishes |= bool(choice.get("finish_reason"))
            self.carries |= bool(delta.get("content"))
        self.carries |= next(fragments_of(self.chunk), None) is not None


def unit_of(value: Any, name: str | None = None, run: int = 0) -> Unit:
    """Return the event of a parsed chunk, or of a text with its data."""
    if type(value) is str:
        return Unit(" ".join(value.split("\n")), name, run=run)
    return Unit(json_text(value), name, run=run, chunk=value)


@dataclass(repr=False)
class _Response:
    units: list[Unit] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    roles: int = 0
    finishes: int = 0
    is_finished: bool = False
    is_done: bool = False
    overlaps: bool = False
    """Whether it began again before it had finished."""
    until: int = 0
    """The number of the last event with one of its ids."""

    def take(self, unit: Unit) -> None:
        self.units.append(unit)
        self.overlaps |= unit.starts and self.roles > 0 and not self.is_finished
        self.finishes += unit.finishes
        self.roles += unit.starts
        self.is_finished |= unit.finishes
        self.is_done |= unit.is_done
        if unit.id is not None:
            self.ids.add(unit.id)

    @property
    def has_ended(self) -> bool:
        return self.is_finished or self.is_done

    @property
    def is_mixed(self) -> bool:
        """Whether it began and finished more than once, all within each other: it is more than one."""
        if not self.overlaps or self.roles != self.finishes:
            return False
        indices = {str(choice.get("index")) for unit in self.units for choice in choices_of(unit.chunk)}
        return indices <= {"0", "None"}


def responses(units: Sequence[Unit]) -> list[_Response]:
    """Return the responses, each with its events, in the order in which they began."""
    runs = Counter(unit.run for unit in units)
    ids = Counter(unit.id for unit in units if unit.id is not None)
    if len(ids) * 2 > ids.total():
        # Each chunk has an id of its own, which says nothing of the response.
        for unit in units:
            unit.id = None
    opened: list[_Response] = []
    by_id: dict[str, _Response] = {}
    undone: dict[int, _Response] = {}
    before: Unit | None = None
    last = {unit.id: number for number, unit in enumerate(units)}
    for number, unit in enumerate(units):
        # The end marker belongs to a response that has finished and says no more, the one silent for longest.
        ended = islice(undone.values() if unit.is_done else (), _MAX_AT_ONCE)
        current = next((known for known in ended if known.until < number), None)
        current = current or _home(unit, before, runs, opened, by_id)
        current.take(unit)
        current.until = max(current.until, number if unit.id is None else last[unit.id])
        undone.pop(id(current), None)
        if current.is_finished and not current.is_done:
            undone[id(current)] = current
        if unit.id is not None:
            by_id[unit.id] = current
        before = unit
    return opened


def _home(
    unit: Unit,
    before: Unit | None,
    runs: Counter[int],
    opened: list[_Response],
    by_id: dict[str, _Response],
) -> _Response:
    """Return the response that an event belongs to, a new one where it begins one."""
    if before is not None and opened:
        if unit.is_done:
            return opened[-1]
        known = by_id.get(unit.id or "", opened[-1])
        parted = before.run != unit.run and max(runs[before.run], runs[unit.run]) > 1
        if not _begins(unit, known, is_new=unit.id is not None and unit.id not in by_id, parted=parted):
            return known
    opened.append(_Response())
    return opened[-1]


def _begins(unit: Unit, known: _Response, is_new: bool, parted: bool) -> bool:
    """Return whether an event is the first of another response than the one known."""
    has_other_id = is_new and bool(known.ids)
    if known.has_ended:
        return (
            (unit.starts and known.is_finished)
            or (unit.carries and parted)
            or (has_other_id and not unit.is_usage)
        )
    if unit.starts and known.roles == 1:
        return has_other_id or parted
    return has_other_id and parted


def bodies(
    document: Document, units: Sequence[Unit], *notes: str, fidelity: str = "chunks"
) -> Iterable[Body | Refusal]:
    """Yield the body of each response in the events of a document; refuse what cannot be told apart."""
    if _is_reversed(units):
        units, notes = units[::-1], (*notes, REVERSED)
    found = responses(units)
    if len(found) > 1:
        notes = (*notes, SPLIT)
    if SPLIT in notes or REVERSED in notes:
        # The last event of a text may lack the blank line that ends it.
        units = [replace(unit, raw=unit.raw and unit.raw.rstrip("\r\n") + "\n\n") for unit in units]
        found = responses(units)
    for number, response in enumerate(found):
        place = f"{document.place}({number + 1})" if len(found) > 1 else document.place
        if response.is_mixed:
            yield Refusal("mixed")
        else:
            yield replace(document.body(written(response.units), *notes, fidelity=fidelity), place=place)


def _is_reversed(units: Sequence[Unit]) -> bool:
    """Return whether the newest event stands first, as some log viewers export them."""
    return (
        len(units) > 2
        and (units[0].is_done or units[0].finishes)
        and units[-1].starts
        and not any(unit.starts for unit in units[:-1])
    )


def written(units: Sequence[Unit]) -> bytes:
    """Write events as they were; chunk objects without any other event as JSON Lines."""
    if all(unit.raw is not None for unit in units):
        return as_body("".join(unit.raw or "" for unit in units))
    if any(unit.is_done or unit.name for unit in units) or units[0].data[:1] != "{":
        return b"".join(event(as_body(unit.data), unit.name) for unit in units)
    return b"".join(as_body(unit.data) + b"\n" for unit in units)


def blocks(text: str) -> list[Unit]:
    """Return the events of an event stream, each with its lines as they were."""
    return [_block(match[0]) for match in _BLOCK.finditer(text) if match[0]]


def _block(raw: str) -> Unit:
    data = [line[5:].removeprefix(" ") for line in raw.splitlines() if line.startswith("data:")]
    return Unit("\n".join(data), raw=raw)
