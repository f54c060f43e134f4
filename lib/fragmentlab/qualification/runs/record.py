"""``fragmentlab qualify``: one pass of a subject and a revision over named sources, recorded once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace
from tqdm import tqdm

from fragmentlab.disclosure import check_label, private_hash
from fragmentlab.errors import InputError
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.pool import observed
from fragmentlab.qualification.runs.rows import Rows
from fragmentlab.qualification.runs.sources import open_sources
from fragmentlab.qualification.runs.writer import new_run
from fragmentlab.subjects.guard import end_abandoned

_HASHES = ("body_sha256", "conditions_sha256")


def record_run(
    arguments: Sequence[str | Path],
    revision: str,
    choice: Choice,
    runs: Path,
    *,
    workers: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Record a run over batches and vector files, and return its folder.

        record_run(["data/vectors"], "1.4.0", Choice(rules="keep-established"), Path("runs"))

    Raises InputError for unusable arguments and where the run cannot be written; then, and where it is
    interrupted, nothing that looks like a run is left.
    """
    check_label(revision, "the revision label")
    sources = open_sources(arguments)
    facts = {source.facts.name: source.facts for source in sources}
    private = [source.facts.name for source in sources if source.private]
    for name in private:
        facts[name] = replace(facts[name], sha256=private_hash(facts[name].sha256.encode(), runs))
    promised = sum(each.count for each in facts.values())
    items = (item for source in sources for item in source.items())
    with closing(choice.build()) as subject:
        description = subject.description
    if ended := end_abandoned():
        say(f"ended {ended} processes of a subject that an interrupted run left")
    about = (revision, description, facts.values())
    with new_run(runs, *about, reconstruction=choice.reconstruction, say=say) as writer:
        for rows in tqdm(
            observed(items, choice, workers),
            total=promised,
            unit=" streams",
            disable=not sys.stderr.isatty(),
            leave=False,
        ):
            writer.add(*(_keyed(rows, runs) if rows[0]["batch"] in private else rows))
        if writer.streams != promised:
            raise InputError(
                f"{writer.streams} streams were read, {promised} were promised; a batch changed meanwhile"
            )
        return writer.complete()


def _keyed(rows: Rows, runs: Path) -> Rows:
    """The rows of a private stream: every hash of its content is keyed, so that none can be guessed."""
    result, diagnostics, timing = rows
    _, digest, *repeat = result["stream"].split("-")
    name = {"stream": "-".join(["s", private_hash(digest.encode(), runs)[:16], *repeat])}
    hashes = {column: private_hash(result[column].encode(), runs) for column in _HASHES}
    return {**result, **hashes, **name}, [{**row, **name} for row in diagnostics], {**timing, **name}
