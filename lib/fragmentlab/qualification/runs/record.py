"""``fragmentlab qualify``: one pass of a subject and a revision over named sources, recorded once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from fragmentlab.disclosure import check_label, for_terminal
from fragmentlab.errors import InputError
from fragmentlab.qualification.runs.pool import observed
from fragmentlab.qualification.runs.sources import Item, Source, open_sources
from fragmentlab.qualification.runs.writer import RunWriter, finish_recorded, leftovers, unwritable
from fragmentlab.subjects.choose import Choice


def record_run(
    arguments: Sequence[str | Path],
    revision: str,
    choice: Choice,
    runs: Path,
    *,
    workers: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Record a run and return its folder.

    ``arguments`` are batches and vector files. Raises InputError for unusable ones and where the run cannot
    be written; then, and where it is interrupted, nothing that looks like a run is left.
    """
    check_label(revision, "the revision label")
    sources = open_sources(arguments)
    subject = choice.build()
    header = {
        "revision": revision,
        "subject": dict(subject.description),
        "reconstruction": choice.reconstruction,
        "sources": [source.to_json() for source in sources],
    }
    subject.close()
    try:
        runs.mkdir(parents=True, exist_ok=True)
        tidy(runs, say)
        with RunWriter(runs, header) as writer:
            for rows in _progress(observed(_items(sources), choice, workers), sources):
                writer.add(*rows)
            _check_counts(sources, writer.streams)
            return writer.complete()
    except OSError as error:
        raise unwritable(error) from None


def tidy(runs: Path, say: Callable[[str], None]) -> None:
    """Rename what is recorded and whole, and say what an interrupted run left; nothing is removed."""
    for name in finish_recorded(runs):
        say(f"run {for_terminal(name)} was recorded by an interrupted process; it now has its name")
    for path in leftovers(runs):
        say(f"left by an interrupted run and safe to remove: {for_terminal(str(path))}")


def _items(sources: Sequence[Source]) -> Iterator[Item]:
    for source in sources:
        yield from source.items()


def _progress(rows: Iterator, sources: Sequence[Source]) -> Iterator:  # type: ignore[type-arg]
    total = sum(source.count for source in sources)
    return tqdm(rows, total=total, unit=" streams", disable=not sys.stderr.isatty(), leave=False)


def _check_counts(sources: Sequence[Source], streams: int) -> None:
    if streams != (promised := sum(source.count for source in sources)):
        raise InputError(f"{streams} streams were read, {promised} were promised; a batch changed meanwhile")
