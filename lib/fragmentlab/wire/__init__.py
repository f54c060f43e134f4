"""The wire form of a streamed response: recognised, read, written and recorded in one place."""

from fragmentlab.wire.recorder import record

__all__ = ["record"]
