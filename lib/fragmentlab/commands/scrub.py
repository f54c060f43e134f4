"""``fragmentlab scrub``: a batch without its content, proven to behave as the original."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("batch", metavar="BATCH", help="folder, or name under data/batches")
    parser.add_argument("--out", required=True, metavar="BATCH", help="folder to write")
    parser.add_argument("--parquet", action="store_true", help="write Parquet instead of JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Write the scrubbed batch; return 1 where a stream cannot be scrubbed and was left out."""
    from fragmentlab.corpus.batches import open_batch, write_batch
    from fragmentlab.corpus.scrubbing.event_data import KEPT_LICENCES
    from fragmentlab.corpus.scrubbing.scrub import Scrubber

    batch = open_batch(args.batch)
    licence = batch.manifest.licence
    scrubber = Scrubber()
    out = write_batch(
        args.out,
        scrubber.scrub_all(batch.streams()),
        name=Path(args.out).name,
        evidence=batch.evidence,
        provenance="another batch, scrubbed and verified stream by stream",
        licence=licence if licence in KEPT_LICENCES else "not stated",
        scrubbed=True,
        parquet=args.parquet,
    )
    left_out = sum(scrubber.refused.values())
    print(f"{batch.count - left_out} of {batch.count} streams scrubbed", file=sys.stderr)
    for why, count in sorted(scrubber.refused.items()):
        print(f"skipped: {count} streams cannot be scrubbed: {why}", file=sys.stderr)
    print(out)
    return 1 if left_out else 0
