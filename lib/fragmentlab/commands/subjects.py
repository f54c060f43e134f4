"""``fragmentlab subjects list``: what can be put to the test."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="list the subjects and how to name each")


def run(args: argparse.Namespace) -> int:
    """Print one line per subject."""
    from fragmentlab.assembler.rules import SHIPPED
    from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS

    rows = [(f"--rules {name}", "the kit's assembler under this rule set") for name in SHIPPED]
    rows.append(("--rules FILE", "the kit's assembler under a candidate of yours"))
    rows += [(f"--rules {name}", "made wrong on purpose, never executable") for name in COUNTERFACTUALS]
    rows.append(("--exec CMD", "your gateway, in any language: one process per stream"))
    rows.append(("--exec CMD --long-lived", "the same, one process for all streams"))
    for option, meaning in rows:
        print(f"{option:<32}{meaning}")
    return 0
