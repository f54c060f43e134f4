"""``fragmentlab assemble FILE``: one recorded stream to an outcome (exit 0 accepted or no_calls, 1
rejected)."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import groupby

from fragmentlab.assembler import CATEGORIES, DEFAULT_RULES, Fault, FragmentRow, Result
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import read_stream_file
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError

_COLOURS = {"accepted": "\x1b[32m", "rejected": "\x1b[31m", "no_calls": "\x1b[36m", "heading": "\x1b[1m"}
_LISTED_FAULTS = 10
_LISTED_LINES = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument(
        "file", metavar="FILE", help="a recorded stream (SSE or JSON Lines), - for standard input"
    )
    parser.add_argument(
        "--rules", metavar="R", default=DEFAULT_RULES, help="a rule set's name or a rules file"
    )
    parser.add_argument("--tools", metavar="a,b", help="the known tools; without them names are not checked")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--reveal", action="store_true", help="show the raw IDs, names and arguments of an accepted call"
    )


def run(args: argparse.Namespace) -> int:
    """Assemble in diagnosing mode and print for a person, or as JSON."""
    rules = find_rules(args.rules)
    tools = None if args.tools is None else _tools(args.tools)
    stream = read_stream_file(args.file)
    result = stream.assemble(rules, tools=tools, diagnose=True)
    if args.json:
        print(json.dumps(result.to_json(args.reveal)))
    else:
        print("\n".join(_lines(result, args.reveal, sys.stdout.isatty())))
    return 1 if result.outcome == "rejected" else 0


def _tools(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(
            "--tools needs names with commas between them, such as --tools read_source,save_report"
        )
    return names


def _lines(result: Result, reveal: bool, colours: bool) -> Iterator[str]:
    def paint(text: str, colour: str) -> str:
        return f"{_COLOURS[colour]}{text}\x1b[0m" if colours else text

    head = result.outcome + (f": {result.category}" if result.category else "")
    yield (
        paint(head, result.outcome)
        + f"   rules {result.rules}"
        + ("" if result.executable else " (never executable)")
    )
    yield _summary(result)
    if not result.counts["events"]:
        yield "Nothing in it is an event: is it a recorded stream, or an error page?"
    for call in result.calls:
        shown = call.to_json(reveal)
        yield "  call " + "  ".join(f"{key} {for_terminal(str(value))}" for key, value in shown.items())
    if result.faults:
        yield ""
        yield paint("Faults", "heading") + " (the first one decides)"
        yield from _faults(result)
    if result.timeline:
        yield ""
        yield paint("Timeline", "heading")
        lines = list(timeline_lines(result.timeline))
        yield from lines[:_LISTED_LINES]
        if len(lines) > _LISTED_LINES:
            yield f"  ... and {len(lines) - _LISTED_LINES} more lines"
        if omitted := result.counts["omitted_rows"]:
            yield f"  ... and {omitted} fragments past the limit timeline_rows"
    if result.tolerances:
        yield ""
        yield (
            paint("Tolerated", "heading") + ": " + ", ".join(f"{k} {v}" for k, v in result.tolerances.items())
        )


def _summary(result: Result) -> str:
    counts = result.counts
    parts = [_counted(counts[name], name[:-1]) for name in ("events", "fragments", "calls")]
    parts.append(_counted(counts["null_continuations"], "null continuation"))
    if not counts["events"]:
        parts.append("no event was found, so it may be a web page or a document instead of a stream")
    if not counts["names_checked"]:
        parts.append("tools unknown, so names were not checked")
    return "; ".join(parts)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _faults(result: Result) -> Iterator[str]:
    by_category: dict[str, list[Fault]] = {}
    for fault in result.faults:
        by_category.setdefault(fault.category, []).append(fault)
    for category, faults in by_category.items():
        entry = CATEGORIES[category]
        yield f"  {category}" + (f", {len(faults)} times" if len(faults) > 1 else "")
        yield f"    {entry.meaning}"
        for fault in faults[:_LISTED_FAULTS]:
            yield f"    at {_where(fault)}"
        if len(faults) > _LISTED_FAULTS:
            yield f"    ... and {len(faults) - _LISTED_FAULTS} more"
        for step in entry.next_steps:
            yield f"    -> {step}"
    if omitted := result.counts["omitted_faults"]:
        yield f"  ... and {omitted} faults past the limit diagnosed_faults"


def _where(fault: Fault) -> str:
    places = [
        f"{name} {getattr(fault, name)}" for name in ("event", "fragment", "call") if getattr(fault, name)
    ]
    facts = []
    if fault.incoming_kind:
        facts.append(f"ID {fault.incoming_kind}")
    if fault.previous_identity:
        facts.append(f"identity was {fault.previous_identity}")
    facts += [name.replace("_", " ") for name, value in fault.flags.items() if value is True]
    return ", ".join(places or ["the end of the stream"]) + (f" ({', '.join(facts)})" if facts else "")


def timeline_lines(rows: tuple[FragmentRow, ...]) -> Iterator[str]:
    """Yield the timeline as aligned text, a run of alike fragments on one line. IDs stand as aliases."""
    header = ("events", "fragments", "index", "incoming ID", "identity", "decision", "name", "arguments")
    table = [header]
    for _, group in groupby(rows, key=_alike):
        run_ = list(group)
        first, last = run_[0], run_[-1]
        table.append(
            (
                _span(first.event, last.event),
                _span(first.fragment, last.fragment),
                "-" if first.index is None else str(first.index),
                (first.incoming_kind or "-") + (f" {first.incoming_alias}" if first.incoming_alias else ""),
                _identity(first),
                first.decision + (f" {first.category}" if first.category else ""),
                f"{sum(row.name_bytes for row in run_)} B",
                f"{sum(row.arguments_bytes for row in run_)} B",
            )
        )
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _alike(row: FragmentRow) -> tuple[object, ...]:
    return (
        row.index, row.incoming_kind, row.incoming_alias, row.previous_identity, row.next_identity,
        row.id_alias, row.decision, row.category,
    )  # fmt: skip


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _identity(row: FragmentRow) -> str:
    if row.previous_identity is None:
        return "-"
    known = f"{row.next_identity}" + (f" {row.id_alias}" if row.id_alias else "")
    return known if row.previous_identity == row.next_identity else f"{row.previous_identity} -> {known}"
