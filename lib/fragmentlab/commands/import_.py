"""``fragmentlab import``: recordings of any kind to a batch, scrubbed unless told otherwise."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fragmentlab.errors import InputError

if TYPE_CHECKING:
    from fragmentlab.corpus.importing.streams import Imported, Summary
    from fragmentlab.corpus.scrubbing.scrub import Scrubber
    from fragmentlab.corpus.streams import Stream

_LISTED = 100
_RAW_WARNING = (
    "This batch is not scrubbed: it holds what was said, IDs, hosts and file names. Keep it on this machine; "
    "not in git, issues, reports, CI artefacts or shared folders. "
    "`fragmentlab scrub` makes one that may leave."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("sources", nargs="+", metavar="SOURCE", help="files, folders, globs, other batches")
    add("--out", required=True, metavar="BATCH", help="folder to write")
    add("--no-scrub", action="store_true", help="keep the content (the batch must stay private)")
    add("--json", action="store_true", help="print one JSON object: every stream, what was left out")
    add("--parquet", action="store_true", help="write Parquet instead of JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Write the batch; return 1 where a fault made it skip something, or where it found nothing."""
    from fragmentlab.corpus.batches import write_batch
    from fragmentlab.corpus.importing.streams import Summary, evidence_of, import_streams, with_first
    from fragmentlab.corpus.scrubbing.scrub import Scrubber
    from fragmentlab.disclosure import PRIVATE, for_terminal

    out = Path(args.out)
    if os.path.lexists(out):
        raise InputError(f"{for_terminal(args.out)} exists; choose another folder or remove it")
    summary, scrubber = Summary(), None if args.no_scrub else Scrubber()
    rows: list[dict[str, Any]] = []
    streams = with_first(_kept(import_streams(args.sources, summary), summary, scrubber, rows))
    if streams is not None:
        write_batch(
            out,
            streams,
            name=out.name,
            evidence=evidence_of(args.sources),
            provenance="imported from recordings"
            + ("" if args.no_scrub else ", scrubbed and verified stream by stream"),
            licence="not stated",
            scrubbed=not args.no_scrub,
            parquet=args.parquet,
            **({PRIVATE: True, "places": summary.places} if args.no_scrub else {}),
        )
        if args.no_scrub:
            print(_RAW_WARNING, file=sys.stderr)
    if args.json:
        skipped = [{"file": where, "reason": why} for where, why in summary.faults]
        report = {"batch": streams and str(out), "streams": rows, "left_out": summary.left_out}
        print(json.dumps({**report, "skipped": skipped}))
    else:
        _tell(rows, summary)
    if streams is None:
        print("nothing to import; no batch was written", file=sys.stderr)
    elif not args.json:
        print(out)
    return 1 if streams is None or summary.faults else 0


def _kept(
    found: Iterable[Imported], summary: Summary, scrubber: Scrubber | None, rows: list[dict[str, Any]]
) -> Iterator[Stream]:
    """Yield each stream that may be kept, and note which file became it and what came out of it."""
    from fragmentlab.corpus.scrubbing.scrub import Unscrubbable

    for imported in found:
        stream = imported.stream
        if scrubber is not None:
            try:
                stream = scrubber.scrub(stream)
            except Unscrubbable as error:
                summary.faults.append((str(imported.file), f"a stream cannot be scrubbed: {error}"))
                continue
        result = summary.count(imported).result
        rows.append(
            {
                "stream": len(rows) + 1,
                "id": None if scrubber is None else stream.id,
                "file": str(imported.file),
                "place": imported.place,
                "outcome": result.outcome,
                "category": result.category,
                "null_continuations": result.counts["null_continuations"],
                "fidelity": stream.fidelity,
                "notes": list(imported.notes),
            }
        )
        yield stream


def _tell(rows: list[dict[str, Any]], summary: Summary) -> None:
    from fragmentlab.disclosure import for_terminal

    for row in rows[:_LISTED]:
        outcome = row["category"] or row["outcome"]
        told = f"; noted: {', '.join(row['notes'])}" if row["notes"] else ""
        print(
            f"{row['stream']}: {for_terminal(row['file'])}: {row['place']}: {outcome}, "
            f"{row['null_continuations']} null continuations{told}",
            file=sys.stderr,
        )
    if len(rows) > _LISTED:
        print(f"... and {len(rows) - _LISTED} more; --json lists all", file=sys.stderr)
    for line in summary.lines():
        print(line, file=sys.stderr)
