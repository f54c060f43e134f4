"""The committed history, made by one command: ``python -m fragmentlab.qualification.runs.history``.

It records the shipped rule sets over every committed batch and vector file. ``--check`` makes it anew
elsewhere and compares row for row, streams that came or changed since aside. To make it anew, remove
``data/runs`` but for ``expectations.json`` first: recorded runs are never rewritten.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.qualification.runs.ledger import LEDGER
from fragmentlab.qualification.runs.record import record_run
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import Run, list_runs, open_run
from fragmentlab.subjects.choose import Choice

HISTORY = (
    ("keep-established", "keep-established"),
    ("reject-null-reconstruction", "reject-null"),
    ("empty-continuation-candidate", "empty-continuation"),
)
"""(revision label, rule set) of each committed run, in order."""
_PARTS = ("results", "diagnostics")


def committed_folder() -> Path:
    """The checkout's ``data/runs``."""
    return data_folder("runs")


def committed_sources() -> list[Path]:
    """Every committed batch and vector file."""
    data = data_folder()
    return [*sorted((data / "batches").iterdir()), *sorted((data / "vectors").glob("*.json"))]


def record_history(runs: Path) -> list[Run]:
    """Record the history into a folder without runs. Raises InputError where there are some."""
    if (runs / LEDGER).exists():
        raise InputError(
            "there are runs already, and those are never rewritten; remove them or choose another --out"
        )
    sources = committed_sources()
    return [open_run(record_run(sources, label, Choice(rules=rules), runs)) for label, rules in HISTORY]


def differences(committed: Sequence[Run], again: Sequence[Run]) -> list[str]:
    """What differs, row for row, in streams that both have with the same bytes and expectation; a sentence
    each.

    A source whose hash is the same must give the same rows in the same order.
    """
    found = []
    for before, after in zip(committed, again, strict=True):
        hashes = [_hashes(run) for run in (before, after)]
        same = {name for name, sha256 in hashes[0].items() if hashes[1].get(name) == sha256}
        for part in _PARTS:
            tables = [getattr(run, part).to_pylist() for run in (before, after)]
            keys = [_keys(run) for run in (before, after)]
            kept = [_kept(rows, same, keys[0] & keys[1]) for rows in tables]
            if not kept[0] or kept[0] != kept[1]:
                found.append(f"{before.revision}: {part} differ")
    return found


def stale_sources(committed: Sequence[Run]) -> list[str]:
    """Names of sources that changed, came or went since the history was recorded."""
    from fragmentlab.qualification.runs.sources import open_sources

    now = {source.name: source.sha256 for source in open_sources(committed_sources())}
    then = _hashes(committed[0])
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))


def main(argv: Sequence[str] | None = None) -> int:
    """Make or check the history; 1 where the check finds a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m fragmentlab.qualification.runs.history", description=main.__doc__
    )
    parser.add_argument("--out", metavar="DIR", help="folder of runs (default: the checkout's data/runs)")
    parser.add_argument("--check", action="store_true", help="make it anew elsewhere and compare row for row")
    args = parser.parse_args(argv)
    runs = Path(args.out) if args.out else committed_folder()
    try:
        return _check(runs) if args.check else _make(runs)
    except InputError as error:
        print(f"history: {error}", file=sys.stderr)
        return 2


def _make(runs: Path) -> int:
    record_history(runs)
    print(runs)
    return 0


def _check(runs: Path) -> int:
    committed = list_runs(runs)
    with tempfile.TemporaryDirectory(prefix="fragmentlab-") as folder:
        found = differences(committed, record_history(Path(folder) / "runs"))
    for difference in found:
        print(difference)
    if stale := stale_sources(committed):
        print(f"changed since the history was recorded: {', '.join(stale)}", file=sys.stderr)
    print(f"{len(committed)} runs made anew: {'some rows differ' if found else 'every row is the same'}")
    return 1 if found else 0


def _keys(run: Run) -> set[tuple[object, ...]]:
    columns = (
        "batch", "stream", "body_sha256", "conditions_sha256", "expected_outcome", "expected_category"
    )  # fmt: skip
    return {tuple(row[name] for name in columns) for row in run.results.select(list(columns)).to_pylist()}


def _kept(rows: list[Row], same: set[str], common: set[tuple[object, ...]]) -> list[Row]:
    named = {key[:2] for key in common}
    return [row for row in rows if row["batch"] in same or (row["batch"], row["stream"]) in named]


def _hashes(run: Run) -> dict[str, str]:
    return {source["name"]: source["sha256"] for source in run.header["sources"]}


if __name__ == "__main__":
    sys.exit(main())
