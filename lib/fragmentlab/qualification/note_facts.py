"""The version verification note's sentences, made from runs alone; each names the rows it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.errors import InputError
from fragmentlab.qualification.comparing.comparison import state_of
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
class Section:
    title: str
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class Note:
    """The note of one revision: sections in the order in which it is read."""

    revision: str
    sections: Sequence[Section]


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
        [
            Section("What was tested", [_tested(run) for run in own]),
            Section("What controlled regressions showed", list(_controlled(own))),
            Section("What captured and live streams showed, and how often", list(_observed(own))),
            Section("Failures of earlier revisions", list(_earlier(revision, logs))),
            Section("What is not shown", list(_not_shown(own))),
        ],
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
        if not rows:
            yield Sentence(f"Run {run.id} holds no controlled stream.")
            continue
        vectors = [row for row in rows if row["expected_outcome"]]
        differ = [row for row in vectors if not row["as_expected"]]
        refused = [row for row in vectors if row["expected_outcome"] == "rejected"]
        passed = [row for row in refused if row["outcome"] == "accepted"]
        agree, held = len(vectors) - len(differ), len(refused) - len(passed)
        whole = _batches(run, vectors)
        yield Sentence(f"{agree} of {len(vectors)} vectors gave the outcome that they must have.", whole)
        if differ:
            yield _cited(f"{len(differ)} vectors did not", run, differ)
        yield Sentence(f"{held} of {len(refused)} expected rejections were not accepted.", whole)
        if passed:
            yield _cited(f"{len(passed)} expected rejections were accepted", run, passed)
        yield from _failed(run, "controlled", rows)
        yield _nulls(run, "controlled", rows)


def _observed(runs: Sequence[Run]) -> Iterator[Sentence]:
    for kind in ("captured", "live"):
        met = [(run, rows) for run in runs if (rows := _of_kind(run, kind))]
        if not met:
            yield Sentence(f"No {kind} stream of this revision is recorded, so nothing is said of any.")
        for run, rows in met:
            outcomes = Counter(row["outcome"] for row in rows)
            tally = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
            yield Sentence(f"{streams(len(rows))} of {kind} evidence: {tally}.", _batches(run, rows))
            yield _nulls(run, kind, rows)
            if refused := [row for row in rows if row["outcome"] == "rejected"]:
                said = f"{streams(len(refused))} of {kind} evidence refused, most often {_most(refused)}"
                yield _cited(said, run, refused)
            yield from _failed(run, kind, rows)


def _failed(run: Run, kind: str, rows: Sequence[Row]) -> Iterator[Sentence]:
    if failed := [row for row in rows if row["outcome"] == FAILED]:
        yield _cited(
            f"{streams(len(failed))} of {kind} evidence got no outcome, since the subject failed "
            f"({_most(failed)}): they show nothing of what it refuses or accepts",
            run,
            failed,
        )


def _most(rows: Sequence[Row]) -> str:
    return ", ".join(f"{state} {count}" for state, count in Counter(map(state_of, rows)).most_common(3))


def _nulls(run: Run, kind: str, rows: Sequence[Row]) -> Sentence:
    met = [row for row in rows if row["null_continuations"]]
    total = sum(row["null_continuations"] for row in met)
    accepted = sum(row["outcome"] == "accepted" for row in met)
    text = null_sentence(kind, len(rows), total, len(met), accepted)
    if not met:
        return Sentence(text, _batches(run, rows))
    places = {_key(row): f"fragment {row['first_null_fragment']}" for row in met}
    return _cited(text.removesuffix("."), run, met, places)


def null_sentence(kind: str, rows: int, nulls: int, met: int, accepted: int) -> str:
    """What follows from how often a null continuation was met, zero included."""
    if not rows:
        return f"No {kind} stream is recorded, so nothing follows for {kind} evidence."
    if not nulls and kind == "imported":
        return (
            "An imported log does not say how often a null continuation was met, so nothing follows from it."
        )
    if not nulls:
        return (
            f"No null continuation was met in {streams(rows)} of {kind} evidence, so these are no proof of "
            "how one is treated."
        )
    return (
        f"{nulls} null continuations were met in {met} of {streams(rows)} of {kind} evidence; "
        f"{accepted} of those {met} were accepted."
    )


def _earlier(revision: str, logs: Sequence[Run]) -> Iterator[Sentence]:
    if not logs:
        yield Sentence(
            "No log of a gateway was imported, so nothing is said of failures in production, of this or any "
            "earlier revision."
        )
    for run in logs:
        whose = "this revision" if run.revision == revision else f"revision {run.revision}"
        rows = [row for row in run.results.to_pylist() if row["outcome"] == "rejected"]
        yield Sentence(
            f"The imported log of {whose} holds {len(rows)} refusals in {run.results.num_rows} outcomes.",
            _batches(run, rows),
        )
        if unknown := [row for row in rows if row["category"] == COMPOUND]:
            yield _cited(
                f"Recorded as {COMPOUND}: {len(unknown)} of these. It says that an identity rule was broken, "
                "not which; they remain failures of unknown cause and are not counted as repaired",
                run,
                unknown,
            )


def _not_shown(runs: Sequence[Run]) -> Iterator[Sentence]:
    if any(run.subject["kind"] == "assembler" for run in runs):
        yield Sentence("That any gateway but the kit's assembler treats these streams alike.")
    if not any(_of_kind(run, "live") for run in runs):
        yield Sentence("That a live server was met: captured streams are recordings, replayed.")
    yield Sentence(
        "How often providers send any shape: controlled streams were chosen by us, captured ones by chance."
    )
    yield Sentence(
        "That an accepted call is wanted: authorization and execution come after what was tested here."
    )


def _of_kind(run: Run, kind: str) -> list[Row]:
    return [row for row in run.results.to_pylist() if row["evidence"] == kind]


def _batches(run: Run, rows: Sequence[Row]) -> list[str]:
    return [f"{run.id} / {batch}" for batch in dict.fromkeys(row["batch"] for row in rows)]


def _cited(
    text: str, run: Run, rows: Sequence[Row], places: dict[tuple[str, str], str] | None = None
) -> Sentence:
    if places is None:
        first = (row for row in run.diagnostics.to_pylist() if row["fault"] == 1)
        places = {_key(row): _place(row) for row in first}
    cited = [" / ".join(filter(None, (run.id, *_key(row), places.get(_key(row))))) for row in rows[:CITED]]
    return Sentence(f"{text}.", cited, len(rows))


def _place(row: Row) -> str:
    nowhere = "no fragment recorded" if row["evidence"] == "imported" else "end of stream"
    return next((f"{name} {row[name]}" for name in ("fragment", "event", "call") if row[name]), nowhere)


def _key(row: Row) -> tuple[str, str]:
    return row["batch"], row["stream"]
