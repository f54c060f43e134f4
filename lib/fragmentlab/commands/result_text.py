"""One outcome as text for a terminal: the point first, then why, what to do, and the timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from fragmentlab.assembler import Fault, Result, explain
from fragmentlab.assembler.explanations import Explanation, remarks
from fragmentlab.assembler.result import FragmentRow
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import for_terminal
from fragmentlab.wire.events import payloads
from fragmentlab.wire.fragments import fragments_of

_COLOURS = {"accepted": "\x1b[32m", "rejected": "\x1b[31m", "no_calls": "\x1b[36m", "heading": "\x1b[1m"}
_LISTED_FAULTS = 10
_LISTED_LINES = 1000
_HEADER = ("events", "fragments", "index", "incoming ID", "identity", "decision", "name", "arguments")


def result_lines(result: Result, reveal: bool, colours: bool) -> Iterator[str]:
    """Yield what a person reads of one stream."""

    def paint(text: str, colour: str) -> str:
        return f"{_COLOURS[colour]}{text}\x1b[0m" if colours else text

    point = f": {result.category}" if result.category else ""
    if result.faults:
        point += f": {explain(result.faults[0], result).headline}"
    yield paint(result.outcome + point, result.outcome)
    if result.faults:
        yield f"at {_where(result.faults[0])}"
    yield _summary(result)
    yield from remarks(result)
    for call in result.calls:
        shown = call.to_json(reveal)
        yield "  call " + "  ".join(f"{key} {for_terminal(str(value))}" for key, value in shown.items())
    if result.faults:
        yield from _fault_lines(result, lambda text: paint(text, "heading"))
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


def raw_lines(stream: Stream) -> Iterator[str]:
    """Yield the fragments of a stream as they are, for a person who asked to see them."""
    number = 0
    for event, data in enumerate(payloads(stream.body, stream.framing), 1):
        try:
            fragments = list(fragments_of(json.loads(data)))
        except (ValueError, RecursionError):
            continue
        for fragment in fragments:
            number += 1
            text = json.dumps(fragment, ensure_ascii=False)
            yield f"  event {event}, fragment {number}: {for_terminal(text)}"


def timeline_lines(rows: Sequence[FragmentRow]) -> Iterator[str]:
    """Yield the timeline as aligned text, a run of alike fragments on one line. IDs stand as aliases."""
    table: list[Sequence[str]] = [_HEADER]
    for cells, group in groupby(rows, key=_cells):
        run = list(group)
        first, last = run[0], run[-1]
        sizes = (sum(row.name_bytes for row in run), sum(row.arguments_bytes for row in run))
        places = (_span(first.event, last.event), _span(first.fragment, last.fragment))
        table.append((*places, *cells, *(f"{size} B" for size in sizes)))
    return aligned(table)


def _cells(row: FragmentRow) -> tuple[str, ...]:
    return (
        "-" if row.index is None else str(row.index),
        (row.incoming_kind or "-") + (f" {row.incoming_alias}" if row.incoming_alias else ""),
        _identity(row),
        row.decision + (f" {row.category}" if row.category else ""),
    )


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines with their columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  " + "  ".join(cells).rstrip()


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _identity(row: FragmentRow) -> str:
    if row.previous_identity is None:
        return "-"
    known = f"{row.next_identity}" + (f" {row.id_alias}" if row.id_alias else "")
    return known if row.previous_identity == row.next_identity else f"{row.previous_identity} -> {known}"


def _summary(result: Result) -> str:
    counts = result.counts
    parts = [_counted(counts[name], name[:-1]) for name in ("events", "fragments", "calls")]
    parts.append(_counted(counts["null_continuations"], "null continuation"))
    parts.append(
        f"rules {result.rules}" + ("" if result.executable or result.faults else " (never executable)")
    )
    if not counts["names_checked"]:
        parts.append("tools unknown, so names were not checked")
    return "; ".join(parts)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _fault_lines(result: Result, heading: Callable[[str], str]) -> Iterator[str]:
    """Yield why the first fault decided and what to do, then the other faults, those that follow last."""
    kinds: dict[tuple[str, Explanation], list[Fault]] = {}
    for fault in result.faults:
        kinds.setdefault((fault.category, explain(fault, result)), []).append(fault)
    (_, first), faults = next(iter(kinds.items()))
    yield from ("", heading("Why, and what to do"), *_advice(first))
    if len(faults) > 1:
        yield from ("  the same again:", *_places(faults[1:]))
    others = [(kind, faults) for kind, faults in kinds.items() if not kind[1].follows][1:]
    if others:
        yield from ("", heading("Other faults"))
    for (category, explanation), faults in others:
        yield f"  {category}: {explanation.headline}"
        yield from _places(faults)
        if explanation.next_steps != first.next_steps:
            yield from (f"  {line}" for line in _advice(explanation))
    following = [(category, faults) for (category, told), faults in kinds.items() if told.follows]
    if following:
        yield from ("", heading("Also found, following from the above"))
        yield from (
            f"  {category} {line.strip()}" for category, faults in following for line in _places(faults)
        )
    if omitted := result.counts["omitted_faults"]:
        yield f"  ... and {omitted} faults past the limit diagnosed_faults"


def _advice(explanation: Explanation) -> Iterator[str]:
    yield from (f"  likely: {cause}" for cause in explanation.causes)
    yield from (f"  -> {step}" for step in explanation.next_steps)


def _places(faults: Sequence[Fault]) -> Iterator[str]:
    yield from (f"    at {_where(fault)}" for fault in faults[:_LISTED_FAULTS])
    if len(faults) > _LISTED_FAULTS:
        yield f"    ... and {len(faults) - _LISTED_FAULTS} more"


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
