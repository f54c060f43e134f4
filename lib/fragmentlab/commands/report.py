"""``fragmentlab report``: run the notebooks and render them; prints the path of the index page."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", default="reports", metavar="DIR", help="folder of the report")
    only = "a notebook's number or name; may be repeated"
    add("--only", action="append", default=[], metavar="NN", help=only)
    given = "set a declared parameter"
    add("-p", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help=given)
    add("--notebooks", metavar="DIR", help="folder of notebooks (default: the kit's)")


def run(args: argparse.Namespace) -> int:
    import jinja2  # noqa: F401 - a missing kit is noticed before anything is written

    from fragmentlab.files import scratch_folder
    from fragmentlab.reports.frame.build import build_report, plan_report

    keys = [key for only in args.only for key in only.split(",")]
    plan = plan_report(args.notebooks, keys, args.parameters)
    out = _writable_folder(args.out)
    with scratch_folder() as scratch:
        failed = build_report(plan, out, scratch, _say)
    print(out / "index.html")
    return 1 if failed else 0


def _say(line: str) -> None:
    print(f"report: {for_terminal(line)}", file=sys.stderr, flush=True)


def _writable_folder(option: str) -> Path:
    from fragmentlab.files import locked, mention_abandoned, reason

    folder = Path(option)
    if not option:
        raise InputError("--out needs a folder; give its name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            mention_abandoned(folder)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"0")
    except (OSError, ValueError) as error:
        why = f"cannot write to the output folder {option}: {reason(error)}"
        raise InputError(f"{why}; choose another with --out") from None
    return folder
