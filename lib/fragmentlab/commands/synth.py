"""``fragmentlab synth``: a synthetic batch from provider shapes, the same bytes for the same seed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.errors import InputError

_MAX_STREAMS = 100_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options; shares are parts of one."""
    add = parser.add_argument
    add("--streams", type=int, required=True, metavar="N", help="how many streams")
    add("--seed", type=int, required=True, metavar="S", help="the same seed gives the same bytes")
    add("--out", required=True, metavar="BATCH", help="folder to write")
    add("--shapes", metavar="FILE", help="a shapes file (default: the kit's data/shapes.json)")
    add("--only", action="append", metavar="NAME", help="only this shape; may be repeated")
    add("--faults", type=_share, default="0.2", metavar="X", help="share of faulty streams")
    add("--parallel", type=_share, default="0.3", metavar="X", help="share with several calls")
    add("--interleaved", type=_share, default="0.3", metavar="X", help="share of those whose calls alternate")
    add("--arguments", type=int, default=60, metavar="CHARS", help="typical size of a call's arguments")
    add("--parquet", action="store_true", help="write Parquet instead of JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Write the batch; its folder is the last line of standard output."""
    from fragmentlab.corpus.batches import write_batch
    from fragmentlab.corpus.synth.batch import SynthOptions, synthesize
    from fragmentlab.corpus.synth.provider_shapes import load_shapes

    if not 1 <= args.streams <= _MAX_STREAMS:
        raise InputError(f"--streams must be from 1 to {_MAX_STREAMS}")
    if not 0 <= args.arguments <= 1_000_000:
        raise InputError("--arguments must be from 0 to 1000000 characters")
    shapes = load_shapes(args.shapes)
    if args.only:
        if unknown := set(args.only) - {shape.name for shape in shapes}:
            raise InputError(
                f"--only: {len(unknown)} unknown; shapes are {', '.join(s.name for s in shapes)}"
            )
        shapes = tuple(shape for shape in shapes if shape.name in args.only)
    names = ("streams", "seed", "only", "faults", "parallel", "interleaved", "arguments")
    command = {name: getattr(args, name) for name in names}
    options = SynthOptions(*(value for name, value in command.items() if name != "only"))
    out = write_batch(
        args.out,
        synthesize(options, shapes),
        name=Path(args.out).name,
        evidence="controlled",
        provenance="written by `fragmentlab synth` after provider shapes, by no provider",
        licence="MIT",
        scrubbed=True,
        parquet=args.parquet,
        synth=command,
    )
    print(f"{args.streams} streams of {len(shapes)} shapes", file=sys.stderr)
    print(out)
    return 0


def _share(text: str) -> int:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share is from 0 to 1")
    return round(share * 1000)
