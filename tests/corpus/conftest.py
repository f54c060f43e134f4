"""Run a command of the kit in this process and see what a person would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fragmentlab.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line of standard output."""
        return self.out.splitlines()[-1] if self.out else ""


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Return a function that runs one command line."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return Done(status, shown.out, shown.err)

    return run
