"""``fragmentlab vectors PATH...``: hold the assembler to vector files (exit 0 all agree, 1 otherwise)."""

from __future__ import annotations

import argparse
import json
import sys

from fragmentlab.corpus.rules import find_rules
from fragmentlab.disclosure import for_terminal

_RULES_HELP = (
    "a rule set's name or a rules file; only this one is checked. A vector is held to its expectation under "
    "this rule set (expect_under), otherwise to expect, where a rule set's one compound category stands for "
    "any identity.* (default: expect under keep-established, and every shipped rule set of expect_under)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["data/vectors"],
        help="a vector file, or a folder whose *.json are vector files (default: the kit's own)",
    )
    parser.add_argument("--rules", metavar="R", help=_RULES_HELP)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--reveal", action="store_true", help="show raw IDs, names and arguments that differ")


def run(args: argparse.Namespace) -> int:
    """Check every file before the first vector runs, then print each disagreement, each file and a total."""
    from tqdm import tqdm

    from fragmentlab.corpus.vector_check import check, unchecked
    from fragmentlab.corpus.vectors import load_vectors, vector_paths

    rules = None if args.rules is None else find_rules(args.rules)
    files = [load_vectors(path) for path in vector_paths(args.paths)]
    total = sum(len(file.vectors) for file in files)
    agree, disagree = 0, []
    with tqdm(total=total, unit=" vectors", disable=not sys.stderr.isatty(), leave=False) as bar:
        for file in files:
            before = agree
            for vector in file.vectors:
                mismatches = check(vector, rules)
                agree += not mismatches
                disagree += [{"file": str(file.path), **found.to_json(args.reveal)} for found in mismatches]
                if not args.json:
                    for found in mismatches:
                        print(found.text(args.reveal))
                bar.update()
            if not args.json:
                line = f"{for_terminal(str(file.path))}: {_tally(len(file.vectors), agree - before)}"
                if skipped := 0 if rules else sum(map(unchecked, file.vectors)):
                    line += f"; not checked: {skipped} under rule sets that are not shipped"
                print(line, flush=True)
    if args.json:
        names = [str(file.path) for file in files]
        print(json.dumps({"files": names, "vectors": total, "agree": agree, "disagree": disagree}))
    else:
        print(f"total: {_tally(total, agree)} in {len(files)} {'file' if len(files) == 1 else 'files'}")
    return 0 if agree == total else 1


def _tally(vectors: int, agree: int) -> str:
    return f"all {vectors} agree" if agree == vectors else f"{agree} of {vectors} agree"
