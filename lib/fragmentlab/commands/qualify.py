"""``fragmentlab qualify``: record one pass of a subject over batches and vectors; prints the run's folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError

_MIB = 1 << 20


def _number(kind: type, most: int, what: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        with suppress(ValueError):
            if 0 < (value := kind(text)) <= most:
                return value
        raise argparse.ArgumentTypeError(f"must be {what}")

    return parse


_SECONDS = _number(float, 86400, "a number of seconds above 0")
_AT_LEAST_ONE = _number(int, 1 << 20, "a whole number of at least 1")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument(
        "sources",
        metavar="BATCH|VECTORS",
        nargs="+",
        help="a batch's folder or name, a vector file, or a folder of vector files",
    )
    parser.add_argument("--revision", metavar="LABEL", required=True, help="which revision was tested")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--rules",
        metavar="R",
        help="test the kit's assembler under a rule set, a rules file or a counterfactual "
        f"(default: {DEFAULT_RULES})",
    )
    what.add_argument(
        "--exec", dest="command_line", metavar="CMD", help="test a command: your gateway, in any language"
    )
    what.add_argument("--subject", metavar="NAME", help="test a subject of `fragmentlab subjects list`")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="folder of runs (default: runs)")
    parser.add_argument(
        "--workers", metavar="N", type=_AT_LEAST_ONE, default=1, help="processes (default: 1)"
    )
    option = parser.add_argument_group("with --exec").add_argument
    option("--long-lived", action="store_true", help="one process for all streams, each length-prefixed")
    option("--time-limit", metavar="S", type=_SECONDS, default=10.0, help="seconds per stream (default: 10)")
    option("--memory-limit", metavar="MIB", type=_AT_LEAST_ONE, default=1024, help="MiB (default: 1024)")
    told = "MiB of output per stream (default: 4)"
    option("--output-limit", metavar="MIB", type=_AT_LEAST_ONE, default=4, help=told)
    told = "categories of the command's own that runs may record"
    option("--categories", metavar="a,b", default="", help=told)


def run(args: argparse.Namespace) -> int:
    """Record the run and print its folder as the last line."""
    from pathlib import Path

    from fragmentlab.qualification.runs.record import record_run
    from fragmentlab.qualification.runs.run_files import open_run

    try:
        folder = record_run(
            args.sources, args.revision, _choice(args), Path(args.runs), workers=args.workers, say=_say
        )
    except KeyboardInterrupt:
        _say("interrupted: nothing was recorded and nothing is left to remove")
        raise
    counts = open_run(folder).header["counts"]
    outcomes = [f"{count} {name}" for name, count in sorted(counts.items()) if name != "streams"]
    _say(f"{counts['streams']} streams: {', '.join(outcomes)}")
    if counts.get("failed") == counts["streams"]:
        _say("the command answered for no stream: give it one on standard input and see what it prints")
    print(folder)
    return 0


def _choice(args: argparse.Namespace):  # type: ignore[no-untyped-def]
    from fragmentlab.disclosure import check_label
    from fragmentlab.qualification.choose import Choice
    from fragmentlab.subjects.command import parse_command
    from fragmentlab.subjects.process import Bounds

    if args.command_line is not None:
        names = [name for name in args.categories.split(",") if name]
        return Choice(
            command=parse_command(args.command_line),
            long_lived=args.long_lived,
            bounds=Bounds(args.time_limit, args.memory_limit * _MIB, args.output_limit * _MIB),
            categories=frozenset(check_label(name, "a category of --categories") for name in names),
        )
    if args.long_lived or args.categories:
        raise InputError("--long-lived and --categories belong to --exec")
    if args.subject is not None and args.subject != "assembler":
        raise InputError("no such subject; see `fragmentlab subjects list`")
    return Choice(rules=args.rules or DEFAULT_RULES)


def _say(line: str) -> None:
    print(f"qualify: {for_terminal(line)}", file=sys.stderr, flush=True)
