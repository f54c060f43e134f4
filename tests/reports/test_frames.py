"""The DataFrames that people go on from: their columns, ids and types, and what they never hold."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fragmentlab.assembler import CATEGORIES
from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.corpus.batches import open_batch, write_batch
from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.qualification.runs.imported import import_log
from fragmentlab.reports.columns import VOCABULARIES
from fragmentlab.reports.frames import (
    faults_df,
    fragments_df,
    results_df,
    runs_df,
    streams_df,
)

CANARY = "CANARY-name"
FRAMES = {"runs": runs_df, "results": results_df, "faults": faults_df, "streams": streams_df}
FIRST = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": "{}"}}
NULL = {"index": 0, "id": None}


def stream(*fragments: dict, **names: object) -> Stream:
    """Return a stream of one fragment per chunk, then a finish."""
    deltas = [({"tool_calls": [fragment]}, None) for fragment in fragments] + [({}, "tool_calls")]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Stream(**({"id": "s", "body": body.encode()} | names))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FRAMES)
def test_columns_are_documented(name: str) -> None:
    """Every column stands in the docstring; closed vocabularies are categorical, nothing is an object."""
    frame, told = FRAMES[name](), FRAMES[name].__doc__ or ""
    assert len(frame) and [column for column in frame if not re.search(rf"\b{column}\b", told)] == []
    assert [column for column in frame if frame[column].dtype == object] == []
    closed = [column for column in frame if column in VOCABULARIES and (name, column) != ("runs", "evidence")]
    assert all(isinstance(frame[column].dtype, pd.CategoricalDtype) for column in closed)


def test_the_kits_runs_are_the_default(root: Path) -> None:
    """Without an argument each frame holds the committed runs, and counts agree between them."""
    runs, results, faults = runs_df(), results_df(), faults_df()
    assert runs.equals(runs_df(root / "data/runs")) and len(runs) == 3
    counted = results.groupby("run").outcome.value_counts().unstack()
    for run in runs.itertuples():
        assert counted.loc[run.run, "rejected"] == run.rejected > 0
        nulls = sum(kind["null_continuations"] for kind in json.loads(run.evidence).values())
        assert results[results.run == run.run].null_continuations.sum() == nulls
    first = faults[faults.fault == 1].merge(results, on=["run", "batch", "stream"], suffixes=("", "_of_row"))
    assert len(first) == (results.outcome == "rejected").sum()
    assert (first.category.astype(str) == first.category_of_row.astype(str)).all()


def test_an_altered_part_is_refused(root: Path, tmp_path: Path) -> None:
    """A Parquet part that is not what the footer says is never read."""
    shutil.copytree(root / "data/runs", tmp_path / "runs")
    [part] = (tmp_path / "runs").glob("keep-established-*/results.parquet")
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    for make in (runs_df, results_df, faults_df):
        with pytest.raises(InputError, match=r"results\.parquet is not what its footer says"):
            make(tmp_path / "runs")


def test_batches_and_runs_give_the_same_columns_and_facts() -> None:
    """What a run recorded of a batch is what the assembler makes of it now."""
    now = results_df("captured-local", ["keep-established", "reject-null"])
    then = results_df().query("batch == 'captured-local' and rules != 'empty-continuation'")
    assert list(now) == list(then) and now.dtypes.equals(then.dtypes)
    facts = ["rules", "stream", "outcome", "category", "stage", "fragments", "null_continuations", "provider"]
    both = [frame[facts].astype(str).sort_values(facts[:2], ignore_index=True) for frame in (now, then)]
    pd.testing.assert_frame_equal(*both)
    assert now.run.isna().all() and then.calls.isna().all() and not now.calls.isna().any()


def test_single_streams_are_rows_without_a_hash() -> None:
    """A stream without a batch is numbered: neither its id nor a hash of it stands in any frame."""
    ours = stream(FIRST, NULL, {"index": 0, "id": ""}, id=CANARY, tools=("f",))
    results, faults = results_df(ours, "reject-null"), faults_df(ours, "reject-null")
    assert results.stream.to_list() == ["stream-1"] and results.batch.isna().all()
    assert (
        faults.fragment.to_list() == [2, 3] and faults.had_id.all() and set(faults.rules) == {"reject-null"}
    )
    shown = "".join(frame.to_csv() for frame in (results, faults, streams_df(ours)))
    assert ours.body_sha256[:8] not in shown and CANARY not in shown


def test_fragments_are_the_timeline() -> None:
    """One row per fragment: what it says, what was known before and after, and the bytes that it added."""
    frame = fragments_df(stream(FIRST, NULL, {"id": "x"}).assemble(diagnose=True))
    assert frame.incoming_kind.astype(object).where(frame.incoming_kind.notna(), None).to_list()[:2] == [
        "string",
        "null",
    ]
    assert frame["index"].isna().to_list() == [False, False, True]
    assert frame.arguments_bytes.to_list() == [2, 0, 0] and frame.id_alias[1] == "A"
    assert frame.decision.to_list() == ["set", "keep", "reject"]


def test_what_a_log_adds_is_kept(tmp_path: Path) -> None:
    """Missing values and the compound category of an imported log survive the closed vocabularies."""
    lines = [
        {"task": "t", "time": "2026-10-01T09:30:00Z", "outcome": "rejected", "category": "TOOL_FRAGMENT_ID"}
    ]
    lines += [{**lines[0], "task": "u", "outcome": "accepted", "category": None}]
    (tmp_path / "log.jsonl").write_text(
        "".join(json.dumps({k: v for k, v in line.items() if v}) + "\n" for line in lines)
    )
    import_log(tmp_path / "log.jsonl", "0.15.1", tmp_path / "runs")
    results = results_df(tmp_path / "runs")
    assert results.category.dropna().to_list() == ["TOOL_FRAGMENT_ID"]
    assert set(results.evidence) == {"imported"}
    assert set(results.category.cat.categories) >= set(CATEGORIES)


def test_ones_own_names_are_aliases(tmp_path: Path) -> None:
    """Names of a batch, its streams, pairs, tools and a rule set of one's own stand in no frame."""
    names = dict.fromkeys(("id", "provider", "server", "model", "pair"), CANARY)
    folder = write_batch(
        tmp_path / CANARY, [stream(FIRST, tools=(CANARY,), **names)], name=CANARY, evidence="captured",
        provenance="", licence="", scrubbed=True,
    )  # fmt: skip
    cells = {identity: dict(row) for identity, row in SHIPPED["keep-established"].cells.items()}
    table = {"schema": "fragmentlab-rules-v1", "name": CANARY, "note": "", "cells": cells}
    (tmp_path / "rules.json").write_text(json.dumps(table))
    rules = str(tmp_path / "rules.json")
    frames = [streams_df(folder), results_df(folder, rules), faults_df(open_batch(folder), rules)]
    assert CANARY not in "".join(frame.to_csv() for frame in frames)
    assert streams_df(folder).provider.to_list() == ["provider-1"]


def test_nothing_gives_empty_frames_with_their_columns() -> None:
    """An empty list is no default: every column is there, no row is."""
    for make in (runs_df, results_df, faults_df):
        assert len(make([])) == 0 and list(make([])) == list(make())


@pytest.mark.parametrize("make", [runs_df, results_df, faults_df, streams_df])
def test_unknown_names_are_one_line(make: object, tmp_path: Path) -> None:
    """A name that is neither a run nor a batch is an error for a person."""
    with pytest.raises(InputError, match="no run is named"):
        make(str(tmp_path / "nothing"))  # type: ignore[operator]


def test_runs_and_batches_are_told_apart() -> None:
    """Asking a recorded run for its streams, or a batch for its runs, says what to name."""
    with pytest.raises(InputError, match="name its batch"):
        streams_df("keep-established")
    with pytest.raises(InputError, match="name a folder of runs"):
        runs_df("captured-local")
