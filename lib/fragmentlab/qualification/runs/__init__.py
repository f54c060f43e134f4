"""Qualification runs: recorded once, entered in a ledger, verified."""
