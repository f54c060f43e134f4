"""Bounded reads, durable writes, and where the kit's own data lies.

Only regular files are read: pipes, devices, sockets and folders are refused by name, and nothing waits for
them. What is written appears whole or not at all: it is built beside its place under a name that begins with
WORKING, made durable and renamed. A folder that is being built is locked, so that what a killed process left
can be told from what another process is writing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from functools import cache
from io import BufferedReader
from pathlib import Path

from fragmentlab.errors import InputError

WORKING = ".incomplete-"
"""How every name begins under which something is still being written."""


class NotRegular(OSError):
    """What stands at a path is no regular file; the text says what it is."""


def open_file(path: str | Path) -> BufferedReader:
    """Open a regular file for reading. Raises OSError for anything else, without waiting for it."""
    try:
        _check_regular(os.stat(path))
        # It may have been replaced since: a pipe is then opened without waiting for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise NotRegular("the path is not valid") from None
    try:
        _check_regular(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def read_bytes(path: str | Path, limit: int, advice: str = "name another file") -> bytes:
    """Read a whole file of at most ``limit`` bytes; raise InputError for anything else.

    ``advice`` says what to do with a larger one.
    """
    try:
        with open_file(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from None
    if len(data) > limit:
        size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
        raise InputError(f"{path} is larger than {size}; {advice}")
    return data


def write_whole(path: str | Path, data: bytes | str) -> None:
    """Write a file beside its place, durably, and rename it; raise InputError where that fails.

    A device or a pipe, such as ``/dev/stdout``, is written to as it is.
    """
    data = data.encode() if isinstance(data, str) else data
    try:
        place = Path(os.path.realpath(path))
        if place.exists() and not place.is_file():
            with open(path, "wb") as file:
                file.write(data)
            return
        beside = place.with_name(_working_name())
        try:
            with beside.open("xb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # so that nobody takes it for what a killed process left
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.replace(beside, place)
        finally:
            beside.unlink(missing_ok=True)
        sync_folder(place.parent)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {reason(error)}") from None


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a private folder among the temporary files; it goes when the block ends.

    What killed processes left there is removed first, and mentioned on standard error. Raises InputError
    where there is no place for it.
    """
    import tempfile  # what it loads would slow down every start

    place = Path(tempfile.gettempdir()) / f"fragmentlab-{os.getuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        facts = place.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            raise InputError(f"{place} is not a private folder of yours; remove it or set TMPDIR")
        with _working_folder(place) as folder:
            yield folder
    except OSError as error:
        raise InputError(f"temporary files cannot be written: {reason(error)}") from None


@contextlib.contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Give a folder to fill: it becomes ``path`` when the block ends well and is removed otherwise.

    Raises InputError where ``path`` exists or cannot be written. What killed processes left beside it is
    removed first, and mentioned on standard error.
    """
    place = Path(path)
    if os.path.lexists(place):
        raise InputError(f"{path} exists; choose another folder or remove it")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _working_folder(place.parent) as folder:
            yield folder
            os.rename(folder, place)
            sync_folder(place.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {reason(error)}") from None


@contextlib.contextmanager
def _working_folder(parent: Path) -> Iterator[Path]:
    with contextlib.ExitStack() as claim:
        with locked(parent):
            mention_abandoned(parent)
            folder = parent / _working_name()
            folder.mkdir()
            claim.enter_context(locked(folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def mention_abandoned(folder: Path) -> None:
    """Remove what killed processes left in a folder whose lock the caller holds, and say so."""
    for left in remove_abandoned(folder):
        print(InputError(f"removed what an interrupted process left: {left}"), file=sys.stderr)


def remove_abandoned(folder: Path) -> list[Path]:
    """Remove what killed processes left unfinished in a folder whose lock the caller holds; return it."""
    left = [path for path in sorted(folder.glob(f"{WORKING}*")) if not is_locked(path)]
    for path in left:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return left


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; a process that ends, however it ends, lets go of it."""
    with _opened(folder) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock of a file or folder, or hides it."""
    try:
        with _opened(path) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def sync_folder(folder: Path) -> None:
    """Make the folder's names durable."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def reason(error: OSError | ValueError) -> str:
    """Say in the system's own words why a file could not be used, without its path."""
    if isinstance(error, ValueError):
        return "the path is not valid"
    if isinstance(error, NotRegular):
        return str(error)
    if error.errno == errno.EISDIR:
        return "it is a directory; name a file"
    return os.strerror(error.errno) if error.errno else "the system refused"


def kit_folder() -> Path:
    """The folder that holds the kit's ``data`` and ``notebooks``: the checkout, or the wheel's own copy."""
    package = Path(__file__).resolve().parent
    checkout = package.parents[1]
    return checkout if (checkout / "data").is_dir() and (checkout / "notebooks").is_dir() else package / "kit"


def data_folder(name: str = "") -> Path:
    """The kit's ``data``, or a folder or file in it: ``data_folder("batches")``."""
    return kit_folder() / "data" / name


def find_path(name: str | Path, kind: str) -> Path:
    """A path as given where something stands there, otherwise the kit's own of that name.

    So ``data/vectors`` means the same from any folder, and a batch of the kit's needs no path.
    """
    place = Path(name)
    in_kit = kit_folder() / place if place.parts[:1] == ("data",) else data_folder(kind) / place
    return in_kit if not os.path.exists(place) and os.path.exists(in_kit) else place


@cache
def shipped_names() -> frozenset[str]:
    """Names of the batches, rule sets and vector files that the kit ships, which anyone may read.

    Each also as the path by which it is named in a checkout: ``data/batches/captured-local``.
    """
    parts = ("batches", "rules", "vectors")
    names = [(part, path.stem) for part in parts for path in data_folder(part).glob("*")]
    return frozenset([name for _, name in names] + [f"data/{part}/{name}" for part, name in names])


def _check_regular(facts: os.stat_result) -> None:
    mode = facts.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "")
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise NotRegular(f"it is {kind}, not a file; save what it gives to a file first")


def _working_name() -> str:
    return f"{WORKING}{os.urandom(6).hex()}"
