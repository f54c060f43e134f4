"""The version verification note's sentences, made from runs alone; each names the rows that it was made
from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fragmentlab.assembler import COMPOUND
from fragmentlab.errors import InputError
from fragmentlab.qualification.comparing.comparison import state_of
from fragmentlab.qualification.comparing.verdict import streams
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import Run
from fragmentlab.subjects import FAILED

CITED = 5
"""Rows that a sentence names; the rest can be found in the run it names."""
EVIDENCE = ("controlled", "captured", "live", "imported")


@dataclass(frozen=True)
class Reference:
    """One row behind a sentence: a run, a stream of it and, where one decided, the ordinal of a fragment or
    event."""

    run: str
    batch: str
    stream: str = ""
    place: str = ""

    @property
    def text(self) -> str:
        return " / ".join(filter(None, (self.run, self.batch, self.stream, self.place)))


@dataclass(frozen=True)
class Sentence:
    """One claim, the first rows behind it, and how many there are."""

    text: str
    references: Sequence[Reference] = ()
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
    kit = run.subject["kind"] in ("assembler", "counterfactual")
    said = "the kit's assembler was tested, not yours" if kit else "a command was tested, its output dropped"
    rebuilt = " It is a reconstruction, not history." if run.is_reconstruction else ""
    wrong = (
        " It was made wrong on purpose, to measure harm." if run.subject["kind"] == "counterfactual" else ""
    )
    return Sentence(
        f"Run {run.id} of {run.header['started'][:10]} put {run.title} through {names}: "
        f"{said}.{rebuilt}{wrong}"
    )


def _controlled(runs: Sequence[Run]) -> Iterator[Sentence]:
    for run in runs:
        rows = _rows(run, lambda row: row["evidence"] == "controlled")
        vectors = [row for row in rows if row["expected_outcome"]]
        if not rows:
            yield Sentence(f"Run {run.id} holds no controlled stream.")
            continue
        agree = [row for row in vectors if row["as_expected"]]
        whole = _batches(run, vectors)
        yield Sentence(f"{len(agree)} of {len(vectors)} vectors gave the outcome that they must have.", whole)
        if differ := [row for row in vectors if not row["as_expected"]]:
            yield _cited(f"{len(differ)} vectors did not", run, differ)
        must = [row for row in vectors if row["expected_outcome"] == "rejected"]
        passed = [row for row in must if row["outcome"] == "accepted"]
        yield Sentence(
            f"{len(must) - len(passed)} of {len(must)} expected rejections were not accepted.", whole
        )
        if passed:
            yield _cited(f"{len(passed)} expected rejections were accepted", run, passed)
        yield from _failed(run, "controlled", rows)
        yield _nulls(run, "controlled", rows)


def _observed(runs: Sequence[Run]) -> Iterator[Sentence]:
    for kind in ("captured", "live"):
        found = False
        for run in runs:
            if rows := _rows(run, lambda row, kind=kind: row["evidence"] == kind):  # type: ignore[misc]
                found = True
                yield from _of_kind(run, kind, rows)
        if not found:
            yield Sentence(
                f"No {kind} stream of this revision is recorded: of {kind} streams nothing is said."
            )


def _of_kind(run: Run, kind: str, rows: Sequence[Row]) -> Iterator[Sentence]:
    states = Counter(row["outcome"] for row in rows)
    tally = ", ".join(f"{count} {outcome}" for outcome, count in sorted(states.items()))
    yield Sentence(f"{streams(len(rows))} of {kind} evidence: {tally}.", _batches(run, rows))
    yield _nulls(run, kind, rows)
    if refused := [row for row in rows if row["outcome"] == "rejected"]:
        yield _cited(
            f"{streams(len(refused))} of {kind} evidence refused, most often {_most(refused)}", run, refused
        )
    yield from _failed(run, kind, rows)


def _failed(run: Run, kind: str, rows: Sequence[Row]) -> Iterator[Sentence]:
    if failed := [row for row in rows if row["outcome"] == FAILED]:
        yield _cited(
            f"{streams(len(failed))} of {kind} evidence got no outcome, since the subject failed "
            f"({_most(failed)}): of what it refuses or accepts these show nothing",
            run,
            failed,
        )


def _most(rows: Sequence[Row]) -> str:
    top = Counter(map(state_of, rows)).most_common(3)
    return ", ".join(f"{state} {count}" for state, count in top)


def _nulls(run: Run, kind: str, rows: Sequence[Row]) -> Sentence:
    met = [row for row in rows if row["null_continuations"]]
    total = sum(row["null_continuations"] for row in met)
    if not met:
        return Sentence(null_sentence(kind, len(rows), 0, 0, 0), _batches(run, rows))
    accepted = sum(row["outcome"] == "accepted" for row in met)
    text = null_sentence(kind, len(rows), total, len(met), accepted).removesuffix(".")
    return _cited(text, run, met, lambda row: f"fragment {row['first_null_fragment']}")


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
            "No log of a gateway was imported: of failures in production, of this or any earlier revision, "
            "nothing is said."
        )
    for run in logs:
        whose = "this revision" if run.revision == revision else f"revision {run.revision}"
        rows = _rows(run, lambda row: row["outcome"] == "rejected")
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
    kinds = {row for run in runs for row in run.results.column("evidence").to_pylist()}
    if any(run.subject["kind"] == "assembler" for run in runs):
        yield Sentence("That any gateway but the kit's assembler treats these streams alike.")
    if "live" not in kinds:
        yield Sentence("That a live server was met: captured streams are recordings, replayed.")
    yield Sentence(
        "How often providers send any shape: controlled streams were chosen by us, captured ones by chance."
    )
    yield Sentence(
        "That an accepted call is wanted: authorization and execution come after what was tested here."
    )


def _rows(run: Run, keep: Callable[[Row], bool]) -> list[Row]:
    return [row for row in run.results.to_pylist() if keep(row)]


def _batches(run: Run, rows: Sequence[Row]) -> list[Reference]:
    return [Reference(run.id, batch) for batch in dict.fromkeys(row["batch"] for row in rows)]


def _cited(text: str, run: Run, rows: Sequence[Row], place: Callable[[Row], str] | None = None) -> Sentence:
    places = _places(run) if place is None else {}
    references = [
        Reference(run.id, row["batch"], row["stream"], place(row) if place else places.get(_key(row), ""))
        for row in rows[:CITED]
    ]
    return Sentence(f"{text}.", references, len(rows))


def _places(run: Run) -> dict[tuple[str, str], str]:
    return {_key(row): _ordinal(row) for row in _first_faults(run.diagnostics.to_pylist())}


def _first_faults(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row["fault"] == 1)


def _ordinal(row: Row) -> str:
    nowhere = "no fragment recorded" if row["evidence"] == "imported" else "end of stream"
    return next((f"{name} {row[name]}" for name in ("fragment", "event", "call") if row[name]), nowhere)


def _key(row: Row) -> tuple[str, str]:
    return row["batch"], row["stream"]
