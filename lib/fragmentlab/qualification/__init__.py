"""Runs, the ledger, comparison, the verdict and counterfactuals."""
