"""The committed history: the shipped rule sets over every committed batch and vector file.

``fragmentlab maintain history`` records it, ``--check`` makes it again elsewhere and compares row for row.
Recorded runs are never rewritten: to make the history again, remove ``data/runs`` but for
``expectations.json`` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.ledger import LEDGER
from fragmentlab.qualification.runs.record import record_run
from fragmentlab.qualification.runs.run_files import Run, open_run
from fragmentlab.qualification.runs.sources import open_sources

HISTORY = (
    ("keep-established", "keep-established"),
    ("reject-null-reconstruction", "reject-null"),
    ("empty-continuation-candidate", "empty-continuation"),
)
"""(revision label, rule set) of each committed run, in order."""
_IDENTITY = ["batch", "stream", "body_sha256", "conditions_sha256", "expected_outcome", "expected_category"]


def committed_sources() -> list[Path]:
    """Every committed batch and vector file."""
    return [*sorted(data_folder("batches").iterdir()), *sorted(data_folder("vectors").glob("*.json"))]


def record_history(runs: Path) -> list[Run]:
    """Record the history into a folder without runs. Raises InputError where there are some."""
    if (runs / LEDGER).exists():
        raise InputError(
            "there are runs already, and those are never rewritten; remove them or choose another --out"
        )
    sources = committed_sources()
    return [open_run(record_run(sources, label, Choice(rules=rules), runs)) for label, rules in HISTORY]


def differences(committed: Sequence[Run], again: Sequence[Run]) -> list[str]:
    """Return a sentence for each run whose rows differ.

    Compared are the streams that both runs have with the same bytes, conditions and expectation, and in full
    the sources whose hash is the same.
    """
    found = []
    for runs in zip(committed, again, strict=True):
        sources = [{(source["name"], source["sha256"]) for source in run.header["sources"]} for run in runs]
        whole = {name for name, _ in sources[0] & sources[1]}
        identities = [
            {tuple(row.values()) for row in run.results.select(_IDENTITY).to_pylist()} for run in runs
        ]
        shared = {key[:2] for key in identities[0] & identities[1]}
        for part in ("results", "diagnostics"):
            before, after = (
                [
                    row
                    for row in getattr(run, part).to_pylist()
                    if row["batch"] in whole or (row["batch"], row["stream"]) in shared
                ]
                for run in runs
            )
            if not before or before != after:
                found.append(f"{runs[0].revision}: {part} differ")
    return found


def stale_sources(committed: Run) -> list[str]:
    """Return the names of sources that changed, came or went since a run was recorded."""
    now = {source.facts.name: source.facts.sha256 for source in open_sources(committed_sources())}
    then = {source["name"]: source["sha256"] for source in committed.header["sources"]}
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
