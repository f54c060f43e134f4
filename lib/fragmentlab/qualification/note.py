"""The version verification note, made from runs alone: each sentence names the rows it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from fragmentlab.assembler.categories import COMPOUND
from fragmentlab.disclosure import for_html, for_markdown
from fragmentlab.errors import InputError
from fragmentlab.qualification.comparing.comparison import states
from fragmentlab.qualification.comparing.verdict import streams
from fragmentlab.qualification.comparing.verdict_texts import KIT_WAS_TESTED
from fragmentlab.qualification.runs.rows import Row
from fragmentlab.qualification.runs.run_files import Run
from fragmentlab.subjects.interface import FAILED

CITED = 5
"""Rows that a sentence names; the rest can be found in the run that it names."""


_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.7rem;line-height:1.2}h2{font-size:1.2rem;margin-top:2rem}li{margin:.4rem 0}"
    "code{font-family:ui-monospace,monospace;font-size:.85em;overflow-wrap:anywhere}"
    "summary{cursor:pointer}"
)


class Sentence(NamedTuple):
    """One claim, and the first rows behind it: ``run / batch / stream / place``."""

    text: str
    cited: Sequence[str] = ()


class Note(NamedTuple):
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


def note_markdown(note: Note) -> str:
    """The note as Markdown; every text is escaped."""
    lines = [f"# Version verification note: {for_markdown(note.revision)}"]
    for title, sentences in note.sections.items():
        lines.append(f"\n## {title}\n")
        for text, cited in sentences:
            lines += [f"- {for_markdown(text)}", *(f"  - {for_markdown(row)}" for row in cited)]
    return "\n".join(lines) + "\n"


def note_html(note: Note) -> str:
    """The note as one page: no script, no network; the rows behind a sentence fold out."""
    title = f"Version verification note: {for_html(note.revision)}"
    body = "".join(
        f"<h2>{section}</h2><ul>{''.join(map(_html_item, sentences))}</ul>"
        for section, sentences in note.sections.items()
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>\n"
    )


def _html_item(sentence: Sentence) -> str:
    rows = "".join(f"<li><code>{for_html(row)}</code></li>" for row in sentence.cited)
    folded = f"<details><summary>Rows behind it</summary><ul>{rows}</ul></details>" if rows else ""
    return f"<li>{for_html(sentence.text)}{folded}</li>"


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
    more = [f"and {len(rows) - CITED} more in that run"] if len(rows) > CITED else []
    return Sentence(f"{text}.", cited + more)


def _place(fault: Row) -> str:
    nowhere = "no fragment recorded" if fault["evidence"] == "imported" else "end of stream"
    return next((f"{name} {fault[name]}" for name in ("fragment", "event", "call") if fault[name]), nowhere)
