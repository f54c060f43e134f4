"""``fragmentlab synth``: a synthetic batch from provider shapes, the same bytes for the same seed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.errors import InputError

_MAX_STREAMS = 100_000_000
_SHARES = (
    ("faults", 200, "share of faulty streams"),
    ("parallel", 300, "share with several calls"),
    ("interleaved", 300, "share of those whose calls alternate"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options; shares are parts of one."""
    parser.add_argument("--streams", type=int, required=True, metavar="N", help="how many streams")
    parser.add_argument(
        "--seed", type=int, required=True, metavar="S", help="the same seed gives the same bytes"
    )
    parser.add_argument("--out", required=True, metavar="BATCH", help="folder to write")
    parser.add_argument("--shapes", metavar="FILE", help="a shapes file (default data/shapes.json)")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this shape; may be repeated")
    for name, default, what in _SHARES:
        text = f"{what} ({default / 1000})"
        parser.add_argument(f"--{name}", type=_share, default=default, metavar="X", help=text)
    parser.add_argument(
        "--arguments", type=int, default=60, metavar="CHARS", help="typical size of a call's arguments (60)"
    )
    parser.add_argument("--parquet", action="store_true", help="write Parquet instead of JSON Lines")


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
