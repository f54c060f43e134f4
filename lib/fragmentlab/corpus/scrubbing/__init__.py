"""Streams to harmless streams whose verdict stays the same."""
