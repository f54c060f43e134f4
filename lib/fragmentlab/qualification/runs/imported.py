"""``runs import``: outcomes that someone's own gateway logged, taken as evidence ``imported``.

A log is JSON Lines; each line is a LogLine. Anything else is refused, whole: no raw text can come in.
Categories stay as they were recorded; the old compound one is never split.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from msgspec import Meta
from msgspec.structs import asdict

from fragmentlab.assembler import CATEGORIES
from fragmentlab.assembler.rules import Identity, IncomingKind
from fragmentlab.corpus.streams import own_id
from fragmentlab.disclosure import check_label, private_hash
from fragmentlab.errors import InputError
from fragmentlab.files import open_file, reason
from fragmentlab.formats import StrictStruct, decode
from fragmentlab.qualification.runs.rows import Rows
from fragmentlab.qualification.runs.run_files import file_sha256
from fragmentlab.qualification.runs.sources import SourceFacts
from fragmentlab.qualification.runs.writer import new_run
from fragmentlab.subjects.answer import STAGES, Ordinal

_MAX_LINE = 1 << 14
_STREAM = re.compile(r"s-[0-9a-f]{16}(-\d{1,6})?", re.ASCII)
_BATCH = "imported"


class LogLine(StrictStruct, frozen=True, kw_only=True):
    """One outcome that a gateway logged: of a stream of this kit, or of any task of its own."""

    stream: Annotated[
        str | None,
        Meta(description="A stream's id.", extra_json_schema={"pattern": "^s-[0-9a-f]{16}(-[0-9]{1,6})?$"}),
    ] = None
    task: Annotated[str | None, Meta(description="Instead of stream: any text; kept as a keyed hash.")] = None
    time: Annotated[str, Meta(description="ISO 8601 with a zone.")]
    outcome: Literal["accepted", "rejected", "no_calls"]
    category: Annotated[str | None, Meta(description="Of a rejection: a known category.")] = None
    stage: str | None = None
    event: Ordinal | None = None
    fragment: Ordinal | None = None
    call: Ordinal | None = None
    incoming_kind: IncomingKind | None = None
    incoming_empty: bool | None = None
    had_id: bool | None = None
    previous_identity: Identity | None = None
    next_identity: Identity | None = None

    def __post_init__(self) -> None:
        if (self.stream is None) == (not self.task):
            raise ValueError("a line holds exactly one of stream and task, and a task is not empty")
        if self.stream is not None and not _STREAM.fullmatch(self.stream):
            raise ValueError("stream must be an id of this kit (s- and 16 hex digits); use task otherwise")
        if _in_utc(self.time) is None:
            raise ValueError("time must be ISO 8601 with a zone, such as 2026-12-01T09:30:00Z")
        if self.outcome == "rejected" and self.category not in CATEGORIES:
            raise ValueError("a rejection needs a known category; see `fragmentlab explain`")
        facts = (self.category, *(getattr(self, name) for name in _DIAGNOSTIC))
        if self.outcome != "rejected" and any(fact is not None for fact in facts):
            raise ValueError("only a rejection has a category and diagnostic fields")
        if self.stage not in (None, *STAGES):
            raise ValueError(f"stage must be one of {', '.join(sorted(STAGES))}")


_DIAGNOSTIC = LogLine.__struct_fields__[LogLine.__struct_fields__.index("stage") :]


def import_log(
    log: Path, revision: str, runs: Path, *, say: Callable[[str], None] = lambda line: None
) -> Path:
    """Record a log as a run and return its folder.

    Raises InputError naming the first line that is not as described; nothing is recorded then.
    """
    check_label(revision, "the revision label")
    try:
        file = open_file(log)
    except OSError as error:
        raise InputError(f"{log} cannot be read: {reason(error)}") from None
    with file:
        sha256 = file_sha256(log)
        lines = sum(1 for _ in _lines(file))
        if not lines:
            raise InputError("the log holds no line")
        file.seek(0)
        # A hash of the log could be guessed from what it holds, so it is keyed like those of tasks.
        key = private_hash(sha256.encode(), runs)
        source = SourceFacts(_BATCH, "log", key, "imported", "imported", lines)
        subject = {"kind": "imported", "name": "an imported log"}
        names: Counter[str] = Counter()
        with new_run(runs, revision, subject, [source], say=say) as writer:
            for number, data in _lines(file):
                fact = decode(data, LogLine, f"line {number} of the log")
                writer.add(*_rows(fact, own_id(_name(fact, runs), names)))
            return writer.complete()


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
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


def _name(fact: LogLine, runs: Path) -> str:
    if fact.task is None:
        return str(fact.stream)
    return "t-" + private_hash(fact.task.encode("utf-8", "surrogatepass"), runs)[:16]


def _rows(fact: LogLine, stream: str) -> Rows:
    key = {"stream": stream, "batch": _BATCH, "evidence": "imported"}
    facts = {name: value for name, value in asdict(fact).items() if name not in ("stream", "task", "time")}
    met_null = fact.incoming_kind == "null" and fact.previous_identity == "established"
    # A log that does not speak of null continuations leaves them unknown, which is not zero.
    nulls = {"null_continuations": 1 if met_null else None, "tolerances": "{}"}
    diagnostics = [{**facts, **key, "fault": 1, "flags": "{}"}] if fact.outcome == "rejected" else []
    return {**facts, **key, **nulls}, diagnostics, {**key, "time": _in_utc(fact.time)}


def _in_utc(text: str) -> str | None:
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC).isoformat(timespec="seconds") if time.tzinfo else None
    except (ValueError, OverflowError):
        return None
