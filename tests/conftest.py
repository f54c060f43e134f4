"""What every test may use: the checkout's top folder and one Hypothesis profile."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parents[1]

# Time limits per example measure the machine, not the code.
hypothesis.settings.register_profile("fragmentlab", deadline=None, print_blob=True)
hypothesis.settings.load_profile("fragmentlab")


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top folder of the checkout."""
    return ROOT


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Hand whole files to the workers: a file's set-ups are made once, and a notebook keeps its kernel."""
    return LoadFileScheduling(config, log)
