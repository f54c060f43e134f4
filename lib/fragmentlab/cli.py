"""The command line: finds the command's module, parses its options and turns errors into one line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from fragmentlab import __version__
from fragmentlab.display import for_terminal
from fragmentlab.errors import InputError

COMMANDS = {
    "assemble": "turn one recorded stream into an outcome",
    "explain": "say what a category means and what to do next",
    "vectors": "check vector files against the assembler",
    "import": "find streamed Chat Completions bodies in recordings and make a batch",
    "scrub": "replace the content of a batch, keep its outcomes",
    "minimize": "shrink a stream to the smallest with the same category",
    "synth": "make a synthetic batch from provider shapes",
    "qualify": "record one pass of a subject over batches and vectors",
    "compare": "judge a target run against a base run",
    "runs": "list, verify or import runs",
    "note": "write the version verification note of a revision",
    "provider": "start the loopback provider for any client",
    "subjects": "list or prepare what can be put to the test",
    "report": "run the notebooks and render an HTML report",
}
"""Command name -> help line. Each is a module of ``fragmentlab.commands`` (a trailing ``_`` where the
name is a Python keyword), loaded only when called, so that ``assemble`` starts without pandas."""

EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 2 for unusable input, otherwise the command's own."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = _parser(argv[0] if argv else "")
    args = parser.parse_args(argv)
    try:
        status = args.run(args)
        sys.stdout.flush()
        return status
    except InputError as error:
        print(f"fragmentlab {args.command}: {for_terminal(str(error))}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        print(f"fragmentlab {args.command}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_UNUSABLE


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the options in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_UNUSABLE, f"{self.prog}: {for_terminal(message)}; see {self.prog} --help\n")


def _parser(wanted: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fragmentlab", description="Streamed tool calls: assembled, or refused with a reason."
    )
    parser.add_argument("--version", action="version", version=f"fragmentlab {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == wanted:
            module = importlib.import_module(f"fragmentlab.commands.{_module_name(name)}")
            module.configure(sub)
            sub.set_defaults(run=module.run)
    return parser


def _module_name(command: str) -> str:
    return "import_" if command == "import" else command
