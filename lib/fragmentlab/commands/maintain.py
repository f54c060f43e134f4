"""``fragmentlab maintain``: what only those who change the kit itself need (CONTRIBUTING.md)."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    schemas = actions.add_parser("schemas", help="write the JSON Schema of every format")
    schemas.add_argument("--out", metavar="DIR", help="folder (default: the checkout's data/schemas)")
    schemas.set_defaults(act=_schemas)


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
