"""Synthetic streams, drawn from provider shapes and a seed."""
