"""Batches that were imported without scrubbing: refused wherever their streams could be shown, unless
told."""

from __future__ import annotations

import os

from fragmentlab.corpus.batches import Batch
from fragmentlab.display import for_terminal
from fragmentlab.errors import InputError

MARK = "private"
"""The field of batch.json that ``import --no-scrub`` sets."""
ALLOW_VARIABLE = "FRAGMENTLAB_ALLOW_PRIVATE"


def refuse_private(batch: Batch) -> Batch:
    """Return the batch; raise InputError where it is private and FRAGMENTLAB_ALLOW_PRIVATE is not 1."""
    if batch.manifest.get(MARK) is True and os.environ.get(ALLOW_VARIABLE) != "1":
        raise InputError(
            f"batch {for_terminal(batch.name)} is not scrubbed: run `fragmentlab scrub` on it, or set "
            f"{ALLOW_VARIABLE}=1 and pass nothing on"
        )
    return batch
