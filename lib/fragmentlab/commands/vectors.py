"""``fragmentlab vectors PATH...``: hold the assembler to vector files (exit 0 all agree, 1 otherwise)."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fragmentlab.assembler import RuleSet
from fragmentlab.corpus.rules import find_rules
from fragmentlab.disclosure import for_terminal

if TYPE_CHECKING:
    from fragmentlab.corpus.vector_check import Mismatch
    from fragmentlab.corpus.vectors import VectorFile

_RULES_HELP = (
    "a rule set's name or a rules file; only this one is checked. A vector is held to its expectation under "
    "this rule set (expect_under), otherwise to expect, where a rule set's one compound category stands for "
    "any identity.* (default: expect under keep-established, and every shipped rule set of expect_under)"
)


@dataclass(frozen=True)
class _FileReport:
    path: Path
    vectors: int
    agree: int
    unchecked: int
    disagree: list[Mismatch]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["data/vectors"],
        help="a vector file, or a folder whose *.json are vector files (default: the kit's own)",
    )
    parser.add_argument("--rules", metavar="R", help=_RULES_HELP)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--reveal", action="store_true", help="show raw IDs, names and arguments that differ")


def run(args: argparse.Namespace) -> int:
    """Check every file before the first vector runs, then print each disagreement, each file and a total."""
    from fragmentlab.corpus.vectors import load_vectors, vector_paths

    rules = None if args.rules is None else find_rules(args.rules)
    files = [load_vectors(path) for path in vector_paths(args.paths)]
    reports = []
    for report in _check_files(files, rules):
        reports.append(report)
        if not args.json:
            _print_file(report, args.reveal)
    vectors, agree = sum(r.vectors for r in reports), sum(r.agree for r in reports)
    if args.json:
        disagree = [_as_json(report.path, m, args.reveal) for report in reports for m in report.disagree]
        names = [str(report.path) for report in reports]
        print(json.dumps({"files": names, "vectors": vectors, "agree": agree, "disagree": disagree}))
    else:
        print(f"total: {_tally(vectors, agree)} in {len(reports)} {'file' if len(reports) == 1 else 'files'}")
    return 0 if agree == vectors else 1


def _check_files(files: list[VectorFile], rules: RuleSet | None) -> Iterator[_FileReport]:
    from tqdm import tqdm

    from fragmentlab.corpus.vector_check import check, unchecked

    total = sum(len(file.vectors) for file in files)
    with tqdm(total=total, unit=" vectors", disable=not sys.stderr.isatty(), leave=False) as bar:
        for file in files:
            found, agree = [], 0
            for vector in file.vectors:
                mismatches = check(vector, rules)
                agree += not mismatches
                found += mismatches
                bar.update()
            skipped = 0 if rules else sum(map(unchecked, file.vectors))
            yield _FileReport(file.path, len(file.vectors), agree, skipped, found)


def _print_file(report: _FileReport, reveal: bool) -> None:
    for mismatch in report.disagree:
        print(mismatch.text(reveal))
    line = f"{for_terminal(str(report.path))}: {_tally(report.vectors, report.agree)}"
    if report.unchecked:
        line += f"; not checked: {report.unchecked} under rule sets that are not shipped"
    print(line, flush=True)


def _tally(vectors: int, agree: int) -> str:
    return f"all {vectors} agree" if agree == vectors else f"{agree} of {vectors} agree"


def _as_json(path: Path, mismatch: Mismatch, reveal: bool) -> dict[str, Any]:
    if reveal:
        expected, got = mismatch.expected, mismatch.got
    else:
        expected, got = mismatch.shown()
    return {
        "file": str(path),
        "id": mismatch.vector,
        "rules": mismatch.rules,
        "fact": mismatch.fact,
        "expected": expected,
        "got": got,
        "replays": list(mismatch.replays),
    }
