"""The same helper as the corpus tests use."""

from tests.corpus.conftest import command

__all__ = ["command"]
