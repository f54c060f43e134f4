"""``fragmentlab maintain``: what only those who change the kit itself need (CONTRIBUTING.md)."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from fragmentlab.files import kit_folder


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions; each writes where its files lie in the checkout, if not told otherwise."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, place: str, summary: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=summary)
        default = kit_folder() / place
        action.add_argument("--out", metavar="PATH", type=Path, default=default, help="where to write")
        return action

    add("schemas", "data/schemas", "write the JSON Schema of every format")
    history = add("history", "data/runs", "record the committed runs, or check that they come again")
    history.add_argument("--check", action="store_true", help="make them elsewhere and compare every row")
    found = "data/vectors/counterexample.json"
    rules = add("counterexamples", found, "write the shortest counterexamples as vectors")
    rules.add_argument("--rules", metavar="R", help="a rules file or name (default: every counterfactual)")
    add("explanations", "docs/explanations.md", "write the page of what is said of each refusal")
    notebooks = actions.add_parser("notebooks", help="run notebooks and write them as they are committed")
    notebooks.add_argument(
        "paths", nargs="*", metavar="NOTEBOOK", type=Path, help="default: all of the kit's"
    )


def run(args: argparse.Namespace) -> int:
    """Run one action; return 1 where it found a difference or a failure."""
    match args.action:
        case "schemas":
            _schemas(args.out)
        case "history":
            return _history(args.out, args.check)
        case "counterexamples":
            from fragmentlab.qualification.candidates.counterexamples import write_counterexamples

            if not write_counterexamples(args.rules, str(args.out)):
                print("no invariant is broken, so there is no counterexample", file=sys.stderr)
                return 1
        case "explanations":
            from fragmentlab.commands.explain import explanations_page

            args.out.write_text(explanations_page(), encoding="utf-8")
        case "notebooks":
            return _notebooks(args.paths)
    print(args.out)
    return 0


def _schemas(folder: Path) -> None:
    from fragmentlab.formats import SCHEMAS, json_schema

    texts = {name: json.dumps(json_schema(name), indent=1) + "\n" for name in SCHEMAS}
    for name, text in texts.items():
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")


def _history(runs: Path, check: bool) -> int:
    from fragmentlab.qualification.runs.history import differences, record_history, stale_sources
    from fragmentlab.qualification.runs.run_files import list_runs

    if not check:
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


def _notebooks(paths: list[Path]) -> int:
    from fragmentlab.reports.frame.catalog import list_notebooks, notebooks_folder
    from fragmentlab.reports.frame.refresh import refresh

    paths = paths or [notebook.path for notebook in list_notebooks(notebooks_folder(None))]
    failed = {path.stem: reason for path in paths if (reason := refresh(path))}
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    return 1 if failed else 0
