"""From an observation to rows: one result per stream, one diagnostic per fault, and apart from both a timing.

Facts of the stream (events, fragments, argument bytes, null continuations, tolerances) are the kit's own
whole reading of it, the same for every subject; outcome, stage, category and faults are the subject's. Raw
calls are compared here and dropped: only booleans remain.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from msgspec.structs import astuple

from fragmentlab.assembler import Limits, Result
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import KINDS
from fragmentlab.formats import canonical
from fragmentlab.qualification.runs.sources import Item
from fragmentlab.subjects.assembler import listing, raw_calls
from fragmentlab.subjects.interface import Observation, RawCall

_TYPES = {"": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def _schema(columns: str) -> pa.Schema:
    pairs = (column.partition(":") for column in columns.split())
    return pa.schema([(name, _TYPES[kind]) for name, _, kind in pairs])


RESULTS = _schema(
    "stream batch evidence provider server model body_sha256 conditions_sha256 outcome stage category "
    "incoming_kind events:int fragments:int arguments_bytes:int null_continuations:int "
    "first_null_fragment:int tolerances expected_outcome expected_category as_expected:bool calls_match:bool"
)
"""One row per stream. ``conditions_sha256`` covers tools, limits and the end; ``first_null_fragment`` is the
ordinal of the first null continuation, so that a sentence about them can be followed down; ``tolerances`` is
JSON text; ``calls_match`` says whether an accepted stream's calls are those that the vector expects or,
without one, those that the kit assembles (null where neither has any)."""
DIAGNOSTICS = _schema(
    "stream batch evidence fault:int category stage event:int fragment:int call:int incoming_kind "
    "incoming_empty:bool had_id:bool previous_identity next_identity flags"
)
"""One row per fault, ``fault`` counting from 1 within its stream; ``flags`` is JSON text."""
TIMINGS = _schema("stream batch seconds:float time")
"""Outside row equality: wall seconds of one stream, or the time that an imported log gives."""
PARTS = {"results.parquet": RESULTS, "diagnostics.parquet": DIAGNOSTICS, "timings.parquet": TIMINGS}
"""File name -> schema of the three parts that every run has."""

Row = dict[str, Any]
Rows = tuple[Row, list[Row], Row]
"""The result, the diagnostics and the timing of one stream."""
_FIRST_LIMITS = frozenset(
    "events event_bytes calls arguments_bytes depth number_digits diagnosed_faults timeline_rows".split()
)
"""Limits that the hash of conditions always covers. A later one counts only where a stream changes it, so
that runs recorded before it came stay comparable."""
_FAULT_FIELDS = DIAGNOSTICS.names[4:-1]
_COUNTS = ("events", "fragments", "arguments_bytes", "null_continuations")


def rows_of(item: Item, observation: Observation) -> Rows:
    """Return the result, the diagnostics and the timing of one observed stream."""
    stream = item.stream
    reading = observation.reading or stream.assemble(diagnose=True, limits=listing(stream.limits))
    key = {"stream": stream.id, "batch": item.batch}
    faults = [
        {
            **key,
            "evidence": stream.evidence,
            "fault": number,
            **{name: getattr(fault, name) for name in _FAULT_FIELDS},
            "flags": canonical(fault.flags),
        }
        for number, fault in enumerate(observation.faults, 1)
    ]
    timing = {**key, "seconds": observation.seconds, "time": None}
    return {**key, **_result(item, observation, reading)}, faults, timing


def _conditions_sha256(stream: Stream) -> str:
    """One hash over what a stream is judged by beside its bytes: tools, limits and how it ended."""
    defaults = dataclasses.asdict(Limits())
    limits = {
        name: value
        for name, value in dataclasses.asdict(stream.limits).items()
        if name in _FIRST_LIMITS or value != defaults[name]
    }
    return hashlib.sha256(canonical([stream.tools, limits, stream.end, stream.framing]).encode()).hexdigest()


def _result(item: Item, observation: Observation, reading: Result) -> Row:
    stream, expected = item.stream, item.expected
    primary = observation.faults[0] if observation.faults else None
    nulls = (
        row.fragment
        for row in reading.timeline
        if row.incoming_kind == "null" and row.previous_identity == "established"
    )
    decided = (observation.outcome, observation.category)
    wanted = (expected.outcome, expected.category) if expected else (None, None)
    matches = _calls_match(item, observation, reading)
    return {
        **{name: getattr(stream, name) for name in ("evidence", *KINDS, "body_sha256")},
        "conditions_sha256": _conditions_sha256(stream),
        "outcome": observation.outcome,
        "stage": primary.stage if primary else None,
        "category": observation.category,
        "incoming_kind": primary.incoming_kind if primary else None,
        **{name: reading.counts[name] for name in _COUNTS},
        "first_null_fragment": next(nulls, None),
        "tolerances": canonical(reading.tolerances),
        "expected_outcome": wanted[0],
        "expected_category": wanted[1],
        "as_expected": decided == wanted and matches is not False if expected else None,
        "calls_match": matches,
    }


def _calls_match(item: Item, observation: Observation, reading: Result) -> bool | None:
    if observation.outcome != "accepted":
        return None
    calls = [astuple(call) for call in item.expected.calls] if item.expected else raw_calls(reading)
    return same_calls(observation.calls, calls) if calls else None


def same_calls(calls: Sequence[RawCall], wanted: Sequence[RawCall]) -> bool:
    """Whether two lists of calls are the same: IDs and names as text, arguments as text or as JSON values."""
    return len(calls) == len(wanted) and all(
        a[:2] == b[:2] and (a[2] == b[2] or _same_json(a[2], b[2]))
        for a, b in zip(calls, wanted, strict=True)
    )


def _same_json(first: str, second: str) -> bool:
    try:
        return canonical(json.loads(first)) == canonical(json.loads(second))
    except (ValueError, RecursionError):
        return False
