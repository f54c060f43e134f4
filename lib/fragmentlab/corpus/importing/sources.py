"""Files, folders and globs to the files to read; none by a link that leaves its folder."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fragmentlab.corpus.importing.budget import Unreadable
from fragmentlab.files import open_file, reason
from fragmentlab.wire.recorder import INCOMPLETE

MAX_FILE_BYTES = 256 << 20
"""The largest file that is read at once; JSON Lines are read line by line, whatever their size."""
_HEAD = 1 << 16


@dataclass(frozen=True)
class Source:
    """One file to read, or why not; ``named`` says that the person named it and not only its folder."""

    path: Path
    named: bool
    fault: str | None = None
    is_batch: bool = False


def expand(sources: Sequence[str]) -> Iterator[Source]:
    """Yield each file once, in a fixed order; a folder that is a batch is yielded as one."""
    seen: set[str] = set()
    for source in sources:
        for item in _expand_one(source):
            real = os.path.realpath(item.path)
            if item.fault is not None or real not in seen:
                seen.add(real)
                yield item


def _expand_one(source: str) -> Iterator[Source]:
    path = Path(source)
    if not source:
        yield Source(path, True, "an empty name is not a file")
        return
    try:
        if path.is_dir():
            yield from _folder(path)
            return
        exists = path.exists()
    except (OSError, ValueError) as error:
        yield Source(path, True, f"cannot be read: {reason(error)}")
        return
    if exists:
        yield _checked(path, named=True)
        return
    matches = sorted(glob.glob(source, recursive=True)) if glob.has_magic(source) else []
    if not matches:
        yield Source(path, True, "is not there")
    for match in matches:
        found = Path(match)
        if found.is_dir():
            if os.path.isfile(found / "batch.json"):
                yield from _folder(found)
        else:
            yield _checked(found, named=False)


def _folder(folder: Path) -> Iterator[Source]:
    if os.path.isfile(folder / "batch.json"):
        yield Source(folder, True, is_batch=True)
        return
    inside = os.path.realpath(folder)
    closed: list[OSError] = []
    for root, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        for name in list(folders):
            if name not in links and os.path.isfile(Path(root) / name / "batch.json"):
                folders.remove(name)
                yield from _folder(Path(root) / name)
        for name in sorted(files + links):
            path = Path(root) / name
            if path.is_symlink():
                real = os.path.realpath(path)
                if os.path.commonpath([inside, real]) != inside:
                    yield Source(path, False, "is a link that leaves the folder")
                    continue
                if name in links:
                    continue
            if not name.startswith("."):
                yield _checked(path, named=False)
    for error in closed:
        yield Source(Path(error.filename), False, f"cannot be read: {reason(error)}")


def _checked(path: Path, named: bool) -> Source:
    if path.suffix == INCOMPLETE:
        return Source(path, named, "is a part of an answer: its recording was given up")
    if path.is_fifo():
        return Source(
            path, named, "is a pipe; let `assemble -` read it as standard input, or save it to a file"
        )
    if path.is_symlink() and not os.path.exists(path):
        return Source(path, named, "is a link that leads nowhere")
    return Source(path, named, None if path.is_file() else "is no file; save what it gives to a file first")


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file that is too large to be read at once, none of any other."""
    with _opened(path) as file:
        is_large = os.fstat(file.fileno()).st_size > MAX_FILE_BYTES
        return file.read(_HEAD) if is_large else b""


def content_of(path: Path) -> bytes:
    """Return the whole file; raise Unreadable where it is too large or cannot be read."""
    with _opened(path) as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise Unreadable(f"is larger than {MAX_FILE_BYTES >> 20} MiB and not JSON Lines; split it")
    return data


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain file one at a time; raise Unreadable where one is too long."""
    with _opened(path) as file:
        while line := file.readline(MAX_FILE_BYTES + 1):
            if len(line) > MAX_FILE_BYTES:
                raise Unreadable(f"has a line of more than {MAX_FILE_BYTES >> 20} MiB")
            yield line


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_file(path) as file:
            yield file
    except OSError as error:
        raise Unreadable(f"cannot be read: {reason(error)}") from None
