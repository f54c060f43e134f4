"""The committed history: whole, labelled, and made anew row for row."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.qualification.comparing.comparison import compare_runs
from fragmentlab.qualification.comparing.expectations import load_expectations
from fragmentlab.qualification.comparing.verdict import verdict_of
from fragmentlab.qualification.runs.history import (
    HISTORY,
    differences,
    record_history,
)
from fragmentlab.qualification.runs.run_files import find_run, list_runs
from fragmentlab.qualification.runs.verify import verify_runs


def test_the_committed_history_verifies() -> None:
    """Nothing in data/runs was altered, dropped or added."""
    found = verify_runs(data_folder("runs"))
    assert found.problems == found.notes == []
    assert [entry.revision for entry in found.entries] == [label for label, _ in HISTORY]


def test_the_history_is_made_anew_row_for_row(tmp_path: Path) -> None:
    """The documented command gives the committed rows, vectors that were added since aside."""
    committed = list_runs(data_folder("runs"))
    assert differences(committed, record_history(tmp_path / "runs")) == []


def test_only_the_reconstruction_is_called_one() -> None:
    """The rule of the past is labelled in the header and in every title."""
    runs = list_runs(data_folder("runs"))
    assert [run.is_reconstruction for run in runs] == [False, True, False]
    assert "a reconstruction made" in runs[1].title


def test_captured_evidence_is_never_live() -> None:
    """No committed row claims that a server answered."""
    for run in list_runs(data_folder("runs")):
        assert set(run.results.column("evidence").to_pylist()) == {"captured", "controlled"}


def test_the_repair_passes_with_its_declarations_and_fails_without() -> None:
    """From the reconstruction to the repair every flip is declared, and none is a vector's expected
    rejection."""
    folder = data_folder("runs")
    runs = [find_run(name, [folder]) for name in ("reject-null-reconstruction", "keep-established")]
    comparison = compare_runs(*runs)
    assert verdict_of(comparison, load_expectations(folder / "expectations.json")).kind == "pass"
    assert verdict_of(comparison).kind == "lost protection"


def test_recorded_history_is_never_overwritten() -> None:
    """Making it where there is one is refused."""
    with pytest.raises(InputError, match="never rewritten"):
        record_history(data_folder("runs"))
