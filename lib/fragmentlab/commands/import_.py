"""``fragmentlab import``: recordings of any kind to a batch, scrubbed unless told otherwise."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fragmentlab.errors import InputError

if TYPE_CHECKING:
    from fragmentlab.corpus.importing.streams import Summary

_RAW_WARNING = (
    "This batch is not scrubbed: it holds what was said, IDs, hosts and file names. Keep it on this machine; "
    "not in git, issues, reports, CI artefacts or shared folders. "
    "`fragmentlab scrub` makes one that may leave."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="files, folders, globs, other batches")
    parser.add_argument("--out", required=True, metavar="BATCH", help="folder to write")
    parser.add_argument(
        "--no-scrub", action="store_true", help="keep the content (the batch must stay private)"
    )
    parser.add_argument("--parquet", action="store_true", help="write Parquet instead of JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Write the batch; return 1 where something was skipped for a fault, or nothing was found and no batch
    written."""
    from fragmentlab.corpus.batches import write_batch
    from fragmentlab.corpus.importing.streams import Summary, evidence_of, import_streams, with_first
    from fragmentlab.corpus.scrubbing.scrub import Scrubber
    from fragmentlab.disclosure import PRIVATE, for_terminal

    out = Path(args.out)
    if out.exists() or out.is_symlink():
        raise InputError(f"{for_terminal(args.out)} exists; choose another folder or remove it")
    summary, scrubber = Summary(), Scrubber()
    found = (imported.stream for imported in import_streams(args.sources, summary))
    streams = with_first(found if args.no_scrub else scrubber.scrub_all(found))
    if streams is None:
        _tell(summary, scrubber.refused)
        print("nothing to import; no batch was written", file=sys.stderr)
        return 1
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
        extra={PRIVATE: True, "places": summary.places} if args.no_scrub else None,
    )
    if args.no_scrub:
        (out / ".gitignore").write_text("*\n", encoding="utf-8")
        print(_RAW_WARNING, file=sys.stderr)
    _tell(summary, scrubber.refused)
    print(out)
    return 1 if summary.faults or scrubber.refused else 0


def _tell(summary: Summary, refused: dict[str, int]) -> None:
    for line in summary.lines():
        print(line, file=sys.stderr)
    for why, count in sorted(refused.items()):
        print(f"skipped: {count} streams cannot be scrubbed: {why}", file=sys.stderr)
