"""``fragmentlab maintain``: what only those who change the kit itself need (CONTRIBUTING.md)."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    schemas = actions.add_parser("schemas", help="write the JSON Schema of every format")
    schemas.add_argument("--out", metavar="DIR", help="folder (default: the checkout's data/schemas)")
    schemas.set_defaults(act=_schemas)
    history = actions.add_parser("history", help="record the committed runs, or check that they come again")
    history.add_argument("--out", metavar="DIR", help="folder of runs (default: the checkout's data/runs)")
    history.add_argument("--check", action="store_true", help="make them elsewhere and compare every row")
    history.set_defaults(act=_history)
    found = actions.add_parser("counterexamples", help="write the shortest counterexamples as vectors")
    found.add_argument("--rules", metavar="R", help="a rules file or name (default: every counterfactual)")
    found.add_argument("--out", metavar="FILE", help="default: the checkout's counterexample.json")
    found.set_defaults(act=_counterexamples)
    words = actions.add_parser("explanations", help="write docs/explanations.md from the categories' file")
    words.add_argument("--out", metavar="FILE", help="default: the checkout's docs/explanations.md")
    words.set_defaults(act=_explanations)
    notebooks = actions.add_parser("notebooks", help="run notebooks and write them as they are committed")
    notebooks.add_argument("paths", nargs="*", metavar="NOTEBOOK", help="default: all of the checkout's")
    notebooks.set_defaults(act=_notebooks)


def run(args: argparse.Namespace) -> int:
    """Run one action."""
    status: int = args.act(args)
    return status


def _schemas(args: argparse.Namespace) -> int:
    from fragmentlab.files import data_folder
    from fragmentlab.formats import SCHEMAS, json_schema

    folder = Path(args.out) if args.out else data_folder("schemas")
    texts = {name: json.dumps(json_schema(name), indent=1) + "\n" for name in SCHEMAS}
    for name, text in texts.items():
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")
    print(folder)
    return 0


def _history(args: argparse.Namespace) -> int:
    from fragmentlab.files import data_folder
    from fragmentlab.qualification.runs.history import differences, record_history, stale_sources
    from fragmentlab.qualification.runs.run_files import list_runs

    runs = Path(args.out) if args.out else data_folder("runs")
    if not args.check:
        record_history(runs)
        print(runs)
        return 0
    committed = list_runs(runs)
    with tempfile.TemporaryDirectory(prefix="fragmentlab-") as folder:
        found = differences(committed, record_history(Path(folder) / "runs"))
    for difference in found:
        print(difference)
    if stale := stale_sources(committed[0]):
        print(f"changed since the history was recorded: {', '.join(stale)}", file=sys.stderr)
    print(f"{len(committed)} runs made again: {'some rows differ' if found else 'every row is the same'}")
    return 1 if found else 0


def _explanations(args: argparse.Namespace) -> int:
    from fragmentlab.commands.explain import explanations_page
    from fragmentlab.files import data_folder

    out = Path(args.out) if args.out else data_folder("vectors").parents[1] / "docs" / "explanations.md"
    out.write_text(explanations_page(), encoding="utf-8")
    print(out)
    return 0


def _counterexamples(args: argparse.Namespace) -> int:
    from fragmentlab.files import data_folder
    from fragmentlab.qualification.candidates.counterexamples import write_counterexamples

    out = args.out or str(data_folder("vectors") / "counterexample.json")
    if not write_counterexamples(args.rules, out):
        print("no invariant is broken, so there is no counterexample", file=sys.stderr)
        return 1
    print(out)
    return 0


def _notebooks(args: argparse.Namespace) -> int:
    from fragmentlab.reports.frame.catalog import list_notebooks, notebooks_folder
    from fragmentlab.reports.frame.refresh import refresh

    given = [Path(path) for path in args.paths]
    paths = given or [notebook.path for notebook in list_notebooks(notebooks_folder(None))]
    failed = {path.stem: reason for path in paths if (reason := refresh(path))}
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if failed else 0
