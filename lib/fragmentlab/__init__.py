"""Decide whether streamed tool-call fragments form a call, or why they must be refused."""

__version__ = "0.1.0"
