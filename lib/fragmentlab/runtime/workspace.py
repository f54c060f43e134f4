"""The one folder that the tools may touch: sources to read, reports to publish, and no way out of it.

Every name is a single path component, opened relative to an open folder and without following links, so
that neither ``..``, an absolute path nor a link (of the file or of a parent, also one put there in between)
leads anywhere else.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError

SOURCES, REPORTS = "sources", "reports"
MAX_NAME_BYTES = 128
MAX_SOURCE_BYTES = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PART = ".part-"


class ToolError(Exception):
    """A tool could not do its work; ``kind`` is one of a closed set and goes back to the model.

    Kinds: ``bad_name``, ``not_found``, ``not_a_file``, ``too_large``, ``not_text``,
    ``exists``, ``unavailable``.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def is_plain_name(name: object) -> bool:
    """Whether it names a file directly in a folder: no separator, control or format mark."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME_BYTES
        and not name.startswith(".")
        and not any(ch in "/\\" or unicodedata.category(ch)[0] == "C" for ch in name)
        and len(name.encode()) <= MAX_NAME_BYTES
    )


class Workspace:
    """A folder with ``sources`` and ``reports``. Raises InputError where either is missing or a link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for folder in (SOURCES, REPORTS):
            try:
                os.close(self._open_folder(folder))
            except ToolError:
                raise InputError(
                    f"the workspace {for_terminal(root.name)} needs a folder {folder}, not a link"
                ) from None

    @classmethod
    def create(cls, root: Path, sources: Mapping[str, str]) -> Workspace:
        """Make a workspace that holds these sources; the folder must not exist."""
        (root / SOURCES).mkdir(parents=True)
        (root / REPORTS).mkdir()
        for name, text in sources.items():
            (root / SOURCES / name).write_text(text, encoding="utf-8", newline="")
        return cls(root)

    def list_sources(self) -> list[str]:
        """Names of the regular files that can be read, sorted."""
        with self._folder(SOURCES) as folder:
            return sorted(
                name
                for name in os.listdir(folder)
                if is_plain_name(name) and _is_own_file(_facts(name, folder))
            )

    def read_source(self, name: str) -> str:
        """The text of a source; ToolError for anything that is not a readable UTF-8 file of its own."""
        data = self._read(SOURCES, name, MAX_SOURCE_BYTES)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ToolError("not_text") from None

    def save_report(self, name: str, content: bytes) -> None:
        """Publish a report whole or not at all; ToolError("exists") where the name is taken."""
        if not is_plain_name(name):
            raise ToolError("bad_name")
        beside = f"{_PART}{secrets.token_hex(8)}"
        with self._folder(REPORTS) as folder:
            try:
                _write_new(beside, content, folder)
                os.link(beside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                raise ToolError("exists") from None
            except OSError:
                raise ToolError("unavailable") from None
            finally:
                _remove(beside, folder)
            os.fsync(folder)

    def holds_report(self, name: str, content: bytes) -> bool:
        """Whether exactly this report is published: how a resumed run knows that an effect happened."""
        try:
            return self._read(REPORTS, name, len(content) + 1) == content
        except ToolError:
            return False

    def reports(self) -> list[str]:
        """Everything in the folder of reports, parts of unfinished ones included."""
        with self._folder(REPORTS) as folder:
            return sorted(os.listdir(folder))

    def read_report(self, name: str) -> bytes:
        """The bytes of a published report."""
        return self._read(REPORTS, name, 1 << 30)

    def remove_leftovers(self) -> None:
        """Remove what a killed run left beside the reports; only for the run that holds the journal."""
        with self._folder(REPORTS) as folder:
            for name in os.listdir(folder):
                if name.startswith(_PART):
                    _remove(name, folder)

    def _read(self, folder_name: str, name: str, limit: int) -> bytes:
        if not is_plain_name(name):
            raise ToolError("bad_name")
        with self._folder(folder_name) as folder:
            try:
                # Without O_NONBLOCK a FIFO in the folder would wait for a writer.
                file = os.open(
                    name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
                )
            except OSError as error:
                raise ToolError(_kind(error)) from None
        try:
            if not _is_own_file(os.fstat(file)):
                raise ToolError("not_a_file")
            with open(file, "rb", closefd=False) as opened:
                data = opened.read(limit + 1)
        finally:
            os.close(file)
        if len(data) > limit:
            raise ToolError("too_large")
        return data

    @contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        folder = self._open_folder(name)
        try:
            yield folder
        finally:
            os.close(folder)

    def _open_folder(self, name: str) -> int:
        try:
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return os.open(name, _FOLDER, dir_fd=root)
            finally:
                os.close(root)
        except OSError:
            raise ToolError("unavailable") from None


def _facts(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # removed meanwhile


def _is_own_file(facts: os.stat_result | None) -> bool:
    # A second hard link may be the same file outside of the workspace.
    return facts is not None and stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1


def _write_new(name: str, content: bytes, folder: int) -> None:
    file = os.open(
        name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder
    )
    with open(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise ToolError("unavailable") from None


def _kind(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "not_found"
    return "not_a_file" if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO) else "unavailable"
