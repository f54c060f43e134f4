"""Notebooks as pages: parameters, execution, rendering, the index."""
