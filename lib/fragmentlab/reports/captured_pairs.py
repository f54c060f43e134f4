"""Recorded pairs of a batch: one request, answered with IDs omitted and with null, put to the same rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fragmentlab.assembler import Result, RuleSet
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import refuse_private
from fragmentlab.errors import InputError
from fragmentlab.reports.show.tables import Badge, Cell, Table

_SIDES = 2


@dataclass(frozen=True)
class Pair:
    """A control without null continuations and its target with them, both assembled."""

    control_id: str
    target_id: str
    control: Result
    target: Result

    @property
    def is_same(self) -> bool:
        """Whether outcome, category and every call's index, name and arguments are the same. IDs are not
        compared: the server made new ones for each request."""
        return _facts(self.control) == _facts(self.target)

    @property
    def nulls(self) -> int:
        return int(self.target.counts["null_continuations"])


def load_pairs(batch: str, rules: RuleSet) -> tuple[list[Pair], str]:
    """Every pair of a batch and the batch's kind of evidence.

    Raises InputError for a batch without pairs and for a pair that is not one stream
    without and one with null.
    """
    opened = refuse_private(open_batch(batch))
    streams: dict[str, list[Stream]] = {}
    for stream in opened.streams():
        if stream.pair is not None:
            streams.setdefault(stream.pair, []).append(stream)
    if not streams:
        raise InputError("the batch of pairs holds none; its streams need the field pair")
    return [
        _pair(sides, rules, number) for number, (_, sides) in enumerate(sorted(streams.items()), 1)
    ], opened.evidence


def pairs_table(pairs: Sequence[Pair], evidence: str) -> Table:
    """One line a pair."""
    rows: list[list[Cell]] = [
        [
            number,
            pair.control_id,
            pair.target_id,
            pair.nulls,
            _outcome(pair.control),
            Badge(_outcome(pair.target), "ok" if pair.is_same else "bad"),
            Badge("same" if pair.is_same else "different", "ok" if pair.is_same else "bad"),
        ]
        for number, pair in enumerate(pairs, 1)
    ]
    return Table(
        f"Recorded pairs: one request and seed, answered both ways (evidence: {evidence})",
        [
            "pair",
            "control",
            "target",
            "nulls",
            "control ended",
            "target ended",
            "calls",
        ],
        rows,
        note="Nulls: fragments with a null ID after the call's ID was known. Calls: index, tool and "
        "arguments, not IDs: the server made new ones for each request.",
    )


def _pair(sides: Sequence[Stream], rules: RuleSet, number: int) -> Pair:
    results = sorted(
        ((side.assemble(rules), side.shown_id) for side in sides),
        key=lambda item: item[0].counts["null_continuations"],
    )
    if len(results) != _SIDES or results[0][0].counts["null_continuations"]:
        raise InputError(f"pair {number} of the batch is not one stream without and one with null")
    (control, control_id), (target, target_id) = results
    if not target.counts["null_continuations"]:
        raise InputError(f"pair {number} of the batch has no null after an ID on either side")
    return Pair(control_id, target_id, control, target)


def _facts(result: Result) -> object:
    return result.outcome, result.category, [(call.index, call.name, call.arguments) for call in result.calls]


def _outcome(result: Result) -> str:
    return result.category or result.outcome
