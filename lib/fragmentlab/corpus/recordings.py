"""What a person names: standard input as a file, and the one stream that a file holds."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError

if TYPE_CHECKING:
    from fragmentlab.corpus.importing.streams import Summary

STANDARD_INPUT = "standard input"
_COPY = "fragmentlab-standard-input-"


@contextmanager
def as_file(path: str) -> Iterator[str]:
    """Give the path, or for ``-`` a file with what standard input gives, removed in the end."""
    if path != "-":
        yield path
        return
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file or pipe a stream in")
    with tempfile.NamedTemporaryFile(prefix=_COPY) as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield copy.name


def shown_path(path: object) -> str:
    """Return a file's name as a person gave it."""
    text = str(path)
    return STANDARD_INPUT if os.path.basename(text).startswith(_COPY) else text


def stream_of_file(path: str, number: str = "") -> Stream:
    """Return the stream that a file holds, in any form that ``fragmentlab import`` reads.

    ``number`` picks one of several, as ``fragmentlab assemble`` lists them. Raises InputError where there is
    none, or none of that number, or several and no number.
    """
    from fragmentlab.corpus.importing.streams import Summary, import_streams

    summary = Summary()
    with as_file(path) as file:
        streams = [item.stream for item in import_streams([file], summary, whole_files=True)]
    if not streams:
        raise InputError(what_is_missing(summary))
    if len(streams) == 1 and not number:
        return streams[0]
    if not (number.isdecimal() and 0 < int(number) <= len(streams)):
        raise InputError(
            f"{path} holds {len(streams)} streams; `fragmentlab assemble` numbers them: "
            "name one as FILE:2 to minimize it, with -p stream=2 to report it"
        )
    return streams[int(number) - 1]


def what_is_missing(summary: Summary) -> str:
    """Say why no stream was found: what the one file seems to be, or what there was instead."""
    reasons = dict(summary.faults) | summary.seems
    if len(reasons) == 1:
        [(file, why)] = reasons.items()
        return f"{shown_path(file)}: {why}"
    left_out = ", ".join(f"{what}: {count}" for what, count in summary.left_out.items())
    return "no stream was found" + (f"; left out: {left_out}" if left_out else "")
