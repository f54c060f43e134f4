"""The kit's tables as pandas DataFrames: runs, results, faults, streams and fragments.

Each function takes what is at hand (recorded runs, batches or single streams) and returns one frame. A row
always names the ``batch`` and the ``stream`` that it is about, and the ``run`` that recorded it, so that
frames can be merged on them. Ordinals count from 1, sizes are bytes of UTF-8, nested values are JSON text.
Columns with a closed vocabulary are categorical, columns that may lack a value are nullable. Nothing in a
frame is raw: names that are not public are aliases (docs/design.md, section 5).

    >>> results_df().groupby("revision").null_continuations.sum().to_dict()
    {'empty-continuation-candidate': 480, 'keep-established': 480, 'reject-null-reconstruction': 480}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
import pyarrow as pa

from fragmentlab.assembler import CATEGORIES, Result, RuleSet
from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.assembler.rules import DEFAULT_RULES, IDENTITIES, INCOMING_KINDS
from fragmentlab.corpus.batches import MANIFEST, Batch, open_batch
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import ENDS, EVIDENCE, FIDELITIES, Stream, own_id
from fragmentlab.disclosure import KINDS, NameAliases, refuse_private, shown_name
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.qualification.runs.ledger import LEDGER
from fragmentlab.qualification.runs.run_files import Run, find_run, list_runs, runs_folders
from fragmentlab.subjects.answer import STAGES
from fragmentlab.subjects.interface import FAILED, FAILURES, UNLISTED, UNNAMED
from fragmentlab.wire.observing import observe

Rules: TypeAlias = "str | RuleSet | Iterable[str | RuleSet]"
Origin: TypeAlias = "str | Path | Run | Batch | Stream | Iterable[Origin] | None"
"""What rows are made from. Text names a folder of runs, a run, or a batch; None stands for the kit's own."""

_OUTCOMES = ("accepted", "rejected", "no_calls", FAILED)
_CATEGORIES = (*CATEGORIES, *([] if COMPOUND in CATEGORIES else [COMPOUND]), *FAILURES, UNLISTED, UNNAMED)
VOCABULARIES: Mapping[str, Sequence[str]] = {
    "evidence": EVIDENCE,
    "outcome": _OUTCOMES,
    "expected_outcome": _OUTCOMES,
    "stage": sorted(STAGES),
    "category": _CATEGORIES,
    "expected_category": _CATEGORIES,
    "incoming_kind": INCOMING_KINDS,
    "previous_identity": IDENTITIES,
    "next_identity": IDENTITIES,
    "decision": ("keep", "set", "reject"),
    "fidelity": FIDELITIES,
    "end": ENDS,
    "framing": ("sse", "jsonl"),
}
"""Column -> its categories, in the order of tables. A log or gateway may add others; they come last."""
_RUNS = dict.fromkeys(("run", "revision", "subject", "rules"), "str") | {
    "reconstruction": "bool",
    "started": "datetime64[us, UTC]",
    **dict.fromkeys(("streams", *_OUTCOMES), "int64"),
    "evidence": "str",
}
_KEYS = {
    "run": "str",
    "revision": "str",
    "rules": "str",
    "batch": "str",
    "stream": "str",
    "evidence": "category",
}
_NAMES = dict.fromkeys(KINDS, "str")
_COUNTS = dict.fromkeys(("events", "fragments", "arguments_bytes", "null_continuations"), "int64")
_RESULTS = {
    **_KEYS,
    **_NAMES,
    **dict.fromkeys(("outcome", "stage", "category", "incoming_kind"), "category"),
    **dict.fromkeys((*_COUNTS, "first_null_fragment", "calls", "faults"), "Int64"),
    **dict.fromkeys(("tolerances", "body_sha256", "conditions_sha256"), "str"),
    **dict.fromkeys(("expected_outcome", "expected_category"), "category"),
    **dict.fromkeys(("as_expected", "calls_match", "executable"), "boolean"),
}
_FAULTS = {
    **_KEYS,
    "fault": "int64",
    **dict.fromkeys(("category", "stage"), "category"),
    **dict.fromkeys(("event", "fragment", "call"), "Int64"),
    "incoming_kind": "category",
    **dict.fromkeys(("incoming_empty", "had_id"), "boolean"),
    **dict.fromkeys(("previous_identity", "next_identity"), "category"),
    "flags": "str",
}
_STREAMS = {
    **dict.fromkeys(("batch", "stream"), "str"),
    "evidence": "category",
    **_NAMES,
    **dict.fromkeys(("fidelity", "end", "framing"), "category"),
    **dict.fromkeys(("pair", "tools"), "Int64"),
    "bytes": "int64",
    **_COUNTS,
    **dict.fromkeys(("shapes", "tolerances"), "str"),
}
_FRAGMENTS = {
    **dict.fromkeys(("event", "fragment"), "int64"),
    "index": "Int64",
    **dict.fromkeys(
        ("incoming_kind", "previous_identity", "next_identity", "decision", "category"), "category"
    ),
    **dict.fromkeys(("name_bytes", "arguments_bytes"), "int64"),
    **dict.fromkeys(("id_alias", "incoming_alias"), "str"),
}
_FAULT_FIELDS = tuple(name for name in _FAULTS if name not in (*_KEYS, "fault", "flags"))
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def runs_df(runs: Origin = None) -> pd.DataFrame:
    """Return one row per recorded run, in the order of the ledger.

    ``runs`` is a folder of runs, a run by label, id or folder, or several; without it the kit's own.

    ================== =================== =================================================================
    column             dtype               meaning
    ================== =================== =================================================================
    run                str                 id of the run
    revision           str                 label that the tested revision was recorded under
    subject            str                 kind of what was tested: ``assembler``, ``exec``, ``imported``...
    rules              str                 rule set, where the subject has one
    reconstruction     bool                rules of the past, rebuilt: never history
    started            datetime64[us, UTC] when the run began
    streams            int64               streams put to the subject
    accepted, rejected int64               streams by outcome; also ``no_calls`` and ``failed``
    evidence           str                 JSON: kind -> ``streams`` and ``null_continuations``
    ================== =================== =================================================================
    """
    opened = list(_opened(runs))
    if not all(isinstance(run, Run) for run in opened):
        raise InputError("a batch holds streams, not runs; name a folder of runs or a run")
    return _typed(map(_run_row, opened), _RUNS)


