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
    _add_runs(listing, "runs, then the kit's own")
    verify = actions.add_parser("verify", help="prove that no run was altered, dropped or added")
    _add_runs(verify, "each of runs and data/runs that is here")
    verify.add_argument("--head", metavar="HASH", help="the hash that the ledger must end with")
    take = actions.add_parser("import", help="take outcomes that a gateway logged, as evidence `imported`")
    take.add_argument("log", metavar="LOG", help="JSON Lines: stream or task, time, outcome, category")
    take.add_argument("--revision", metavar="LABEL", required=True, help="which revision logged them")
    take.add_argument("--runs", metavar="DIR", default="runs", help="folder of runs (default: runs)")


def _add_runs(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--runs",
        metavar="DIR",
        action="append",
        help=f"folder of runs; may be repeated (default: {default})",
    )


def run(args: argparse.Namespace) -> int:
    """Run one action: 1 where verification found a problem."""
    if args.action == "import":
        return _import(args)
    from fragmentlab.qualification.runs.run_files import runs_folders

    if args.action == "list":
        return _list(runs_folders(args.runs), bool(args.runs))
    folders = [Path(folder) for folder in args.runs or ("runs", "data/runs")]
    if not args.runs:
        folders = [folder for folder in folders if folder.is_dir()]
    if not folders:
        raise InputError(
            "no folder of runs here; record one with `fragmentlab qualify`, or name it with --runs"
        )
    return _verify(folders, args.head)


def _list(folders: list[Path], all_of_them: bool) -> int:
    from fragmentlab.qualification.runs.ledger import LEDGER
    from fragmentlab.qualification.runs.run_files import list_runs

    for folder in folders:
        if not all_of_them and not (folder / LEDGER).exists():
            continue
        for recorded in list_runs(folder):
            counts = recorded.header["counts"]
            tally = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
            print(for_terminal(f"{recorded.id}  {recorded.header['started']}  {recorded.title}: {tally}"))
    return 0


def _verify(folders: list[Path], head: str | None) -> int:
    from fragmentlab.qualification.runs.verify import verify_runs

    if head is not None and len(folders) > 1:
        raise InputError("--head belongs to one ledger; name its folder with --runs")
    failed = False
    for folder in folders:
        found = verify_runs(folder, head)
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
