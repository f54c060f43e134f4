"""Small runs that several tests judge: made once, copied where a test damages them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.record import record_run
from fragmentlab.qualification.runs.run_files import Run, open_run


@pytest.fixture(scope="session")
def identity(root: Path) -> Path:
    """Return the vector file that the small runs are made over."""
    return root / "data" / "vectors" / "identity.json"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, identity: Path) -> Path:
    """Return a runs folder with two runs; do not change it."""
    runs = tmp_path_factory.mktemp("recorded") / "runs"
    for revision, rules in (("first", "keep-established"), ("second", "reject-null")):
        record_run([identity], revision, Choice(rules=rules), runs)
    return runs


@pytest.fixture
def runs(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the runs folder that a test may change."""
    return Path(shutil.copytree(recorded, tmp_path / "runs"))


@pytest.fixture
def record(tmp_path: Path, identity: Path) -> Callable[..., Run]:
    """Return a function that records one run of a choice and opens it."""

    def make(choice: Choice, revision: str = "some", sources: list[Path] | None = None) -> Run:
        return open_run(record_run(sources or [identity], revision, choice, tmp_path / "own-runs"))

    return make