def results_df(origin: Origin = None, rules: Rules = DEFAULT_RULES) -> pd.DataFrame:
    """Return one row per stream: what a run recorded of it, or what each of ``rules`` makes of it now.

    ``origin`` is one or several of: a folder of runs, a run, a batch, a stream; without it the kit's runs.
    Raises InputError for what is none of these, and where a hash is not as recorded.

    =================== ======== ============================================================================
    column              dtype    meaning
    =================== ======== ============================================================================
    run, revision       str      of a recorded row; missing where the stream was assembled now
    rules               str      rule set, where the subject has one
    batch, stream       str      ids
    evidence            category controlled, captured, live or imported
    provider            str      who sent it, by public name or alias; also ``server`` and ``model``
    outcome             category accepted, rejected, no_calls or failed
    stage, category     category of the fault that decided
    incoming_kind       category what the deciding fragment said of its ID
    events, fragments   Int64    counts; missing in an imported log, as the next two
    arguments_bytes     Int64    bytes of all arguments
    null_continuations  Int64    fragments with a null ID after an established one
    first_null_fragment Int64    ordinal of the first of these (recorded rows)
    calls, faults       Int64    counts (rows assembled now)
    tolerances          str      JSON: tolerated oddity -> times
    body_sha256         str      hash of the bytes; ``conditions_sha256`` of tools, limits and end (recorded)
    expected_outcome    category what a vector expects; also ``expected_category`` (recorded rows)
    as_expected         boolean  whether that came true (recorded rows)
    calls_match         boolean  whether the calls are those that the stream carries (recorded rows)
    executable          boolean  whether the calls may serve execution (rows assembled now)
    =================== ======== ============================================================================
    """
    return _joined(origin, rules, "results", _RESULTS)


def faults_df(origin: Origin = None, rules: Rules = DEFAULT_RULES) -> pd.DataFrame:
    """Return one row per fault of each stream, in the order of checks; the first one decides.

    ``origin`` as for ``results_df``.

    ================= ======== ==============================================================================
    column            dtype    meaning
    ================= ======== ==============================================================================
    run, revision     str      of a recorded row; missing where the stream was assembled now
    rules             str      rule set, where the subject has one
    batch, stream     str      ids
    evidence          category controlled, captured, live or imported
    fault             int64    ordinal within the stream
    category, stage   category what was broken, and where it was checked
    event             Int64    ordinal; also ``fragment`` and ``call``; missing at the end of a stream
    incoming_kind     category what the fragment said of its ID
    incoming_empty    boolean  whether it was an empty string
    had_id            boolean  whether an ID was known before
    previous_identity category identity before the fragment; ``next_identity`` after it
    flags             str      JSON: further facts, from a closed vocabulary
    ================= ======== ==============================================================================
    """
    return _joined(origin, rules, "faults", _FAULTS)


