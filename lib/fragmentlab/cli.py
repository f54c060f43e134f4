"""The command line: finds the command's module, parses its options and turns errors into one line."""

from __future__ import annotations

import argparse
import codecs
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn, TextIO

from fragmentlab import __version__
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import reason

COMMANDS = {
    "assemble": "say whether recorded streams are accepted or refused, and why",
    "explain": "say what a category means and what to do next",
    "record": "record streamed answers through a loopback relay",
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
    "subjects": "list what can be put to the test",
    "report": "run the notebooks and render an HTML report",
    "maintain": "renew files that the kit generates for itself",
}
"""Command name -> help line. Each is a module of ``fragmentlab.commands``, loaded only when it is called."""
EXAMPLES = {
    "assemble": ("assemble failed.sse", "assemble session.har logs/ --stream 3", "assemble - < failed.sse"),
    "explain": ("explain identity.conflict",),
    "record": ("record --upstream https://api.example.com/v1 --out recordings",),
    "vectors": ("vectors", "vectors my-vectors.json --rules reject-null"),
    "import": ("import recordings/ session.har --out my-batch",),
    "scrub": ("scrub my-private-batch --out my-batch",),
    "minimize": ("minimize failed.sse > vector.json", "minimize session.har:3 --category identity.conflict"),
    "synth": ("synth --streams 100 --seed 1 --out my-batch",),
    "qualify": ('qualify captured-local --revision 1.4.0 --exec "python gateway.py"',),
    "compare": ("compare keep-established 1.4.0", "compare 1.3.0 1.4.0 --propose expectations.json"),
    "runs": ("runs list", "runs verify", "runs import outcomes.jsonl --revision 1.4.0"),
    "note": ("note --revision 1.4.0",),
    "provider": ("provider --scenario target --port 8080",),
    "subjects": ("subjects list",),
    "report": ("report", "report --only 01 -p file=failed.sse"),
}
"""Command name -> what its help shows, without the program's name."""
MODULES = {"import": "import_"}
"""Commands whose name no module can have."""
HIDDEN = frozenset({"maintain"})
"""Commands that only those need who change the kit."""

EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130
_LONGEST_LINE = 300
_EXAMPLES = "examples:\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: its own, or 2 for unusable input or output.

    >>> main(["assemble", "missing.sse"])
    2
    """
    if argv is None:
        argv = sys.argv[1:]
        # A cancelled job or a closed terminal ends like Ctrl-C, so that nothing is left; nohup still holds.
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
    name = argv[0] if argv and argv[0] in COMMANDS else ""
    try:
        _prepare_output()
        args = _parser(name).parse_args(argv)
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _refuse(name, "interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _abandon(sys.stdout)
        return EXIT_UNUSABLE
    except Exception as error:
        if isinstance(error, OSError):
            _abandon(sys.stdout)
        return _refuse(name, _line(error))


def _line(error: Exception) -> str:
    match error:
        case InputError():
            return str(error)
        case ModuleNotFoundError(name=str(module)) if _is_foreign(module):
            return "needs the kit: pip install 'fragmentlab[kit]'"
        case OSError():
            return f"the system refused to read or write: {reason(error)}"
        case MemoryError():
            return "out of memory; give it less at once"
    # Its message could quote what was read, and Python's own exit status 1 would say "rejected".
    return f"internal error, please report it: {type(error).__name__} at {_place(error)}"


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] not in {*sys.stdlib_module_names, __package__}


def _refuse(name: str, line: str) -> int:
    try:
        print(f"fragmentlab {name}".rstrip() + f": {for_terminal(line)}", file=sys.stderr, flush=True)
    except OSError:
        _abandon(sys.stderr)
    return EXIT_UNUSABLE


def _prepare_output() -> None:
    """Let no stream be missing, and none fail at a character that its encoding lacks."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - kept open like the stream it stands for
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("fragmentlab", _encoded)
        sys.stdout.reconfigure(errors="fragmentlab")


def _encoded(error: UnicodeError) -> tuple[bytes, int]:
    """Give a path its own bytes back, so that scripts can use it, and any other character its escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return b"".join(
        ch.encode("ascii", "surrogateescape" if "\udc80" <= ch <= "\udcff" else "backslashreplace")
        for ch in text
    ), error.end


def _abandon(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that Python's own flush at exit cannot fail a second time."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _place(error: Exception) -> str:
    """File and line of this package where the error came out; never its message."""
    import traceback  # what it loads would slow down every start

    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}fragmentlab{os.sep}" in f.filename
    ]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "an unknown place"


class _Help(argparse.HelpFormatter):
    """Names each default, where the help of the option does not, and keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        is_told = not action.default or action.default == argparse.SUPPRESS or "default" in text
        return text if is_told else f"{text} (default: %(default)s)"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the options in one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)

    def error(self, message: str) -> NoReturn:
        line = for_terminal(message)
        line = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..."
        self.exit(EXIT_UNUSABLE, f"{self.prog}: {line}; see {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse's own swallows a write that failed, from 3.11.4 on.
        print(message, end="", file=file or sys.stderr)


def _parser(wanted: str) -> argparse.ArgumentParser:
    about = "Streamed tool calls: assembled, or refused with a reason."
    parser = _Parser(prog="fragmentlab", description=about)
    parser.add_argument("--version", action="version", version=f"fragmentlab {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        listed: dict[str, Any] = {} if name in HIDDEN else {"help": summary}
        sub = subparsers.add_parser(name, description=f"{summary[0].upper()}{summary[1:]}.", **listed)
        if name == wanted:
            module = importlib.import_module(f"fragmentlab.commands.{MODULES.get(name, name)}")
            module.configure(sub)
            sub.epilog = _examples(name)
            sub.set_defaults(run=module.run)
    return parser


def _examples(name: str) -> str | None:
    lines = "".join(f"  fragmentlab {line}\n" for line in EXAMPLES.get(name, ()))
    return _EXAMPLES + lines if lines else None
