"""Recordings of other projects: import keeps the verdicts of an independent implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fragmentlab.corpus.importing.streams import Summary, import_streams

CAPTURED = Path(__file__).resolve().parents[4] / "shared" / "captured"


@pytest.mark.skipif(not CAPTURED.is_dir(), reason="needs ../shared/captured, which is not part of the kit")
def test_import_keeps_every_verdict() -> None:
    """Nothing is repaired on the way: a recording without its blank lines stays refused as joined events."""
    verdicts = [json.loads(line) for line in (CAPTURED / "verdicts.jsonl").read_text().splitlines()]
    wrong = []
    for verdict in verdicts:
        imported = list(import_streams([str(CAPTURED / verdict["file"])], Summary()))
        found = [(each.stream.assemble().outcome, each.stream.assemble().category) for each in imported]
        is_other = not found and verdict["category"] == "protocol.not_chat_completions"
        if found != [(verdict["outcome"], verdict["category"])] and not is_other:
            wrong.append((verdict["file"], found))
    assert wrong == []