def streams_df(*batches: Origin, rules: Rules = DEFAULT_RULES) -> pd.DataFrame:
    """Return one row per stream of some batches: where it comes from and what it shows on the wire.

    Without an argument: the batches that the kit ships. Streams can be given, too.

    ================== ======== =============================================================================
    column             dtype    meaning
    ================== ======== =============================================================================
    batch, stream      str      ids
    evidence           category controlled, captured, live or imported
    provider           str      who sent it, by public name or alias; also ``server`` and ``model``
    fidelity           category what the recording kept: reads, events or chunks
    end                category how the transport ended: clean, aborted or unknown
    framing            category sse or jsonl
    pair               Int64    number shared by a control and its target within a batch
    tools              Int64    known tools; missing where they are unknown
    bytes              int64    of the recording
    events, fragments  int64    counts; also ``arguments_bytes`` and ``null_continuations``
    shapes             str      JSON: list of labels (``fragmentlab.wire.observing.SHAPES``)
    tolerances         str      JSON: tolerated oddity -> times
    ================== ======== =============================================================================
    """
    origin: Origin = list(batches) or sorted(
        path.parent for path in data_folder("batches").glob(f"*/{MANIFEST}")
    )
    return stream_frames(assembled(_opened(origin), rules)).streams


def fragments_df(result: Result) -> pd.DataFrame:
    """Return one row per fragment of one response, in order of arrival (the timeline of a diagnosis).

    ================= ======== ==============================================================================
    column            dtype    meaning
    ================= ======== ==============================================================================
    event, fragment   int64    ordinals
    index             Int64    the index that the fragment names; missing where it has none
    incoming_kind     category what it says of the ID
    previous_identity category identity of its call before; ``next_identity`` after it
    decision          category keep, set or reject, with ``category`` where it is refused
    name_bytes        int64    bytes that it added; also ``arguments_bytes``
    id_alias          str      letter of the ID known afterwards; ``incoming_alias`` of the one it says
    ================= ======== ==============================================================================
    """
    return _typed(({name: getattr(row, name) for name in _FRAGMENTS} for row in result.timeline), _FRAGMENTS)


@dataclass(frozen=True)
class AssembledStream:
    """One stream under some rule sets, with the ids and names by which it may be shown."""

    stream: Stream
    ids: Mapping[str, Any]
    names: Mapping[str, str | None]
    results: Mapping[str, Result]
    """Rule set, as it is shown -> what it makes of the stream."""

    @property
    def first(self) -> Result:
        """What the first rule set makes of it."""
        return next(iter(self.results.values()))

    def stream_row(self) -> dict[str, Any]:
        stream, result = self.stream, self.first
        return {
            **self.ids,
            **self.names,
            "fidelity": stream.fidelity,
            "end": stream.end,
            "framing": stream.framing,
            "tools": None if stream.tools is None else len(stream.tools),
            "bytes": len(stream.body),
            **{name: result.counts[name] for name in _COUNTS},
            "shapes": _json(sorted(observe(stream.body, stream.framing))),
            "tolerances": _json(result.tolerances),
        }

    def result_rows(self) -> Iterator[dict[str, Any]]:
        for rules, result in self.results.items():
            first = result.faults[0] if result.faults else None
            yield {
                **self.ids,
                **self.names,
                "rules": rules,
                "outcome": result.outcome,
                "category": result.category,
                "stage": first.stage if first else None,
                "incoming_kind": first.incoming_kind if first else None,
                **{name: result.counts[name] for name in (*_COUNTS, "calls")},
                "faults": len(result.faults) + result.counts["omitted_faults"],
                "tolerances": _json(result.tolerances),
                "executable": result.executable,
            }

    def fault_rows(self) -> Iterator[dict[str, Any]]:
        for rules, result in self.results.items():
            for number, fault in enumerate(result.faults, 1):
                facts = {name: getattr(fault, name) for name in _FAULT_FIELDS}
                yield {
                    **self.ids, "rules": rules, "fault": number, **facts,
                    "flags": _json(fault.flags),
                }  # fmt: skip


