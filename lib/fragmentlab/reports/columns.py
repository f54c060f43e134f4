"""The columns of the kit's DataFrames: declared once, for their types and for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import pandas as pd

from fragmentlab.assembler import CATEGORIES
from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.assembler.rules import IDENTITIES, INCOMING_KINDS
from fragmentlab.corpus.streams import ENDS, EVIDENCE, FIDELITIES
from fragmentlab.subjects.answer import STAGES
from fragmentlab.subjects.interface import FAILED, FAILURES, UNLISTED, UNNAMED

Function = TypeVar("Function", bound=Callable[..., Any])
Self = TypeVar("Self")
Value = TypeVar("Value")

OUTCOMES = ("accepted", "rejected", "no_calls", FAILED)
_CATEGORIES = tuple(dict.fromkeys((*CATEGORIES, COMPOUND, *FAILURES, UNLISTED, UNNAMED)))
VOCABULARIES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("outcome", "expected_outcome"), OUTCOMES),
    **dict.fromkeys(("category", "expected_category"), _CATEGORIES),
    **dict.fromkeys(("previous_identity", "next_identity"), IDENTITIES),
    "evidence": EVIDENCE,
    "stage": sorted(STAGES),
    "incoming_kind": INCOMING_KINDS,
    "decision": ("keep", "set", "reject"),
    "fidelity": FIDELITIES,
    "end": ENDS,
    "framing": ("sse", "jsonl"),
}
"""Column -> its categories, in the order of tables. A log or gateway may add others; they come last."""

_IDS = """
run, revision: str: of a recorded row; missing where the stream was assembled now
rules: str: rule set, where the subject has one
batch, stream: str: ids
evidence: category: controlled, captured, live or imported"""
_NAMES = """
provider, server, model: str: who sent it, by public name or alias"""
RUN_COLUMNS = """
run, revision: str: id, and the label that the tested revision was recorded under
subject: str: kind of what was tested: assembler, command, imported log ...
rules: str: rule set, where the subject has one
reconstruction: bool: rules of the past, rebuilt: never history
started: datetime64[us, UTC]: when the run began
streams: int64: streams put to the subject
accepted, rejected, no_calls, failed: int64: streams by outcome
evidence: str: JSON, kind -> streams and null_continuations"""
RESULT_COLUMNS = f"""{_IDS}{_NAMES}
outcome: category: accepted, rejected, no_calls or failed
stage, category: category: of the fault that decided
incoming_kind: category: what the deciding fragment said of its ID
events, fragments: Int64: counts; missing in an imported log, as the next two
arguments_bytes: Int64: bytes of all arguments
null_continuations: Int64: fragments with a null ID after an established one
first_null_fragment: Int64: ordinal of the first of these (recorded rows)
calls, faults: Int64: counts (rows assembled now)
tolerances: str: JSON, tolerated oddity -> times
body_sha256, conditions_sha256: str: hash of the bytes, and of tools, limits and end (recorded rows)
expected_outcome, expected_category: category: what a vector expects (recorded rows)
as_expected, calls_match: boolean: whether that came true, and whether the calls are right (recorded rows)
executable: boolean: whether the calls may serve execution (rows assembled now)"""
FAULT_COLUMNS = f"""{_IDS}
fault: int64: ordinal within the stream
category, stage: category: what was broken, and where it was checked
event, fragment, call: Int64: ordinals; missing at the end of a stream
incoming_kind: category: what the fragment said of its ID
incoming_empty, had_id: boolean: whether it was an empty string, and whether an ID was known before
previous_identity, next_identity: category: before and after the fragment
flags: str: JSON, further facts from a closed vocabulary"""
STREAM_COLUMNS = f"""
batch, stream: str: ids
evidence: category: controlled, captured, live or imported{_NAMES}
fidelity: category: what the recording kept: reads, events or chunks
end: category: how the transport ended: clean, aborted or unknown
framing: category: sse or jsonl
pair: Int64: number shared by a control and its target within a batch
tools: Int64: known tools; missing where they are unknown
bytes: int64: of the recording
events, fragments: int64: counts
arguments_bytes: int64: bytes of all arguments
null_continuations: int64: fragments with a null ID after an established one
shapes: str: JSON, labels of fragmentlab.wire.observing.SHAPES
tolerances: str: JSON, tolerated oddity -> times"""
FRAGMENT_COLUMNS = """
event, fragment: int64: ordinals
index: Int64: the index that the fragment names; missing where it has none
incoming_kind: category: what it says of the ID
previous_identity, next_identity: category: identity of its call before and after
decision, category: category: keep, set or reject, and why
name_bytes, arguments_bytes: int64: bytes that it added
id_alias, incoming_alias: str: letters of the ID known afterwards and of the one it says"""


def dtypes(declared: str) -> dict[str, str]:
    """Column -> dtype, in order."""
    lines = (line.split(": ", 2) for line in declared.strip().splitlines())
    return {name: dtype for names, dtype, _ in lines for name in names.split(", ")}


def as_frame(rows: Any, declared: str) -> pd.DataFrame:
    """Rows or a DataFrame as a frame with exactly the declared columns and types."""
    columns = dtypes(declared)
    frame = pd.DataFrame(rows).reindex(columns=list(columns))
    return frame.astype({name: _dtype(frame[name], dtype) for name, dtype in columns.items()})


def documented(declared: str) -> Callable[[Function], Function]:
    """Add the declared columns to the docstring of a function that returns them."""
    lines = (line.split(": ", 2) for line in declared.strip().splitlines())
    told = "\n".join(f"    - ``{names}`` ({dtype}): {meaning}" for names, dtype, meaning in lines)

    def add(function: Function) -> Function:
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Columns:\n\n{told}\n    "
        return function

    return add


def once(method: Callable[[Self], Value]) -> Callable[[Self], Value]:
    """Compute what a method returns once for each object."""

    @wraps(method)
    def kept(self: Self) -> Value:
        values, key = vars(self), f"_{method.__name__}"
        if key not in values:
            values[key] = method(self)
        return cast(Value, values[key])

    return kept


def _dtype(values: pd.Series, dtype: str) -> Any:
    if dtype != "category":
        return dtype
    known = VOCABULARIES[str(values.name)]
    return pd.CategoricalDtype([*known, *sorted(set(values.dropna()) - set(known))])
