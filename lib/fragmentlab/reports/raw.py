"""Raw values of one stream, for the person who asked for them and nobody else."""

from __future__ import annotations

from fragmentlab.assembler import Result
from fragmentlab.corpus.streams import Stream
from fragmentlab.reports.show.prose import Lists

CHARACTERS_SHOWN = 4000


def raw_values(stream: Stream, result: Result) -> Lists:
    """The calls of an accepted stream, or the recording itself up to a limit."""
    if result.calls:
        return Lists(
            [
                (f"Call on index {call.index}", [call.id, call.name, _cut(call.arguments)])
                for call in result.calls
            ]
        )
    text = stream.body.decode("utf-8", "backslashreplace")
    return Lists(
        [("The recording, as received", [_cut(line) for line in _cut(text).splitlines() if line.strip()])]
    )


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS_SHOWN else f"{text[:CHARACTERS_SHOWN]}… ({len(text):,} characters)"
