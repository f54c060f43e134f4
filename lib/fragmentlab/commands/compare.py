"""``fragmentlab compare BASE TARGET``: judge a target run against a base run (exit 1 on regression)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.commands.runs import add_runs
from fragmentlab.files import write_whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument("base", metavar="BASE", help="a revision label, a run's id, or its folder's path")
    parser.add_argument("target", metavar="TARGET", help="the run that is judged, named likewise")
    add_runs(parser)
    parser.add_argument(
        "--unrecorded", action="store_true", help="also take a folder that is in no ledger, by its path"
    )
    parser.add_argument("--batches", metavar="a,b", default="", help="judge only these batches")
    parser.add_argument(
        "--expectations",
        metavar="F",
        help="declared flips (default: expectations.json here, if there is one)",
    )
    parser.add_argument(
        "--propose", metavar="F", help="write what fails as declarations for a reviewer to fill in"
    )
    parser.add_argument("--junit", metavar="F", help="write JUnit XML")
    parser.add_argument("--markdown", metavar="F", help="write Markdown, for a CI summary")


def run(args: argparse.Namespace) -> int:
    """Print the verdict, write the files asked for, and exit 1 on regression."""
    from fragmentlab.qualification.comparing.comparison import compare_runs
    from fragmentlab.qualification.comparing.expectations import (
        DEFAULT_FILE,
        Declared,
        load_expectations,
        proposal,
    )
    from fragmentlab.qualification.comparing.verdict import verdict_of
    from fragmentlab.qualification.comparing.verdict_texts import (
        verdict_junit,
        verdict_markdown,
        verdict_text,
    )
    from fragmentlab.qualification.runs.run_files import find_run, runs_folders

    expectations = args.expectations
    if not expectations and Path(DEFAULT_FILE).is_file():
        expectations = DEFAULT_FILE
        print(f"compare: declared flips are taken from {DEFAULT_FILE}", file=sys.stderr)
    declared = load_expectations(Path(expectations)) if expectations else Declared()
    folders = runs_folders(args.runs)
    base, target = (find_run(name, folders, unrecorded=args.unrecorded) for name in (args.base, args.target))
    comparison = compare_runs(base, target, [name for name in args.batches.split(",") if name])
    verdict = verdict_of(comparison, declared)
    print(verdict_text(verdict))
    for option, text in ((args.junit, verdict_junit), (args.markdown, verdict_markdown)):
        if option:
            write_whole(option, text(verdict))
    if args.propose:
        write_whole(args.propose, proposal(verdict.undeclared))
    return 1 if verdict.is_regression else 0
