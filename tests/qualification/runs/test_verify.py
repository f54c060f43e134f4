"""``runs verify`` finds every way in which a recorded folder can have been changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fragmentlab.errors import InputError
from fragmentlab.files import locked
from fragmentlab.qualification.runs.ledger import LEDGER, append_entry, read_ledger
from fragmentlab.qualification.runs.rows import PARTS
from fragmentlab.qualification.runs.run_files import RUN_FILE, file_sha256, find_run, header_sha256, list_runs
from fragmentlab.qualification.runs.verify import verify_runs

FILES = (RUN_FILE, *PARTS)


def _first(runs: Path) -> Path:
    return runs / read_ledger(runs)[0].run


def _problems(runs: Path) -> str:
    return "\n".join(verify_runs(runs).problems)


def test_an_untouched_folder_verifies(runs: Path) -> None:
    """Nothing is found where nothing was changed, and the head is the last entry's hash."""
    found = verify_runs(runs)
    assert found.problems == found.notes == []
    assert verify_runs(runs, found.head).problems == []


@pytest.mark.parametrize("place", [0, 0.5, -1])
@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found_in_each_file_and_named(runs: Path, name: str, place: float) -> None:
    """One changed bit anywhere in a run's files names that file."""
    path = _first(runs) / name
    data = bytearray(path.read_bytes())
    position = place if isinstance(place, int) else int(len(data) * place)
    data[position] ^= 1
    path.write_bytes(data)
    assert name in _problems(runs)
    assert path.parent.name in _problems(runs)


