"""The version verification note's sentences, made from runs alone; each names the rows it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.errors import InputError
from fragmentlab.qualification.comparing.comparison import states
from fragmentlab.qualification.comparing.verdict import streams
from fragmentlab.qualification.comparing.verdict_texts import KIT_WAS_TESTED
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import Run
from fragmentlab.subjects.interface import FAILED

CITED = 5
"""Rows that a sentence names; the rest can be found in the run that it names."""


@dataclass(frozen=True)
class Sentence:
    """One claim, the first rows behind it (``run / batch / stream / place``), and how many there are."""

    text: str
    cited: Sequence[str] = ()
    rows: int = 0


@dataclass(frozen=True)
class Note:
    """The note of one revision: title of a section -> its sentences, in the order in which it is read."""

    revision: str
    sections: Mapping[str, Sequence[Sentence]]


def make_note(revision: str, runs: Sequence[Run]) -> Note:
    """Write the note of a revision from all runs at hand.

    Raises InputError where no run of the revision is among them.
    """
    own = [run for run in runs if run.revision == revision and run.subject["kind"] != "imported"]
    logs = [run for run in runs if run.subject["kind"] == "imported"]
    if not own:
        raise InputError("no qualification run of that revision; see `fragmentlab runs list`")
    return Note(
        revision,
        {
            "What was tested": [_tested(run) for run in own],
            "What controlled regressions showed": list(_controlled(own)),
            "What captured and live streams showed, and how often": list(_observed(own)),
            "Failures of earlier revisions": list(_earlier(revision, logs)),
            "What is not shown": list(_not_shown(own)),
        },
    )


def _tested(run: Run) -> Sentence:
    names = ", ".join(f"{source['name']} ({source['count']})" for source in run.header["sources"])
    kind = run.subject["kind"]
    kit = kind in ("assembler", "counterfactual")
    tested = KIT_WAS_TESTED if kit else f"{run.subject['name']} was tested, its output dropped"
    facts = [
        f"Run {run.id} of {run.header['started'][:10]} put {run.title} through {names}: {tested}.",
        "It is a reconstruction, not history." if run.is_reconstruction else "",
        "It was made wrong on purpose, to measure harm." if kind == "counterfactual" else "",
    ]
    return Sentence(" ".join(filter(None, facts)))


def _controlled(runs: Sequence[Run]) -> Iterator[Sentence]:
    for run in runs:
        rows = _of_kind(run, "controlled")
        if rows.empty:
            yield Sentence(f"Run {run.id} holds no controlled stream.")
            continue
        vectors = rows[rows.expected_outcome.notna()]
        differ = vectors[vectors.as_expected != True]  # noqa: E712 - it may be missing
        refused = vectors[vectors.expected_outcome == "rejected"]
        passed = refused[refused.outcome == "accepted"]
        agree, held = len(vectors) - len(differ), len(refused) - len(passed)
        whole = _batches(run, vectors)
        yield Sentence(f"{agree} of {len(vectors)} vectors gave the outcome that they must have.", whole)
        if len(differ):
            yield _cited(f"{len(differ)} vectors did not", run, differ)
        yield Sentence(f"{held} of {len(refused)} expected rejections were not accepted.", whole)
        if len(passed):
            yield _cited(f"{len(passed)} expected rejections were accepted", run, passed)
        yield from _failed(run, "controlled", rows)
        yield _nulls(run, "controlled", rows)


def _observed(runs: Sequence[Run]) -> Iterator[Sentence]:
    for kind in ("captured", "live"):
        met = [(run, rows) for run in runs if len(rows := _of_kind(run, kind))]
        if not met:
            yield Sentence(f"No {kind} stream of this revision is recorded, so nothing is said of any.")
        for run, rows in met:
            outcomes = rows.outcome.value_counts().sort_index()
            tally = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            yield Sentence(f"{streams(len(rows))} of {kind} evidence: {tally}.", _batches(run, rows))
            yield _nulls(run, kind, rows)
            refused = rows[rows.outcome == "rejected"]
            if len(refused):
                said = f"{streams(len(refused))} of {kind} evidence refused, most often {_most(refused)}"
                yield _cited(said, run, refused)
            yield from _failed(run, kind, rows)


def _failed(run: Run, kind: str, rows: pd.DataFrame) -> Iterator[Sentence]:
    failed = rows[rows.outcome == FAILED]
    if len(failed):
        yield _cited(
            f"{streams(len(failed))} of {kind} evidence got no outcome, since the subject failed "
            f"({_most(failed)}): they show nothing of what it refuses or accepts",
            run,
            failed,
        )


def _most(rows: pd.DataFrame) -> str:
    return ", ".join(f"{state} {count}" for state, count in Counter(states(rows)).most_common(3))


def _nulls(run: Run, kind: str, rows: pd.DataFrame) -> Sentence:
    text = null_sentence(kind, rows)
    met = rows[rows.null_continuations > 0]
    if met.empty:
        return Sentence(text, _batches(run, rows))
    places = {(row.batch, row.stream): f"fragment {row.first_null_fragment:.0f}" for row in met.itertuples()}
    return _cited(text.removesuffix("."), run, met, places)


def null_sentence(kind: str, rows: pd.DataFrame) -> str:
    """What follows from how often result rows of one kind met a null continuation, zero included."""
    if rows.empty:
        return f"No {kind} stream is recorded, so nothing follows for {kind} evidence."
    met = rows[rows.null_continuations.fillna(0) > 0]
    if met.empty and kind == "imported":
        return (
            "An imported log does not say how often a null continuation was met, so nothing follows from it."
        )
    if met.empty:
        return (
            f"No null continuation was met in {streams(len(rows))} of {kind} evidence, so these are no proof "
            "of how one is treated."
        )
    return (
        f"{met.null_continuations.sum():.0f} null continuations were met in {len(met)} of "
        f"{streams(len(rows))} of {kind} evidence; {sum(met.outcome == 'accepted')} of those {len(met)} were "
        "accepted."
    )


def _earlier(revision: str, logs: Sequence[Run]) -> Iterator[Sentence]:
    if not logs:
        yield Sentence(
            "No log of a gateway was imported, so nothing is said of failures in production, of this or any "
            "earlier revision."
        )
    for run in logs:
        whose = "this revision" if run.revision == revision else f"revision {run.revision}"
        rows = run.results.to_pandas().query("outcome == 'rejected'")
        yield Sentence(
            f"The imported log of {whose} holds {len(rows)} refusals in {run.results.num_rows} outcomes.",
            _batches(run, rows),
        )
        unknown = rows[rows.category == COMPOUND]
        if len(unknown):
            yield _cited(
                f"Recorded as {COMPOUND}: {len(unknown)} of these. It says that an identity rule was broken, "
                "not which; they remain failures of unknown cause and are not counted as repaired",
                run,
                unknown,
            )


def _not_shown(runs: Sequence[Run]) -> Iterator[Sentence]:
    if any(run.subject["kind"] == "assembler" for run in runs):
        yield Sentence("That any gateway but the kit's assembler treats these streams alike.")
    if all(_of_kind(run, "live").empty for run in runs):
        yield Sentence("That a live server was met: captured streams are recordings, replayed.")
    yield Sentence(
        "How often providers send any shape: controlled streams were chosen by us, captured ones by chance."
    )
    yield Sentence(
        "That an accepted call is wanted: authorization and execution come after what was tested here."
    )


def _of_kind(run: Run, kind: str) -> pd.DataFrame:
    return run.results.to_pandas().query("evidence == @kind")


def _batches(run: Run, rows: pd.DataFrame) -> list[str]:
    return [f"{run.id} / {batch}" for batch in rows.batch.unique()]


def _cited(
    text: str, run: Run, rows: pd.DataFrame, places: dict[tuple[str, str], str] | None = None
) -> Sentence:
    if places is None:
        first = (row for row in run.diagnostics.to_pylist() if row["fault"] == 1)
        places = {(row["batch"], row["stream"]): _place(row) for row in first}
    keys = zip(rows.batch[:CITED], rows.stream[:CITED], strict=True)
    cited = [" / ".join(filter(None, (run.id, *key, places.get(key)))) for key in keys]
    return Sentence(f"{text}.", cited, len(rows))


def _place(fault: Row) -> str:
    nowhere = "no fragment recorded" if fault["evidence"] == "imported" else "end of stream"
    return next((f"{name} {fault[name]}" for name in ("fragment", "event", "call") if fault[name]), nowhere)
