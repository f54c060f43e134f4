"""What notebook 03 may print of rule sets, batches and streams: names of the kit's own, and hashes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fragmentlab.disclosure import shown_name
from fragmentlab.qualification.candidates.bench import BenchRow
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS
from fragmentlab.reports.show.tables import Badge, Cell

EVIDENCE = ("controlled", "captured", "live")
_HASH = re.compile(r"s-[0-9a-f]{16}(-\d+)?")


def shown_rules(name: str) -> str:
    """A rule set's name where the kit ships it; someone's own name may say too much."""
    return name if name in COUNTERFACTUALS else shown_name(name, "your candidate")


def shown_batch(row: BenchRow) -> str:
    """A batch's name where the kit ships it; vector files are taken together."""
    if row.kind == "vectors":
        return "vectors"
    return shown_name(row.batch, "your batch")


def shown_stream(row: BenchRow | None) -> str | None:
    """A stream's id, where it is a hash or one of the kit's own vectors."""
    if row is None:
        return None
    ours = row.kind == "vectors" and shown_name(row.batch.removeprefix("vectors/"), "") != ""
    return row.stream if ours or _HASH.fullmatch(row.stream) else "one of yours"


def action_cell(action: str) -> Cell:
    """A table's action as a mark with its word or category."""
    return Badge(action, "ok") if action in ("keep", "set") else Badge(action.removeprefix("reject:"), "bad")


def smallest(rows: Sequence[BenchRow]) -> BenchRow | None:
    """The stream with the fewest fragments: the easiest to look at."""
    return min(rows, key=lambda row: (row.fragments, row.stream), default=None)
