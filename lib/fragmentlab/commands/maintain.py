"""``fragmentlab maintain``: what only those who change the kit itself need (CONTRIBUTING.md)."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    schemas = actions.add_parser("schemas", help="write the JSON Schema of every format")
    schemas.add_argument("--out", metavar="DIR", help="folder (default: the checkout's data/schemas)")
    schemas.set_defaults(act=_schemas)
    found = actions.add_parser("counterexamples", help="write the shortest counterexamples as vectors")
    found.add_argument("--rules", metavar="R", help="a rules file or name (default: every counterfactual)")
    found.add_argument("--out", metavar="FILE", help="default: the checkout's counterexample.json")
    found.set_defaults(act=_counterexamples)


def run(args: argparse.Namespace) -> int:
    """Run one action."""
    status: int = args.act(args)
    return status


def _schemas(args: argparse.Namespace) -> int:
    from fragmentlab.files import data_folder
    from fragmentlab.formats import SCHEMAS, json_schema

    folder = Path(args.out) if args.out else data_folder("schemas")
    for name in SCHEMAS:
        text = json.dumps(json_schema(name), indent=1) + "\n"
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")
    print(folder)
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