def assembled(
    sources: Iterable[Run | Batch | Stream], rules: Rules = DEFAULT_RULES
) -> Iterator[AssembledStream]:
    """Assemble each stream of the batches once under every rule set; nothing of a stream is kept here."""
    aliases, alone, own = NameAliases(), 0, 0
    rule_sets = shown_rule_sets(rules)
    for source in sources:
        if isinstance(source, Run):
            raise InputError("a recorded run holds results, not streams; name its batch")
        label, streams = None, source.streams() if isinstance(source, Batch) else [source]
        if isinstance(source, Batch):
            label = shown_name(source.name, f"your batch {own + 1}" if own else "your batch")
            own += label.startswith("your batch")
        pairs, names_given = dict[str, int](), Counter[str]()
        for stream in streams:
            alone += label is None
            ids = {
                "batch": label,
                "stream": own_id(stream.shown_id, names_given) if label else f"stream-{alone}",
                "evidence": stream.evidence,
                "pair": None if stream.pair is None else pairs.setdefault(stream.pair, len(pairs) + 1),
            }
            names = {kind: aliases.show(kind, getattr(stream, kind)) for kind in KINDS}
            results = {name: stream.assemble(rules=each, diagnose=True) for name, each in rule_sets.items()}
            yield AssembledStream(stream, ids, names, results)


@dataclass(frozen=True)
class StreamFrames:
    """``streams_df``, ``results_df`` and ``faults_df`` of streams that were assembled once."""

    streams: pd.DataFrame
    results: pd.DataFrame
    faults: pd.DataFrame


def stream_frames(found: Iterable[AssembledStream]) -> StreamFrames:
    """Make the three frames in one pass."""
    rows: tuple[list[dict[str, Any]], ...] = ([], [], [])
    for each in found:
        rows[0].append(each.stream_row())
        rows[1].extend(each.result_rows())
        rows[2].extend(each.fault_rows())
    return StreamFrames(_typed(rows[0], _STREAMS), _typed(rows[1], _RESULTS), _typed(rows[2], _FAULTS))


def _joined(
    origin: Origin, rules: Rules, name: Literal["results", "faults"], columns: Mapping[str, str]
) -> pd.DataFrame:
    opened = list(_opened(origin))
    runs = [source for source in opened if isinstance(source, Run)]
    streams = [source for source in opened if not isinstance(source, Run)]
    frames = [_recorded(run, run.results if name == "results" else run.diagnostics) for run in runs]
    if streams or not frames:
        frames.append(getattr(stream_frames(assembled(streams, rules)), name).astype(object))
    return _typed(pd.concat(frames, ignore_index=True), columns)


def _recorded(run: Run, rows: Any) -> pd.DataFrame:
    facts = _run_row(run)
    return rows.to_pandas(types_mapper=_NULLABLE.get).assign(
        **{name: facts[name] for name in ("run", "revision", "rules")}
    )


def _run_row(run: Any) -> dict[str, Any]:
    header = run.header
    return {
        "run": run.id,
        "revision": run.revision,
        "subject": run.subject["kind"],
        "rules": run.rules,
        "reconstruction": run.is_reconstruction,
        "started": pd.Timestamp(header["started"]),
        "streams": header["counts"]["streams"],
        **{outcome: header["counts"].get(outcome, 0) for outcome in _OUTCOMES},
        "evidence": _json(header["evidence"]),
    }


def _opened(origin: Origin) -> Iterator[Run | Batch | Stream]:
    if origin is None:
        yield from list_runs(data_folder("runs"))
    elif isinstance(origin, (Run, Batch, Stream)):
        yield origin
    elif not isinstance(origin, (str, Path)):
        for each in origin:
            yield from _opened(each)
    elif (Path(origin) / LEDGER).exists():
        yield from list_runs(Path(origin))
    elif (Path(origin) / MANIFEST).exists() or (data_folder("batches") / origin / MANIFEST).exists():
        yield refuse_private(open_batch(origin))
    else:
        yield find_run(str(origin), [*runs_folders(None), data_folder("runs")])


def shown_rule_sets(rules: Rules) -> dict[str, RuleSet]:
    """Name as it is shown -> rule set, in the order given."""
    sets: dict[str, RuleSet] = {}
    for each in [rules] if isinstance(rules, (str, RuleSet)) else rules:
        found = each if isinstance(each, RuleSet) else find_rules(each)
        others = sum(name.startswith("your rule set") for name in sets)
        sets[shown_name(found.name, f"your rule set {others + 1}" if others else "your rule set")] = found
    return sets


def _typed(rows: Any, columns: Mapping[str, str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows).reindex(columns=list(columns))
    return frame.astype({name: _dtype(frame[name], dtype) for name, dtype in columns.items()})


def _dtype(values: pd.Series, dtype: str) -> Any:
    if dtype != "category":
        return dtype
    known = VOCABULARIES[str(values.name)]
    return pd.CategoricalDtype([*known, *sorted(set(values.dropna()) - set(known))])


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
