"""Recorded pairs of a batch: one request, answered with IDs omitted and with null, under the same rules."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fragmentlab.assembler import Result, RuleSet
from fragmentlab.corpus.batches import open_batch
from fragmentlab.disclosure import refuse_private
from fragmentlab.errors import InputError
from fragmentlab.reports.frames import AssembledStream, assemble_all
from fragmentlab.reports.show.tables import Table, badges


def pairs_df(batch: str, rules: RuleSet) -> pd.DataFrame:
    """Return one row per pair of a control without null continuations and its target with them.

    Columns: ``pair``, the ids ``control`` and ``target``, the batch's ``evidence``, the target's
    ``null_continuations``, how both ended, and ``is_same``: whether outcome, category and each call's index,
    name and arguments are the same. IDs are not compared: the server made new ones for each request. Raises
    InputError for a batch without pairs and for a pair that is not one stream without and one with null.
    """
    opened = refuse_private(open_batch(batch))
    sides: dict[int, list[AssembledStream]] = {}
    for found in assemble_all([opened], rules):
        if found.ids["pair"] is not None:
            sides.setdefault(found.ids["pair"], []).append(found)
    if not sides:
        raise InputError("the batch of pairs holds none; its streams need the field pair")
    rows = [_pair_row(number, found) for number, found in sides.items()]
    return pd.DataFrame(rows).assign(evidence=opened.evidence)


def pairs_table(pairs: pd.DataFrame) -> Table:
    """One row per pair."""
    told = pairs.assign(
        ended=badges(pairs.is_same, pairs.target_ended, pairs.target_ended),
        calls=badges(pairs.is_same, "same", "different"),
    )
    return Table(
        f"Recorded pairs: one request and seed, answered both ways (evidence: {pairs.evidence[0]})",
        told,
        "pair, control, target, null_continuations as nulls, control_ended as control ended, "
        "ended as target ended, calls",
        "Nulls: fragments with a null ID after the call's ID was known. Calls: index, tool and arguments, "
        "not IDs: the server made new ones for each request.",
    )


def _pair_row(number: int, sides: list[AssembledStream]) -> dict[str, Any]:
    both = sorted(sides, key=lambda side: side.first.counts["null_continuations"])
    nulls = [side.first.counts["null_continuations"] for side in both]
    if len(both) != 2 or nulls[0]:
        raise InputError(f"pair {number} of the batch is not one stream without and one with null")
    if not nulls[1]:
        raise InputError(f"pair {number} of the batch has no null after an ID on either side")
    control, target = (side.first for side in both)
    return {
        "pair": number,
        "control": both[0].ids["stream"],
        "target": both[1].ids["stream"],
        "null_continuations": nulls[1],
        "control_ended": control.category or control.outcome,
        "target_ended": target.category or target.outcome,
        "is_same": _facts(control) == _facts(target),
    }


def _facts(result: Result) -> object:
    return result.outcome, result.category, [(call.index, call.name, call.arguments) for call in result.calls]
