"""``fragmentlab minimize``: print the smallest stream refused for the same reason, as a vector file."""

from __future__ import annotations

import argparse
import json
import re
import sys

from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError

_VECTOR_ID = re.compile("[a-z0-9-]+/[a-z0-9-]+")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    text = (
        "a recorded stream, FILE:N for one of several, - for standard input, BATCH:ID for one of a batch, "
        "or a vector's id"
    )
    add("stream", metavar="STREAM", help=text)
    add("--category", metavar="C", help="the category to keep (default: the stream's own)")
    add("--rules", metavar="R", default="keep-established", help="a rule set's name or file")
    add("--tools", metavar="a,b", help="the known tools of a recorded stream")
    add("--no-scrub", action="store_true", help="keep the content (not for a public report)")


def run(args: argparse.Namespace) -> int:
    """Print the vector file; it goes into a bug report, or into data/vectors."""
    from fragmentlab.assembler import CATEGORIES
    from fragmentlab.assembler.categories import COMPOUND
    from fragmentlab.corpus.minimize import minimized_vector
    from fragmentlab.corpus.rules import find_rules

    if args.category is not None and args.category not in {*CATEGORIES, COMPOUND}:
        raise InputError("--category is none of the known ones; `fragmentlab explain` lists them")
    stream = _stream(args.stream, args.tools)
    document = minimized_vector(stream, args.category, find_rules(args.rules), scrubbed=not args.no_scrub)
    if args.no_scrub:
        print(
            "This vector is not scrubbed: it can hold content, IDs and names of the recording.",
            file=sys.stderr,
        )
    print(json.dumps(document, indent=2, ensure_ascii=True))
    return 0


def _stream(text: str, tools: str | None) -> Stream:
    from dataclasses import replace
    from pathlib import Path

    from fragmentlab.corpus.batches import open_batch
    from fragmentlab.corpus.recordings import stream_of_file
    from fragmentlab.corpus.vectors import find_vector

    batch, colon, wanted = text.rpartition(":")
    is_file = text == "-" or Path(text).exists()
    if colon and not is_file and Path(batch).is_file():
        stream = stream_of_file(batch, wanted)
    elif colon and not is_file:
        stream = open_batch(batch).stream(wanted)
    elif _VECTOR_ID.fullmatch(text) and not is_file:
        stream = find_vector(text).stream
    else:
        stream = stream_of_file(text)
    if tools is not None:
        stream = replace(stream, tools=tuple(name.strip() for name in tools.split(",")))
    return stream
