"""Other projects' public recordings, with an independent implementation's verdicts, where at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fragmentlab.assembler import assemble
from fragmentlab.corpus.streams import Stream

CAPTURED = Path(__file__).resolve().parents[2] / "shared" / "captured"


@pytest.mark.skipif(
    not CAPTURED.is_dir(), reason="../shared/captured is not there: recordings that are not ours to ship"
)
def test_every_recording_gives_the_independent_verdict() -> None:
    """Outcome, category and number of calls agree for every recording, in both modes."""
    verdicts = [json.loads(line) for line in (CAPTURED / "verdicts.jsonl").read_text().splitlines()]
    assert len(verdicts) > 200
    for verdict in verdicts:
        stream = Stream("s", (CAPTURED / verdict["file"]).read_bytes())
        for diagnose in (False, True):
            result = assemble(stream.body, framing=stream.framing, end=stream.end, diagnose=diagnose)
            found = (result.outcome, result.category, len(result.calls))
            assert found == (verdict["outcome"], verdict["category"], verdict["calls"]), verdict["file"]