@pytest.mark.parametrize(
    "change", [lambda data: data + b"\n", lambda data: data[:-1]], ids=["extra", "missing"]
)
@pytest.mark.parametrize("name", FILES)
def test_an_extra_or_missing_byte_is_found(runs: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """A file that grew or shrank by one byte is named."""
    path = _first(runs) / name
    path.write_bytes(change(path.read_bytes()))
    assert name in _problems(runs)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_found(runs: Path, name: str) -> None:
    """A removed file is named as missing."""
    (_first(runs) / name).unlink()
    assert f"{name} is missing" in _problems(runs)


def test_every_byte_of_the_ledger_counts(runs: Path) -> None:
    """Flipping any byte of the ledger is found."""
    ledger = runs / LEDGER
    data = ledger.read_bytes()
    for position in range(0, len(data), 7):
        ledger.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        assert verify_runs(runs).problems


def test_a_dropped_run_is_found(runs: Path) -> None:
    """A run whose folder is gone is named as dropped."""
    folder = _first(runs)
    shutil.rmtree(folder)
    assert f"run {folder.name} was dropped" in _problems(runs)


def test_a_dropped_line_is_found(runs: Path) -> None:
    """A ledger without its first line does not chain, and the run is then one too many."""
    folder = _first(runs)
    lines = (runs / LEDGER).read_bytes().splitlines(keepends=True)
    (runs / LEDGER).write_bytes(b"".join(lines[1:]))
    assert "does not follow" in _problems(runs)
    assert f"{folder.name} was added" in _problems(runs)


def test_a_removed_ledger_is_found(runs: Path) -> None:
    """Without the ledger every run is one that nobody recorded."""
    (runs / LEDGER).unlink()
    assert [problem.split()[-1] for problem in verify_runs(runs).problems] == ["verified", "it", "it"]


@pytest.mark.parametrize("ledger", [None, b""], ids=["no ledger", "an empty ledger"])
def test_an_emptied_folder_does_not_verify(tmp_path: Path, ledger: bytes | None) -> None:
    """Where nothing is recorded, nothing is as recorded."""
    if ledger is not None:
        (tmp_path / LEDGER).write_bytes(ledger)
    assert "no run is recorded here" in _problems(tmp_path)


def test_a_recomputed_footer_is_found_and_named(runs: Path) -> None:
    """A part that was changed with its footer made to fit is named as recomputed."""
    folder = _first(runs)
    other = next(run.folder for run in list_runs(runs) if run.folder != folder)
    shutil.copy(other / "results.parquet", folder / "results.parquet")
    content = json.loads((folder / RUN_FILE).read_bytes())
    part = content["footer"]["parts"][0]
    part["sha256"] = file_sha256(folder / part["file"])
    part["bytes"] = (folder / part["file"]).stat().st_size
    (folder / RUN_FILE).write_text(json.dumps(content))
    assert "footer was recomputed" in _problems(runs)
    with pytest.raises(InputError, match="not what the ledger recorded"):
        find_run("first", [runs])


@pytest.mark.parametrize("name", ["extra.txt", "results.parquet.bak"])
def test_an_added_file_is_found(runs: Path, name: str) -> None:
    """A file that no footer names is one too many, in a run and beside the runs."""
    (_first(runs) / name).touch()
    (runs / name).touch()
    assert [f"{name} was added" in problem for problem in verify_runs(runs).problems] == [True, True]


def test_an_added_run_is_found(runs: Path) -> None:
    """A copy of a run under another name is one too many."""
    shutil.copytree(_first(runs), runs / "copied")
    assert "copied was added" in _problems(runs)


def test_a_link_is_not_a_run(runs: Path, tmp_path: Path) -> None:
    """A run's folder that was moved elsewhere and linked is named."""
    folder = _first(runs)
    os.rename(folder, tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert "is a link" in _problems(runs)


def test_the_last_run_dropped_with_its_entry_is_found_by_the_head(runs: Path) -> None:
    """Only a head kept elsewhere can show that the end of the ledger was cut off cleanly."""
    head = verify_runs(runs).head
    entries = read_ledger(runs)
    shutil.rmtree(runs / entries[-1].run)
    (runs / LEDGER).write_bytes(b"".join(entry.line() for entry in entries[:-1]))
    assert verify_runs(runs).problems == []
    assert "does not contain the given head" in "\n".join(verify_runs(runs, head).problems)


def test_a_run_added_after_the_head_is_named(runs: Path) -> None:
    """A head that is no longer the last one names what came after it."""
    entries = read_ledger(runs)
    problems = verify_runs(runs, entries[0].hash).problems
    assert problems == [f"run {entries[1].run} was added after the given head"]


def test_a_broken_ledger_is_never_continued(runs: Path) -> None:
    """No entry is appended to a ledger that was altered."""
    path = runs / LEDGER
    path.write_bytes(path.read_bytes().replace(b"first", b"frist"))
    before = path.read_bytes()
    with locked(runs), pytest.raises(InputError, match="was altered"):
        append_entry(runs, "some", hashlib.sha256().hexdigest(), "some")
    assert path.read_bytes() == before


def test_a_run_without_footer_is_not_a_run(runs: Path) -> None:
    """A folder whose run.json lacks a footer is refused with the reason."""
    folder = runs / "half"
    shutil.copytree(_first(runs), folder)
    (runs / LEDGER).unlink()
    content = json.loads((folder / RUN_FILE).read_bytes())
    del content["footer"]
    (folder / RUN_FILE).write_text(json.dumps(content))
    with pytest.raises(InputError, match="missing required field footer"):
        find_run(str(folder), [])


def test_a_run_of_a_newer_version_is_refused_by_that_reason(runs: Path) -> None:
    """A newer schema is named as such, not as damage."""
    folder = _first(runs)
    (runs / LEDGER).unlink()
    path = folder / RUN_FILE
    path.write_text(path.read_text().replace("fragmentlab-run-v1", "fragmentlab-run-v2"))
    with pytest.raises(InputError, match="another version"):
        find_run(str(folder), [])


def test_runs_of_older_versions_still_read(runs: Path) -> None:
    """A header without the hash of its rule table is as valid; a private name in it is not shown."""
    folder = _first(runs)
    content = json.loads((folder / RUN_FILE).read_bytes())
    content["header"]["subject"] = {"kind": "assembler", "name": "n", "rules": "acme-rules"}
    content["footer"]["header_sha256"] = header_sha256(content["header"])
    (folder / RUN_FILE).write_text(json.dumps(content))
    (runs / LEDGER).unlink()
    run = find_run(str(folder), [], unrecorded=True)
    assert (run.rules, "acme" in run.title) == ("candidate", False)


def test_every_flipped_bit_of_the_small_files_is_named(runs: Path) -> None:
    """Any byte of run.json or the ledger may change, also one in a key, and is named without a crash."""
    for path in (_first(runs) / RUN_FILE, runs / LEDGER):
        original = path.read_bytes()
        for position in range(len(original)):
            changed = bytearray(original)
            changed[position] ^= 1 << position % 8
            path.write_bytes(changed)
            assert path.name in _problems(runs)
            with pytest.raises(InputError):
                list_runs(runs)
        path.write_bytes(original)


@pytest.mark.parametrize("name", [5, ["a"], "", "..", "../elsewhere", "/etc", "a\0b", ".hidden"])
def test_an_entry_that_leads_elsewhere_is_no_entry(runs: Path, name: object) -> None:
    """A ledger that was rewritten with all its hashes cannot name a folder outside or what is no name."""
    (runs / LEDGER).unlink()
    append_entry(runs, name, "0" * 64, "r")  # type: ignore[arg-type]
    assert f"{LEDGER}, line 1 was altered" in _problems(runs)


def test_a_linked_run_file_is_no_run(runs: Path, tmp_path: Path) -> None:
    """A link in the place of run.json is found, even to the same content."""
    path = _first(runs) / RUN_FILE
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert f"{RUN_FILE} is missing" in _problems(runs)
