"""What notebook 04 shows of recorded runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from fragmentlab.errors import InputError
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.imported import import_log
from fragmentlab.qualification.runs.record import record_run
from fragmentlab.reports import ResultDoesNotHold
from fragmentlab.reports.frame.parameters import declared_parameters
from fragmentlab.reports.qualification_runs import LISTED_FLIPS, Qualification, open_qualification


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Return a folder with a right run, a wrong one, and an imported log."""
    folder = tmp_path_factory.mktemp("notebook")
    for rules in ("keep-established", "accept-every-null"):
        record_run([root / "data/vectors/identity.json"], rules, Choice(rules=rules), folder / "runs")
    fact = {"time": "2026-10-01T09:30:00Z", "outcome": "rejected", "category": "TOOL_FRAGMENT_ID"}
    (folder / "log.jsonl").write_text("".join(json.dumps({"task": f"{n}", **fact}) + "\n" for n in range(3)))
    import_log(folder / "log.jsonl", "0.15.1", folder / "runs")
    return folder / "runs"


def _opened(runs: Path | str, base: str, target: str, **others: str) -> Qualification:
    given = {"batches": "", "expectations": ""} | others
    return open_qualification(SimpleNamespace(runs=str(runs), base=base, target=target, **given))


def _html(shown: object) -> str:
    return shown._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]


def test_the_page_passes_with_its_defaults(root: Path) -> None:
    """The repair against the reconstruction, declared: a pass, from the committed runs alone."""
    declared = declared_parameters(root / "notebooks/04-qualification-runs.ipynb")
    found = open_qualification(SimpleNamespace(**{name: p.default for name, p in declared.items()}))
    assert _html(found.verdict()).count("Pass") == 1
    found.require(True)
    assert "the kit's assembler was tested" in found.verdict().details[-1].lower()


def test_a_regression_fails_the_page_unless_told_otherwise(runs: Path) -> None:
    """The verdict is computed from the comparison and decides."""
    found = _opened(runs, "keep-established", "accept-every-null")
    assert "Lost protection" in _html(found.verdict())
    with pytest.raises(ResultDoesNotHold, match="lost protection"):
        found.require(True)
    assert "told not to fail" in _html(found.require(False))


def test_each_kind_of_evidence_says_what_follows(runs: Path) -> None:
    """A kind that was not met says that nothing follows; one that was says how often."""
    found = _opened(runs, "keep-established", "accept-every-null")
    assert "No live stream is recorded" in _html(found.panel("live"))
    assert "null continuations were met in" in _html(found.panel("controlled"))
    assert "nothing follows" in _html(found.panel("imported"))


def test_the_compound_history_is_drawn_as_its_own(runs: Path) -> None:
    """Imported refusals of the old category are one bar part of that name, and stay unexplained."""
    found = _opened(runs, "keep-established", "keep-established")
    assert "0.15.1 (an imported log): TOOL_FRAGMENT_ID 3" in _html(found.panel("imported"))
    assert "Why 3 imported refusals happened" in found.conclusion().to_text()


def test_flips_are_capped_and_can_be_looked_at(root: Path) -> None:
    """Each listed stream comes with the command that shows it; what is left out is counted."""
    found = _opened(root / "data/runs", "keep-established", "reject-null-reconstruction")
    table, flips = found.flips(), found.flips_df()
    assert table.frame["look at it with"].str.contains("report --only 01 .*-p stream=").all()
    assert f"{len(flips) - LISTED_FLIPS} more; `fragmentlab compare --junit` writes all" in table.note
    assert len(flips) == found.moves().frame.streams.sum() > LISTED_FLIPS


def test_the_frames_are_those_behind_the_tables(runs: Path) -> None:
    """Results and faults can be limited to batches; the tallies are those of the comparison."""
    found = _opened(runs, "keep-established", "accept-every-null", batches="vectors/identity")
    assert set(found.results_df().batch) == {"vectors/identity"} == set(found.faults_df().batch)
    assert found.runs_df().run.to_list() == [run.id for run in found.runs]
    tallies = found.tallies_df()
    assert (tallies.gained > 0).any() and set(tallies.by) == {"evidence", "provider", "category"}


def test_a_run_elsewhere_is_compared_with_the_committed_ones(runs: Path) -> None:
    """The base may be one of the kit's own runs."""
    found = _opened(runs, "reject-null-reconstruction", "keep-established", batches="vectors/identity")
    assert len(found.runs) == 4
    assert found.judged.comparison.base.is_reconstruction


def test_an_unknown_run_is_one_line(runs: Path) -> None:
    """A name that no run has is an error that the page shows."""
    with pytest.raises(InputError, match="no run is named"):
        _opened(runs, "keep-established", "nothing")
