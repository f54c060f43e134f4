"""``fragmentlab explain CATEGORY``: meaning, likely causes, what to do next."""

from __future__ import annotations

import argparse
import difflib

from fragmentlab.assembler import CATEGORIES
from fragmentlab.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument("category", metavar="CATEGORY", help="such as identity.conflict")


def run(args: argparse.Namespace) -> int:
    """Print one category's entry; an unknown one is InputError with the nearest names."""
    entry = CATEGORIES.get(args.category)
    if entry is None:
        near = difflib.get_close_matches(args.category, CATEGORIES, n=3) or sorted(CATEGORIES)
        raise InputError(f"unknown category; did you mean {', '.join(near)}?")
    print(f"{entry.name} (found at the stage {entry.stage})\n\n{entry.meaning}\n\nLikely causes")
    print("\n".join(f"  - {cause}" for cause in entry.causes))
    print("\nWhat to do next\n" + "\n".join(f"  -> {step}" for step in entry.next_steps))
    if entry.links:
        print("\nSee\n" + "\n".join(f"  {link}" for link in entry.links))
    return 0
