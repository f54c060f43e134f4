"""``runs import``: outcomes that someone's own gateway logged, taken as evidence ``imported``.

A log is JSON Lines. Each line holds ``stream`` (an id of this kit) or ``task`` (any text, kept as a hash),
``time`` (ISO 8601 with a zone), ``outcome`` and, of a rejection, ``category``; it may hold the bounded
diagnostic fields of docs/design.md, section 5. Anything else is refused, whole: no raw text can come in.
Categories stay as they were recorded; the old compound one is never split.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from fragmentlab.assembler import CATEGORIES, IDENTITIES, INCOMING_KINDS
from fragmentlab.disclosure import check_label, for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import reason
from fragmentlab.qualification.runs.record import tidy
from fragmentlab.qualification.runs.rows import DIAGNOSTICS, RESULTS, Row
from fragmentlab.qualification.runs.writer import RunWriter, unwritable
from fragmentlab.subjects.answer import STAGES

_MAX_LINE = 1 << 14
_STREAM = re.compile(r"s-[0-9a-f]{16}(-\d{1,6})?", re.ASCII)
_BATCH = "imported"
_CLOSED: dict[str, tuple[Any, ...]] = {
    "stage": tuple(sorted(STAGES)),
    "incoming_kind": INCOMING_KINDS,
    "incoming_empty": (True, False),
    "had_id": (True, False),
    "previous_identity": IDENTITIES,
    "next_identity": IDENTITIES,
}
_ORDINALS = ("event", "fragment", "call")
_DIAGNOSTIC = (*_CLOSED, *_ORDINALS)
_FIELDS = frozenset({"stream", "task", "time", "outcome", "category", *_DIAGNOSTIC})


def import_log(
    log: Path, revision: str, runs: Path, *, say: Callable[[str], None] = lambda line: None
) -> Path:
    """Record a log as a run and return its folder.

    Raises InputError naming the first line that is not as described; nothing is recorded then.
    """
    check_label(revision, "the revision label")
    if log.exists() and not (log.is_file() or log.is_dir()):
        raise InputError(
            f"{for_terminal(str(log))} is not a regular file; it is read twice, so save it first"
        )
    try:
        with log.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            lines = sum(1 for _ in _lines(file))
            file.seek(0)
            return _record(_lines(file), _header(revision, sha256, lines), runs, say)
    except IsADirectoryError:
        raise InputError(f"{for_terminal(str(log))} is a directory; name a file") from None
    except FileNotFoundError as error:
        raise InputError(f"{for_terminal(str(log))} cannot be read: {reason(error)}") from None
    except OSError as error:
        raise unwritable(error) from None


def _header(revision: str, sha256: str, lines: int) -> dict[str, Any]:
    source = {
        "name": _BATCH,
        "kind": "log",
        "sha256": sha256,
        "evidence": "imported",
        "declared": "imported",
        "count": lines,
    }
    return {
        "revision": revision,
        "subject": {"kind": "imported", "name": "an imported log"},
        "reconstruction": None,
        "sources": [source],
    }


def _record(
    lines: Iterator[tuple[int, bytes]], header: dict[str, Any], runs: Path, say: Callable[[str], None]
) -> Path:
    if not header["sources"][0]["count"]:
        raise InputError("the log holds no line")
    runs.mkdir(parents=True, exist_ok=True)
    tidy(runs, say)
    times: Counter[str] = Counter()
    taken: set[str] = set()
    with RunWriter(runs, header) as writer:
        for number, line in lines:
            fact = _checked(line, f"line {number} of the log")
            writer.add(*_rows(fact, _own_name(_name(fact), times, taken)))
        return writer.complete()


def _own_name(name: str, times: Counter[str], taken: set[str]) -> str:
    """The name, numbered where it came before; a log may hold an id that is numbered like that itself."""
    while True:
        times[name] += 1
        own = name if times[name] == 1 else f"{name}-{times[name]}"
        if own not in taken:
            taken.add(own)
            return own


def _lines(file: Any) -> Iterator[tuple[int, bytes]]:
    for number in count(1):
        line = file.readline(_MAX_LINE + 1)
        if not line:
            return
        if len(line) > _MAX_LINE:
            raise InputError(
                f"line {number} of the log is longer than {_MAX_LINE >> 10} KiB; bounded facts never are"
            )
        if line.strip():
            yield number, line


def _checked(line: bytes, where: str) -> dict[str, Any]:
    try:
        fact = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise InputError(f"{where} is not one JSON object without repeated keys") from None
    if not isinstance(fact, dict):
        raise InputError(f"{where} is not a JSON object")
    if fact.keys() - _FIELDS:
        raise InputError(f"{where} has a field that is not bounded; allowed are {', '.join(sorted(_FIELDS))}")
    if len({"stream", "task"} & fact.keys()) != 1:
        raise InputError(f"{where} needs either stream or task")
    _check_key(fact, where)
    _check_time(fact.get("time"), where)
    _check_outcome(fact, where)
    _check_diagnostic(fact, where)
    return fact


def _check_key(fact: dict[str, Any], where: str) -> None:
    if "stream" in fact and not (isinstance(fact["stream"], str) and _STREAM.fullmatch(fact["stream"])):
        raise InputError(
            f"{where}: stream must be an id of this kit (s- and 16 hex digits); use task otherwise"
        )
    if "task" in fact and not (isinstance(fact["task"], str) and fact["task"]):
        raise InputError(f"{where}: task must be a nonempty string")


def _check_time(value: Any, where: str) -> None:
    try:
        known = isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
        known = known and bool(_in_utc(value))
    except (ValueError, OverflowError):
        known = False
    if not known:
        raise InputError(f"{where}: time must be ISO 8601 with a zone, such as 2026-12-01T09:30:00Z")


def _check_outcome(fact: dict[str, Any], where: str) -> None:
    outcome, category = fact.get("outcome"), fact.get("category")
    if outcome not in ("accepted", "rejected", "no_calls"):
        raise InputError(f"{where}: outcome must be accepted, rejected or no_calls")
    if outcome == "rejected" and not (isinstance(category, str) and category in CATEGORIES):
        raise InputError(f"{where}: a rejection needs a known category; see `fragmentlab explain`")
    if outcome != "rejected" and category is not None:
        raise InputError(f"{where}: only a rejection has a category")


def _check_diagnostic(fact: dict[str, Any], where: str) -> None:
    present = {name: fact[name] for name in _DIAGNOSTIC if fact.get(name) is not None}
    if present and fact["outcome"] != "rejected":
        raise InputError(f"{where}: only a rejection has diagnostic fields")
    for name, value in present.items():
        if name in _ORDINALS:
            if type(value) is not int or not 0 < value < 1 << 31:
                raise InputError(f"{where}: {name} must be a whole number of at least 1")
        elif not any(type(value) is type(known) and value == known for known in _CLOSED[name]):
            raise InputError(f"{where}: {name} has an unknown value")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def _name(fact: dict[str, Any]) -> str:
    if "stream" in fact:
        return str(fact["stream"])
    return "t-" + hashlib.sha256(fact["task"].encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _rows(fact: dict[str, Any], stream: str) -> tuple[Row, list[Row], Row]:
    key = {"stream": stream, "batch": _BATCH, "evidence": "imported"}
    nothing = dict.fromkeys(RESULTS.names)
    met_null = fact.get("incoming_kind") == "null" and fact.get("previous_identity") == "established"
    result = {
        **nothing,
        **key,
        "outcome": fact["outcome"],
        "category": fact.get("category"),
        "stage": fact.get("stage"),
        "incoming_kind": fact.get("incoming_kind"),
        # A log that does not speak of it leaves it unknown, which is not zero.
        "null_continuations": 1 if met_null else None,
        "tolerances": "{}",
    }
    diagnostics = []
    if fact["outcome"] == "rejected":
        facts = {name: fact.get(name) for name in ("category", *_DIAGNOSTIC)}
        diagnostics = [{**dict.fromkeys(DIAGNOSTICS.names), **key, **facts, "fault": 1, "flags": "{}"}]
    timing = {"stream": stream, "batch": _BATCH, "seconds": None, "time": _in_utc(fact["time"])}
    return result, diagnostics, timing


def _in_utc(time: str) -> str:
    return datetime.fromisoformat(time).astimezone(UTC).isoformat(timespec="seconds")
