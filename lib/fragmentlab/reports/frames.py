"""The kit's tables as pandas DataFrames: runs, results, faults, streams and fragments.

Each function takes what is at hand (recorded runs, batches or single streams) and returns one frame. A row
always names the ``batch`` and the ``stream`` that it is about, and the ``run`` that recorded it, so that
frames can be merged on them. Ordinals count from 1, sizes are bytes of UTF-8, nested values are JSON text.
Columns with a closed vocabulary are categorical, columns that may lack a value are nullable. Nothing in a
frame is raw: names that are not public are aliases (docs/design.md, section 5). ``help`` lists the columns.

    >>> results_df("captured-local").groupby("outcome").null_continuations.sum().to_dict()
    {'accepted': 122, 'rejected': 89}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa

from fragmentlab.assembler import Result, RuleSet
from fragmentlab.assembler.rules import DEFAULT_RULES
from fragmentlab.corpus.batches import MANIFEST, Batch, open_batch
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import Stream, own_id
from fragmentlab.disclosure import KINDS, NameAliases, refuse_private, shown_name
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder, find_path
from fragmentlab.qualification.runs.ledger import LEDGER
from fragmentlab.qualification.runs.run_files import Run, find_run, list_runs, runs_folders
from fragmentlab.reports.columns import (
    FAULT_COLUMNS,
    FRAGMENT_COLUMNS,
    OUTCOMES,
    RESULT_COLUMNS,
    RUN_COLUMNS,
    STREAM_COLUMNS,
    as_frame,
    documented,
)
from fragmentlab.wire.observing import observe

Rules: TypeAlias = "str | RuleSet | Iterable[str | RuleSet]"
Origin: TypeAlias = "str | Path | Run | Batch | Stream | Iterable[Origin] | None"
"""What rows are made from. Text names a folder of runs, a run, or a batch; None stands for the kit's own."""
_COUNTS = ("events", "fragments", "arguments_bytes", "null_continuations")
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@documented(RUN_COLUMNS)
def runs_df(runs: Origin = None) -> pd.DataFrame:
    """Return one row per recorded run, in the order of the ledger.

    ``runs`` is a folder of runs, a run by label, id or folder, or several; without it the kit's own.
    """
    opened = list(_opened(runs))
    if not all(isinstance(run, Run) for run in opened):
        raise InputError("a batch holds streams, not runs; name a folder of runs or a run")
    return as_frame(map(_run_row, opened), RUN_COLUMNS)


@documented(RESULT_COLUMNS)
def results_df(origin: Origin = None, rules: Rules = DEFAULT_RULES) -> pd.DataFrame:
    """Return one row per stream: what a run recorded of it, or what each of ``rules`` makes of it now.

    ``origin`` is one or several of: a folder of runs, a run, a batch, a stream; without it the kit's runs.
    Raises InputError for what is none of these, and where a hash is not as recorded.
    """
    return _joined(origin, rules, "results", RESULT_COLUMNS)


@documented(FAULT_COLUMNS)
def faults_df(origin: Origin = None, rules: Rules = DEFAULT_RULES) -> pd.DataFrame:
    """Return one row per fault of each stream, in the order of checks; the first one decides.

    ``origin`` as for ``results_df``.
    """
    return _joined(origin, rules, "faults", FAULT_COLUMNS)


@documented(STREAM_COLUMNS)
def streams_df(*batches: Origin, rules: Rules = DEFAULT_RULES) -> pd.DataFrame:
    """Return one row per stream of some batches: where it comes from and what it shows on the wire.

    Without an argument: the batches that the kit ships. Streams can be given, too.
    """
    shipped = sorted(path.parent for path in data_folder("batches").glob(f"*/{MANIFEST}"))
    return stream_frames(assemble_all(_opened(batches or shipped), rules)).streams


@documented(FRAGMENT_COLUMNS)
def fragments_df(result: Result) -> pd.DataFrame:
    """Return one row per fragment of one response, in order of arrival (the timeline of a diagnosis)."""
    return as_frame(map(vars, result.timeline), FRAGMENT_COLUMNS)


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
            **{name: getattr(stream, name) for name in ("fidelity", "end", "framing")},
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
                **{name: getattr(result, name) for name in ("outcome", "category", "executable")},
                **{name: getattr(first, name, None) for name in ("stage", "incoming_kind")},
                **{name: result.counts[name] for name in (*_COUNTS, "calls")},
                "faults": len(result.faults) + result.counts["omitted_faults"],
                "tolerances": _json(result.tolerances),
            }

    def fault_rows(self) -> Iterator[dict[str, Any]]:
        for rules, result in self.results.items():
            for number, fault in enumerate(result.faults, 1):
                facts = {**vars(fault), "flags": _json(fault.flags)}
                yield {**self.ids, "rules": rules, "fault": number, **facts}


def assemble_all(
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


class StreamFrames(NamedTuple):
    """``streams_df``, ``results_df`` and ``faults_df`` of streams that were assembled once."""

    streams: pd.DataFrame
    results: pd.DataFrame
    faults: pd.DataFrame


def stream_frames(found: Iterable[AssembledStream]) -> StreamFrames:
    """Make the three frames in one pass."""
    rows: list[list[dict[str, Any]]] = [[], [], []]
    for each in found:
        for kept, made in zip(
            rows, ([each.stream_row()], each.result_rows(), each.fault_rows()), strict=True
        ):
            kept += made
    return StreamFrames(*map(as_frame, rows, (STREAM_COLUMNS, RESULT_COLUMNS, FAULT_COLUMNS)))


def _joined(origin: Origin, rules: Rules, name: Literal["results", "faults"], columns: str) -> pd.DataFrame:
    opened = list(_opened(origin))
    runs = [source for source in opened if isinstance(source, Run)]
    streams = [source for source in opened if not isinstance(source, Run)]
    frames = [_recorded(run, run.results if name == "results" else run.diagnostics) for run in runs]
    if streams or not frames:
        frames.append(getattr(stream_frames(assemble_all(streams, rules)), name).astype(object))
    return as_frame(pd.concat(frames, ignore_index=True), columns)


def _recorded(run: Run, rows: Any) -> pd.DataFrame:
    frame = rows.to_pandas(types_mapper=_NULLABLE.get)
    return frame.assign(run=run.id, revision=run.revision, rules=run.rules)


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
        **{outcome: header["counts"].get(outcome, 0) for outcome in OUTCOMES},
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
    elif (find_path(origin, "batches") / MANIFEST).exists():
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


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
