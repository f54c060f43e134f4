"""Lines with something else around the events: what a logger writes before them, a paste, other output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fragmentlab.corpus.importing.budget import BROKEN_LINE, Budget
from fragmentlab.corpus.importing.documents import Body, Document, Refusal
from fragmentlab.corpus.importing.lines import (
    FIELD,
    data_mark,
    data_start,
    escaped_events,
    is_log_record,
    json_end,
    names_chunk,
    plain_lines,
    prefix_pattern,
    repeated,
    with_blank_lines,
)
from fragmentlab.corpus.importing.responses import BLANK_LINES_LOST, Unit, blocks, bodies
from fragmentlab.corpus.importing.values import END_MARKER, STRING, parse_json
from fragmentlab.wire.protocols import could_be_chunk

PREFIX_REMOVED = "prefixes removed from lines"
OTHER_TEXT = "other text stood before an event"
ESCAPED = "line ends were escaped"
REPEATED = "events that another logger wrote again left out"
SPREAD = "events stood on more than one line"
_MAX_STARTS = 8
_MAX_SPREAD = 2000
_SPREAD_WEIGHT = 4
_CURL = re.compile(r"[*<>] |[{}] \[\d+ bytes data\]")


def recognise(document: Document) -> bool:
    text = document.text
    return ("data:" in text and any(data_mark(line) is not None for line in text.split("\n"))) or (
        names_chunk(text) and ("delta" in text or '"chat.completion' in text)
    )


def read(document: Document, budget: Budget) -> Iterator[Body | Refusal]:
    lines = plain_lines(document.text)
    budget.visit(len(lines))
    marks = [data_mark(line) for line in lines]
    numbers = [number for number, mark in enumerate(marks) if mark is not None]
    again = repeated(
        [lines[number][: marks[number]] for number in numbers],
        [lines[number][marks[number] :] for number in numbers],
    )
    if again:
        left_out = {numbers[at] for at in again}
        lines = [line for number, line in enumerate(lines) if number not in left_out]
        marks = [mark for number, mark in enumerate(marks) if number not in left_out]
    notes = (REPEATED,) if again else ()
    if numbers:
        yield from _events(document, lines, marks, budget, *notes)
    else:
        yield from _chunks(document, lines, budget)


def _events(
    document: Document, lines: list[str], marks: list[int | None], budget: Budget, *noted: str
) -> Iterator[Body | Refusal]:
    """Read lines of which events begin at the marks: cut what stands before, drop what is no event."""
    prefixes = [line[:mark] for line, mark in zip(lines, marks, strict=True) if mark is not None]
    bare = prefixes.count("")
    pattern = prefix_pattern(prefixes) if not bare else None
    notes = {OTHER_TEXT: None} if bare and bare < len(prefixes) else {} if bare else {PREFIX_REMOVED: None}
    found: list[str] = []
    first = next(number for number, mark in enumerate(marks) if mark is not None)
    number = _first_field(lines, pattern, first)
    if any(map(str.strip, lines[:number])):
        notes[OTHER_TEXT] = None
    while number < len(lines):
        line, mark = lines[number], marks[number]
        number += 1
        if mark is None:
            rest = _rest(line, pattern, bool(bare))
            if rest is not None:
                found.append(rest)
            elif line.strip():
                notes[OTHER_TEXT] = None
            continue
        line = line[mark:]
        if json_end(line, data_start(line, 0)) == len(line.rstrip()):
            found.append(line)
            continue
        budget.visit(BROKEN_LINE)
        if "\\n" in line and (events := escaped_events(line)) is not None:
            found += events.split("\n")[:-1]
            notes[ESCAPED] = None
        elif (spread := _spread(line, lines, number, pattern, budget)) is not None:
            data, number = spread
            found.append(data)
            notes[SPREAD] = None
        else:
            found.append(line)
    text = "\n".join([*found, ""])
    is_as_recorded = not document.is_joined and notes.keys() <= {OTHER_TEXT}
    if not is_as_recorded and "\n\n" not in text and (restored := with_blank_lines(found)) is not None:
        text = restored
        notes[BLANK_LINES_LOST] = None
    yield from bodies(document, blocks(text), *noted, *notes)


def _first_field(lines: list[str], pattern: re.Pattern[str] | None, first: int) -> int:
    """Return the line at which the first event begins: fields such as its name may stand before its data."""
    number = first
    while number and (rest := _rest(lines[number - 1], pattern, pattern is None)) and FIELD.match(rest):
        number -= 1
    return number


def _rest(line: str, pattern: re.Pattern[str] | None, is_bare: bool) -> str | None:
    """Return a line without what was written before it; None where it is another kind of line."""
    if pattern is None:
        return line if is_bare and not _CURL.match(line) else None
    match = pattern.match(line)
    return None if match is None else line[match.end() :]


def _spread(
    line: str, lines: list[str], number: int, pattern: re.Pattern[str] | None, budget: Budget
) -> tuple[str, int] | None:
    """Join an event whose JSON goes on over the next lines; return it and the number of the line after it."""
    text = line[data_start(line, 0) :]
    if number == len(lines) or _begins(lines[number]):
        return None
    depth = _open_brackets(text)
    parts = [text]
    last = min(len(lines), number + _MAX_SPREAD)
    while depth > 0 and number < last and not _begins(lines[number]):
        parts.append(_rest(lines[number], pattern, False) or lines[number])
        budget.visit(_SPREAD_WEIGHT)
        depth += _open_brackets(parts[-1])
        number += 1
    joined = "\n".join(parts)
    if len(parts) == 1 or json_end(joined, 0) != len(joined.rstrip()):
        return None
    return f"data: {' '.join(part.strip() for part in parts)}", number


def _begins(line: str) -> bool:
    """Return whether an event begins in a line, and no text that an event holds."""
    mark = data_mark(line)
    return mark is not None and '"' not in line[:mark]


def _open_brackets(text: str) -> int:
    text = STRING.sub("", text)
    return text.count("{") + text.count("[") - text.count("}") - text.count("]")


def _chunks(document: Document, lines: list[str], budget: Budget) -> Iterable[Body | Refusal]:
    """Read the chunk objects and end markers of lines, and other objects where a chunk could stand."""
    found = list(_objects(lines, budget))
    pattern = prefix_pattern([prefix for prefix, _, value in found if could_be_chunk(value)])
    kept = [
        (prefix, text)
        for prefix, text, value in found
        if value is None
        or text == END_MARKER
        or could_be_chunk(value)
        or (pattern and pattern.fullmatch(prefix) and isinstance(value, dict) and not is_log_record(value))
    ]
    again = repeated([prefix for prefix, _ in kept], [text for _, text in kept])
    units = [Unit(text) for number, (_, text) in enumerate(kept) if number not in again]
    if units:
        yield from bodies(document, units, PREFIX_REMOVED, *((REPEATED,) if again else ()))


def _objects(lines: list[str], budget: Budget) -> Iterator[tuple[str, str, Any]]:
    """Yield the first JSON object of each line: what stands before it, its text and its value.

    A chunk that is broken is an event too, which the assembler refuses: its value is None.
    """
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line.rstrip().endswith(END_MARKER):
            yield line.rstrip().removesuffix(END_MARKER), END_MARKER, END_MARKER
            continue
        first = at = line.find("{")
        start, text = first, ""
        for _ in range(_MAX_STARTS):
            if text or at < 0:
                break
            text = line[at : json_end(line, at)] if json_end(line, at) is not None else ""
            if not text and line[at:].rstrip() == "{":
                spread = _spread(line[at:], lines, number, None, budget)
                text, number = (spread[0].removeprefix("data: "), spread[1]) if spread else ("", number)
            start, at = at, line.find("{", at + 1)
        if first >= 0 and names_chunk(line[first:start] if text else line[first:]):
            yield line[:first], line[first:], None
        elif text:
            yield line[:start], text, parse_json(text)[0]
