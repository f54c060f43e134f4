"""``fragmentlab runs list | verify | import``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of docs/design.md, section 8."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list the recorded runs")
    add_runs(listing)
    listing.set_defaults(act=_list)
    verify = actions.add_parser("verify", help="prove that no run was altered, dropped or added")
    add_runs(verify, "each of runs and data/runs that is here")
    verify.add_argument("--head", metavar="HASH", help="the hash that the ledger must end with")
    verify.set_defaults(act=_verify)
    take = actions.add_parser("import", help="take outcomes that a gateway logged, as evidence `imported`")
    take.add_argument("log", metavar="LOG", help="JSON Lines: stream or task, time, outcome, category")
    take.add_argument("--revision", metavar="LABEL", required=True, help="which revision logged them")
    take.add_argument("--runs", metavar="DIR", default="runs", help="folder of runs (default: runs)")
    take.set_defaults(act=_import)


def add_runs(parser: argparse.ArgumentParser, default: str = "runs, then the kit's own") -> None:
    """Declare the folders of runs that a command reads."""
    told = f"folder of runs; may be repeated (default: {default})"
    parser.add_argument("--runs", metavar="DIR", action="append", help=told)


def run(args: argparse.Namespace) -> int:
    """Run one action: 1 where verification found a problem."""
    status: int = args.act(args)
    return status


def _list(args: argparse.Namespace) -> int:
    from fragmentlab.qualification.runs.run_files import known_runs

    for recorded in known_runs(args.runs):
        counts = recorded.header["counts"]
        tally = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
        print(for_terminal(f"{recorded.id}  {recorded.header['started']}  {recorded.title}: {tally}"))
    return 0


def _verify(args: argparse.Namespace) -> int:
    from fragmentlab.qualification.runs.verify import verify_runs

    folders = [Path(name) for name in args.runs or ("runs", "data/runs") if args.runs or Path(name).is_dir()]
    if not folders:
        raise InputError(
            "no folder of runs here; record one with `fragmentlab qualify`, or name it with --runs"
        )
    if args.head is not None and len(folders) > 1:
        raise InputError("--head belongs to one ledger; name its folder with --runs")
    failed = False
    for folder in folders:
        found = verify_runs(folder, args.head)
        shown = for_terminal(str(folder))
        for problem in found.problems:
            print(f"{shown}: {for_terminal(problem)}")
        for note in found.notes:
            print(f"{shown}: note: {for_terminal(note)}", file=sys.stderr)
        if not found.problems:
            print(f"{shown}: {len(found.entries)} runs, all as recorded; head {found.head}")
        failed = failed or bool(found.problems)
    return 1 if failed else 0


def _import(args: argparse.Namespace) -> int:
    from fragmentlab.qualification.runs.imported import import_log

    print(import_log(Path(args.log), args.revision, Path(args.runs), say=_say))
    return 0


def _say(line: str) -> None:
    print(f"runs import: {for_terminal(line)}", file=sys.stderr, flush=True)
