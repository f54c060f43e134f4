"""``fragmentlab explain [CATEGORY]``: meaning, likely causes, what to do next."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator

from fragmentlab.assembler import CATEGORIES
from fragmentlab.assembler.categories import FOLLOWING, REMARKS, Case, Category
from fragmentlab.errors import InputError

_EXAMPLE = {"known": "A", "incoming": ", B,", "incoming_kind": "number", "compressed": "gzip"}
_PAGE = """# Explanations

What `fragmentlab explain`, `fragmentlab assemble` and the pages say of each refusal. This page is made from
`lib/fragmentlab/assembler/categories.json` by `fragmentlab maintain explanations`; IDs stand as aliases.

| category | where | headline | likely causes | next |
|---|---|---|---|---|
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    text = "such as identity.conflict; without it: all of them"
    parser.add_argument("category", metavar="CATEGORY", nargs="?", help=text)


def run(args: argparse.Namespace) -> int:
    """Print one category's entry, or the list; an unknown one is InputError with the nearest names."""
    if args.category is None:
        width = max(map(len, CATEGORIES))
        for name, category in CATEGORIES.items():
            print(f"{name:{width}}  {_headline(category)}")
        return 0
    entry = CATEGORIES.get(args.category)
    if entry is None:
        near = " or ".join(difflib.get_close_matches(args.category, CATEGORIES, n=3))
        hint = f"did you mean {near}?" if near else "`fragmentlab explain` lists them"
        raise InputError(f"unknown category; {hint}")
    print(f"{entry.name} (found at the stage {entry.stage})\n\n{entry.meaning}\n")
    print("\n".join(_advice(entry)))
    for case in entry.cases:
        print(f"\nWhere it is {_headline(case)}")
        print("\n".join(f"  {line}" for line in _advice(case)))
    if entry.links:
        print("\nSee\n" + "\n".join(f"  {link}" for link in entry.links))
    return 0


def _advice(entry: Category | Case) -> Iterator[str]:
    yield "Likely causes"
    yield from (f"  - {cause}" for cause in entry.causes)
    yield "What to do next"
    yield from (f"  -> {step}" for step in entry.next_steps)


def _headline(entry: Category | Case) -> str:
    return entry.headline.format_map(_EXAMPLE)


def explanations_page() -> str:
    """Return the page of the docs that shows each explanation once."""
    rows = []
    for category in CATEGORIES.values():
        for case in category.cases:
            rows.append(_row(category.name, _conditions(case), case))
        rows.append(_row(category.name, "", category))
    remarks = "".join(f"- `{name}`: {text}\n" for name, text in REMARKS)
    return (
        f"{_PAGE}{''.join(rows)}\nOf a fault that follows from an earlier one: {FOLLOWING}\n\n"
        f"Beside faults:\n\n{remarks}"
    )


def _row(category: str, where: str, entry: Category | Case) -> str:
    cells = (f"`{category}`", where, _headline(entry), " ".join(entry.causes), " ".join(entry.next_steps))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _conditions(case: Case) -> str:
    return ", ".join(
        f"`{name}`" + ("" if value is True else f" is `{value}`") for name, value in case.when.items()
    )
