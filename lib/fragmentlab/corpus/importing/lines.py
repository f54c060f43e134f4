"""Lines of text that hold events: where the event begins in a line, and what was written before it."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence

from fragmentlab.corpus.importing.budget import Unreadable
from fragmentlab.corpus.importing.values import parse_json

FIELD = re.compile(r"(?:data|event|id|retry)?:")
"""How a line of an event stream begins, a comment included."""
_LOG_KEYS = frozenset("level lvl severity loglevel levelname".split())
_DATA = re.compile(r"data:(?:[ \t]|\\t)*+(?=\\*[{\[])")
_CHUNK = re.compile(r"\"(?:choices|error)\\*+\"")
_IN_CHUNK = re.compile(r"\"(?:choices\\*+\"\s*+:|error\\*+\"\s*+:\s*+\{)")
_VARIES = re.compile(r"\b[^\W\d]*+\d\w*+|\s")
_ESCAPED_QUOTE = re.compile(r"data:(?:[ \t]|\\t)*+\{\\++\"")
_ESCAPED_END = re.compile(r"(?:\\[rn])++")
_LONGEST_PREFIX = 2_000
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_PUNCTUATION = frozenset(string.punctuation) - {"_"}
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def plain_lines(text: str) -> list[str]:
    """Split text into lines, without the colours of a terminal."""
    if "\x1b[" in text:
        text = _ANSI.sub("", text)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def data_mark(line: str) -> int | None:
    """Return where ``data:`` with JSON or an end marker after it begins in a line."""
    if "data:" not in line:
        return None
    match = _DATA.search(line)
    # What stands in a chunk is text of the model's.
    is_event = match is not None and (match.start() == 0 or not _IN_CHUNK.search(line, 0, match.start()))
    if match is None or not is_event:
        return None
    # Fields before it may be of the same text, its line ends escaped.
    return 0 if FIELD.match(line) and "\\n" in line[: match.start()] else match.start()


def names_chunk(line: str) -> bool:
    """Return whether the line has a key of a chunk or of an error, escaped or not."""
    return ("choices" in line or "error" in line) and _CHUNK.search(line) is not None


def json_end(text: str, at: int) -> int | None:
    """Return where the JSON value or end marker that begins at ``at`` ends, None where none does."""
    if at < 0 or text.startswith("[DONE]", at):
        return at + len("[DONE]") if at >= 0 else None
    try:
        return parse_json(text, at)[1]
    except (ValueError, Unreadable):
        return None


def data_start(line: str, mark: int) -> int:
    """Return where the data of the event begins whose ``data:`` stands at ``mark``."""
    match = _DATA.match(line, mark)
    return mark if match is None else match.end()


def escaped_events(text: str) -> str | None:
    r"""Return the events of a text whose line ends were written as ``\n``; None where it is not that.

    Its quotes may be escaped as well, as in what stands between the quotes of a JSON string.
    """
    events = _line_ends_undone(text)
    if events is None and _ESCAPED_QUOTE.search(text):
        try:
            inner: str = json.loads(f'"{text.strip()}"', strict=False)
        except ValueError:
            return None
        return escaped_events(inner) or inner.replace("\r\n", "\n").removesuffix("\n") + "\n"
    return events


def _line_ends_undone(text: str) -> str | None:
    found = []
    at = 0
    while at < len(text):
        field_end = text.find(":", at) + 1
        if not FIELD.match(text, at):
            return None
        start = data_start(text, at)
        end = json_end(text, start) if start != at else text.find("\\n", field_end)
        if end is None or end < 0:
            return None
        mark = _ESCAPED_END.match(text, end)
        if mark is None:
            found.append(text[at:end] + "\n")
            return "".join(found) if not text[end:].strip() and len(found) > 1 else None
        found.append(text[at:end] + mark[0].replace("\\r", "").replace("\\n", "\n"))
        at = mark.end()
    return "".join(found)


def prefix_pattern(prefixes: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern for what was written before each event, None where the prefixes have no one form."""
    if any(len(prefix) > _LONGEST_PREFIX for prefix in prefixes):
        return None
    rows = [_TOKEN.findall(prefix) for prefix in dict.fromkeys(prefixes)]
    if (
        len({tuple(token if token in _PUNCTUATION else token[:1].isspace() for token in row) for row in rows})
        != 1
    ):
        return None
    columns = [set(column) for column in zip(*rows, strict=True)]
    blank = _pattern_of(columns.pop()) if columns and min(columns[-1]).isspace() else ""
    # Of an empty line loggers often drop the blanks at the end.
    return re.compile("".join(map(_pattern_of, columns)) + (f"(?:{blank}|[ \t]*$)" if blank else ""))


def _pattern_of(tokens: set[str]) -> str:
    if len(tokens) == 1 and not any(map(str.isdigit, min(tokens))):
        return re.escape(min(tokens))
    return r"\s+" if min(tokens).isspace() else r"[A-Za-z]+" if all(map(str.isalpha, tokens)) else r"\w+"


def repeated(prefixes: Sequence[str], data: Sequence[str]) -> set[int]:
    """Return which events another logger wrote again: the same ones, all under a prefix of its own.

    >>> repeated(["1 INFO a: ", "1 DEBUG b: ", "2 INFO a: ", "2 DEBUG b: "], ["x", "x", "y", "y"])
    {1, 3}
    """
    loggers: dict[str, list[int]] = {}
    for number, prefix in enumerate(prefixes):
        loggers.setdefault(_VARIES.sub("", prefix), []).append(number)
    first, *others = loggers.values() or ([],)
    told = [data[number] for number in first]
    return {
        number
        for other in others
        if len(other) == len(first) > 1 and [data[number] for number in other] == told
        for number in other
    }


def with_blank_lines(lines: Sequence[str]) -> str | None:
    """Return lines with each event's end put back; None where most data is no whole JSON by itself."""
    found = []
    events = broken = 0
    for line in lines:
        found.append(line)
        if line.startswith("data:"):
            start = data_start(line, 0)
            if start == 0:
                return None
            events += 1
            broken += json_end(line, start) != len(line.rstrip())
            found.append("")
    return "\n".join([*found, ""]) if events > 1 and broken * 2 < events else None


def is_log_record(value: Mapping[str, object]) -> bool:
    """Return whether an object is a record of a structured log, which stands beside events and is none."""
    return not _LOG_KEYS.isdisjoint(value) and "choices" not in value
