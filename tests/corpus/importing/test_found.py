"""Files that people really had, each with what is right for it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fragmentlab.cli import main
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.importing.streams import Summary, import_streams

FOUND = Path(__file__).parent / "found"
INDEX = [json.loads(line) for line in (FOUND / "index.jsonl").read_text().splitlines()]
NOTED = {
    "other text before an event": "other text stood before an event",
    "noted the same": "other text stood before an event",
    "prefix removed": "prefixes removed from lines",
    "line ends were escaped": "line ends were escaped",
}
REFUSED = {
    "02-python-repr-prefixed.log": "printed object",
    "04-litellm-repr.txt": "printed object",
    "06-python-dict-repr-lines.txt": "printed object",
    "38-node-inspect-object-collapsed.txt": "printed object",
    "3e-toolcalls-lines.txt": "fragments without the chunks",
    "3h-html-error.sse": "web page",
    "41-langfuse-observations-export.jsonl": "assembled messages",
    "43-litellm-standard-logging.json": "was not streamed",
    "47-otel-span.json": "assembled messages",
    "49-langsmith-run.json": "assembled messages",
    "5e-aimock-fixture.json": "assembled messages",
}
REJECTED = {
    "36-no-blank-lines.sse": "event.invalid_json",
    "3f-openai-error-body-pretty.sse": "completion.error_event",
}
"""Streams as recorded that are no good answers: events that lost their ends are not repaired."""
"""Containers that cannot support an outcome, and the reason; the others hold the same accepted stream."""


def imported(path: Path) -> tuple[list, Summary]:
    summary = Summary()
    return list(import_streams([str(path)], summary)), summary


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_each_file_gives_what_its_index_says(entry):
    """Outcome, number of streams, null continuations and notes are those of the index."""
    found, summary = imported(FOUND / entry["file"])
    expect = entry["expect"]
    if expect.startswith("refused"):
        assert found == []
        word = "packet capture" if "pcap" in entry["file"] else "printed object"
        assert word in summary.faults[0][1]
        return
    assert len(found) == (2 if "two streams" in expect or "a cell" in expect else 1)
    wanted = re.split("[,;]", expect.replace("two streams, ", "").replace("one stream, ", ""))[0]
    for one in found:
        assert f"{one.result.outcome} {one.result.category or ''}".startswith(wanted)
    nulls = sum(one.result.counts["null_continuations"] for one in found)
    # The index counts those of one cell of the table.
    assert nulls == entry.get("null_continuations", nulls) * (2 if "a cell" in expect else 1)
    for words, note in NOTED.items():
        if words in expect:
            assert note in found[0].notes
            assert found[0].stream.fidelity == "chunks"


@pytest.mark.parametrize("path", sorted((FOUND / "containers").iterdir()), ids=lambda path: path.name)
def test_each_container_is_read_or_refused_with_its_reason(path):
    """The one stream that all hold is accepted with two nulls, or it is said why it cannot be judged."""
    found, summary = imported(path)
    if path.name in REFUSED:
        assert found == []
        assert REFUSED[path.name] in summary.seems[str(path)]
    else:
        (one,) = found
        if path.name in REJECTED:
            assert one.result.category == REJECTED[path.name]
        else:
            assert (one.result.outcome, one.result.counts["null_continuations"]) == ("accepted", 2)
            assert summary.faults == []


@pytest.mark.parametrize("path", sorted((FOUND / "containers").iterdir()), ids=lambda path: path.name)
def test_assemble_says_the_same(path, capsys):
    """``assemble`` exits 0 for what is accepted, 1 for what is rejected and 2, with the reason, otherwise."""
    status = main(["assemble", str(path)])
    shown = capsys.readouterr()
    wanted = 2 if path.name in REFUSED else 1 if path.name in REJECTED else 0
    assert status == wanted, shown
    if wanted == 2:
        assert REFUSED[path.name] in shown.err


def test_a_folder_of_them_becomes_one_batch(tmp_path, command):
    """Scrubbing proves each stream, and the summary names each file that is refused."""
    done = command("import", FOUND / "containers", "--out", tmp_path / "out")
    assert done.status == 1
    assert open_batch(tmp_path / "out").count == 51 - len(REFUSED)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_assemble_agrees_with_the_index(entry, capsys):
    """``assemble`` exits 2 for what is refused, 1 for what is rejected, 0 for what is accepted."""
    status = main(["assemble", str(FOUND / entry["file"])])
    shown = capsys.readouterr()
    word = re.split("[,; ]", entry["expect"].replace("two streams, ", "").replace("one stream, ", ""))[0]
    word = word.rstrip(":")
    assert status == {"accepted": 0, "rejected": 1, "refused": 2}[word], shown
    if word != "refused":
        category = entry["expect"].partition("rejected ")[2].partition(";")[0].partition(",")[0]
        assert word in shown.out
        assert category in shown.out
