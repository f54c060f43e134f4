"""The same helpers as other tests use."""

from tests.corpus.conftest import command
from tests.runtime.conftest import serve

__all__ = ["command", "serve"]
