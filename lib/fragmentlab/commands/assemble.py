"""``fragmentlab assemble``: recordings of any kind to outcomes; one stream is explained, several listed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import chain, islice
from typing import Any

from fragmentlab.assembler import Limits, Result
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.commands.result_text import aligned, raw_lines, result_lines
from fragmentlab.corpus.recordings import as_file, shown_path, what_is_missing
from fragmentlab.corpus.rules import find_rules, recorded_name
from fragmentlab.corpus.streams import ENDS, MAX_STREAM_BYTES, Stream, plain_stream
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError, visible
from fragmentlab.files import open_file

DESCRIPTION = """\
Takes whatever holds recorded streams: event files, JSON Lines, HAR, cassettes, logs, archives, folders and
globs. One stream is explained; several are listed, and --stream N explains one of them. The exit status is 0
where all are accepted or no_calls, 1 where one is rejected or a file was skipped for a fault, and 2 where no
stream was found.
"""
_HEADER = ("", "file", "place", "outcome", "category", "calls", "nulls")
_LISTED = 100
_DOUBTFUL = ("event.", "protocol.", "limit.")
"""Faults that a recorder may have caused: the importer knows what recorders do to events."""


@dataclass(frozen=True)
class Assembled:
    """One stream of those that were found, and its outcome."""

    stream: Stream
    result: Result
    file: str
    place: str = ""
    notes: tuple[str, ...] = ()
    """What was unusual about the recording, or undone."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.description = DESCRIPTION
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, folder or glob; - is standard input"
    )
    parser.add_argument("--stream", type=int, metavar="N", help="explain stream N of those that are listed")
    parser.add_argument(
        "--rules", metavar="R", default=DEFAULT_RULES, help="a rule set's name or a rules file"
    )
    parser.add_argument("--tools", metavar="a,b", help="the known tools, instead of those that were recorded")
    parser.add_argument("--end", choices=ENDS, help="how the transport ended, instead of what was recorded")
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=N", help="change a limit, such as events=500"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the outcome as one JSON object; of several streams one object per line, which also has "
        "the stream's file, place and notes",
    )
    parser.add_argument(
        "--reveal", action="store_true", help="show raw IDs, names and arguments, of a refused stream too"
    )


def run(args: argparse.Namespace) -> int:
    """Assemble in diagnosing mode and print for a person, or as JSON."""
    assembled = _assembler(args)
    with ExitStack() as stack:
        paths = [stack.enter_context(as_file(path)) for path in args.paths]
        if args.stream is None and len(paths) == 1 and (plain := _plain(paths[0], assembled)):
            return _show_one(plain, args)
        return _show_found(paths, assembled, args)


def _assembler(args: argparse.Namespace) -> Callable[..., Assembled]:
    """Return what assembles one stream as the options say."""
    rules = find_rules(args.rules)
    rules = replace(rules, name=recorded_name(rules))
    tools = None if args.tools is None else [name.strip() for name in args.tools.split(",")]
    if tools is not None and not all(tools):
        raise InputError("--tools needs names with commas between them, such as read_source,save_report")
    limits = _limits(args.limit) if args.limit else None

    def assembled(stream: Stream, *where: Any) -> Assembled:
        stream = replace(stream, end=args.end or stream.end)
        return Assembled(stream, stream.assemble(rules, diagnose=True, tools=tools, limits=limits), *where)

    return assembled


def _limits(options: Sequence[str]) -> Limits:
    try:
        return Limits.of({name: int(number) for name, _, number in (text.partition("=") for text in options)})
    except ValueError:
        names = ", ".join(field.name for field in fields(Limits))
        raise InputError(f"--limit needs NAME=N with a whole number above 0; the names are {names}") from None


def _plain(path: str, assembled: Callable[..., Assembled]) -> Assembled | None:
    """Assemble a file that is one response itself; None where the importer may know better.

    So the everyday case is quick, and needs nothing but the assembler.
    """
    try:
        with open_file(path) as file:
            data = file.read(MAX_STREAM_BYTES + 1)
    except OSError:
        return None
    stream = plain_stream(data) if len(data) <= MAX_STREAM_BYTES else None
    found = stream and assembled(stream, shown_path(path))
    if not found:
        return None
    faults = [fault.category for fault in found.result.faults if fault.category.startswith(_DOUBTFUL)]
    is_doubtful = (
        faults or "response_id_changed" in found.result.tolerances or not found.result.counts["events"]
    )
    return None if is_doubtful else found


def _show_found(paths: Sequence[str], assembled: Callable[..., Assembled], args: argparse.Namespace) -> int:
    from fragmentlab.corpus.importing.streams import Summary, import_streams

    summary = Summary()
    are_files = all(os.path.isfile(path) for path in paths)
    found = (
        assembled(item.stream, shown_path(item.file), item.place, item.notes)
        for item in import_streams(paths, summary, whole_files=are_files)
    )
    if args.stream is not None:
        chosen = next(islice(found, args.stream - 1, None), None) if args.stream > 0 else None
        if chosen is None:
            raise InputError(f"there is no stream {args.stream}; without --stream they are listed")
        return _show_one(chosen, args)
    first = list(islice(found, 2))
    status = _show_one(first[0], args) if len(first) == 1 else _show_all(chain(first, found), args)
    skipped = summary.faults if first else list((dict(summary.faults) | summary.seems).items())
    for where, why in skipped[:_LISTED] if first or len(skipped) > 1 else ():
        print(visible(f"skipped: {shown_path(where)}: {why}"), file=sys.stderr)
    if len(skipped) > _LISTED:
        print(f"... and {len(skipped) - _LISTED} more files", file=sys.stderr)
    if not first:
        raise InputError(what_is_missing(summary))
    return max(status, int(bool(skipped)))


def _show_one(one: Assembled, args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps(one.result.to_json(args.reveal)))
    else:
        print("\n".join(result_lines(one.result, args.reveal, sys.stdout.isatty())))
        for note in one.notes:
            print(f"Noted: {note}")
        if args.reveal and not one.result.calls:
            print("\n".join(raw_lines(one.stream)))
    return int(one.result.outcome == "rejected")


def _show_all(found: Iterable[Assembled], args: argparse.Namespace) -> int:
    """List the streams: as a table in the end, or as JSON while they come."""
    rows: list[tuple[str, ...]] = [_HEADER]
    outcomes = Counter[str]()
    for number, one in enumerate(found, 1):
        result = one.result
        outcomes[f"{result.outcome} {result.category or ''}".strip()] += 1
        if args.json:
            where = {"file": one.file, "place": one.place, "notes": one.notes}
            print(json.dumps(where | result.to_json(args.reveal)))
            continue
        counts = (result.counts["calls"], result.counts["null_continuations"])
        row = (
            number,
            one.file,
            one.place.replace("document", ""),
            result.outcome,
            result.category or "",
            *counts,
        )
        rows.append(tuple(for_terminal(str(cell)) for cell in row))
    if outcomes and not args.json:
        print("\n".join(aligned(rows)))
        told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        print(f"{outcomes.total()} streams: {told}. --stream N explains one.")
    return int(any(outcome.startswith("rejected") for outcome in outcomes))
