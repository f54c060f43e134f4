"""Logs of someone's own gateway: bounded facts come in, anything else is refused whole."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fragmentlab.errors import InputError
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.note import make_note, note_html, note_markdown, null_sentence
from fragmentlab.qualification.runs.imported import import_log
from fragmentlab.qualification.runs.record import record_run
from fragmentlab.qualification.runs.run_files import Run, list_runs, open_run

CANARY = "CANARY-0123456789"
FINE = {"task": "t", "time": "2026-10-01T09:30:00Z", "outcome": "rejected", "category": "TOOL_FRAGMENT_ID"}


def _import(folder: Path, *facts: dict[str, Any] | str) -> Run:
    folder.mkdir(exist_ok=True)
    log = folder / "log.jsonl"
    log.write_text("".join((fact if isinstance(fact, str) else json.dumps(fact)) + "\n" for fact in facts))
    return open_run(import_log(log, "0.15.1", folder / "runs"))


def test_outcomes_come_in_as_they_were_recorded(tmp_path: Path) -> None:
    """The compound category is kept, a time is kept in UTC, and what a log does not say stays unknown."""
    accepted = {"stream": "s-0123456789abcdef", "time": "2026-10-01T11:30:00+02:00", "outcome": "accepted"}
    run = _import(tmp_path, FINE, accepted)
    rows = run.results.to_pylist()
    assert [row["category"] for row in rows] == ["TOOL_FRAGMENT_ID", None]
    assert {row["evidence"] for row in rows} == {"imported"}
    assert [row["null_continuations"] for row in rows] == [None, None]
    assert run.timings.column("time").to_pylist() == ["2026-10-01T09:30:00+00:00"] * 2


def test_a_logged_null_continuation_is_counted(tmp_path: Path) -> None:
    """A refusal whose diagnostic says established and null is one that was observed."""
    run = _import(
        tmp_path, FINE | {"incoming_kind": "null", "previous_identity": "established", "fragment": 4}
    )
    assert run.results.column("null_continuations").to_pylist() == [1]
    assert run.diagnostics.column("fragment").to_pylist() == [4]


def test_a_task_is_kept_as_a_keyed_hash_only(tmp_path: Path) -> None:
    """No task can be guessed from its hash; within one runs folder the same task has the same one."""
    names = [
        _import(folder, FINE).results.column("stream").to_pylist()
        for folder in (tmp_path / "a", tmp_path / "a", tmp_path / "b")
    ]
    assert names[0] == names[1] != names[2]
    assert hashlib.sha256(b"t").hexdigest()[:16] not in str(names)


def test_a_task_never_reaches_a_run(tmp_path: Path) -> None:
    """Whatever a task is called; the same task twice gives two rows."""
    run = _import(tmp_path, FINE | {"task": CANARY}, FINE | {"task": CANARY})
    for path in run.folder.iterdir():
        assert CANARY.encode() not in path.read_bytes()
    assert len(set(run.results.column("stream").to_pylist())) == 2


@pytest.mark.parametrize(
    "fact",
    [
        FINE | {"arguments": CANARY},
        FINE | {CANARY: 1},
        FINE | {"task": None},
        FINE | {"task": ""},
        FINE | {"stream": "s-0123456789abcdef"},
        {name: value for name, value in FINE.items() if name != "task"} | {"stream": CANARY},
        FINE | {"time": CANARY},
        FINE | {"time": "2026-10-01T09:30:00"},
        FINE | {"time": 5},
        FINE | {"outcome": CANARY},
        FINE | {"category": CANARY},
        FINE | {"category": None},
        FINE | {"category": ["TOOL_FRAGMENT_ID"]},
        FINE | {"outcome": "accepted"},
        {**FINE, "outcome": "accepted", "category": None, "fragment": 1},
        FINE | {"incoming_kind": CANARY},
        FINE | {"had_id": 1},
        FINE | {"fragment": 0},
        FINE | {"fragment": True},
        FINE | {"event": CANARY},
        FINE | {"stage": CANARY},
        "[]",
        "{",
        CANARY,
        '{"task": "a", "task": "' + CANARY + '"}',
        "[" * 9000,
        '"' + "x" * 20000 + '"',
    ],
)
def test_anything_unbounded_is_refused_whole(tmp_path: Path, fact: dict[str, Any] | str) -> None:
    """One line that is not as described leaves no run, and is named by its number without being quoted."""
    with pytest.raises(InputError, match="line") as raised:
        _import(tmp_path, FINE, fact)
    assert CANARY not in str(raised.value)
    left = {path.name for path in (tmp_path / "runs").glob("*")}
    assert left <= {".private"}


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_log_that_is_no_file_is_one_line(tmp_path: Path, name: str) -> None:
    """A missing file and a directory are named."""
    with pytest.raises(InputError):
        import_log(tmp_path / name, "x", tmp_path / "runs")


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    """A log without a line is no history."""
    with pytest.raises(InputError, match="no line"):
        _import(tmp_path)


def test_the_note_leaves_unknown_causes_unknown(tmp_path: Path, recorded: Path) -> None:
    """Compound refusals of an earlier revision stay failures of unknown cause, named by run and stream."""
    log = _import(tmp_path, FINE, FINE | {"category": "completion.truncated"})
    note = make_note("first", [*list_runs(recorded), log])
    text = note_markdown(note).replace("\\", "")
    assert "failures of unknown cause" in text
    assert f"{log.id} / imported / {log.results.column('stream')[0]}" in text
    assert "No live stream of this revision is recorded" in text
    assert "the kit's assembler was tested, not yours" in text


def test_every_claim_of_a_note_names_rows(recorded: Path) -> None:
    """Each sentence on what was shown names its run, and those on streams name stream and fragment."""
    note = make_note("second", list_runs(recorded))
    shown = note.sections["What controlled regressions showed"]
    assert all(sentence.cited for sentence in shown)
    assert any(" / fragment " in row for sentence in shown for row in sentence.cited)
    assert "It is a reconstruction, not history." in note.sections["What was tested"][0].text


def test_a_note_takes_no_failed_subject_for_one_that_refuses(tmp_path: Path, identity: Path) -> None:
    """Streams without an outcome are said to show nothing, and a subject made wrong is called that."""
    broken = Choice(command=(sys.executable, "-S", "-c", "raise SystemExit(3)"))
    for revision, choice in (("broken", broken), ("wrong", Choice(rules="last-wins"))):
        record_run([identity.with_name("counterexample.json")], revision, choice, tmp_path / "runs")
    runs = list_runs(tmp_path / "runs")
    text = note_markdown(make_note("broken", runs)).replace("\\", "")
    assert (
        f"{len(runs[0].results)} streams of controlled evidence got no outcome, since the subject failed"
        in text
    )
    assert (
        f"(failed:subject.crashed {len(runs[0].results)}): they show nothing of what it refuses or accepts."
        in text
    )
    assert "made wrong on purpose" in make_note("wrong", runs).sections["What was tested"][0].text


def test_a_note_is_one_page_without_script(recorded: Path) -> None:
    """The HTML needs nothing from elsewhere."""
    page = note_html(make_note("first", list_runs(recorded)))
    assert "<script" not in page
    assert "http" not in page


def test_a_note_of_nothing_is_refused(recorded: Path) -> None:
    """A revision without a run has no note."""
    with pytest.raises(InputError, match="no qualification run"):
        make_note("third", list_runs(recorded))


def test_zero_null_continuations_prove_nothing() -> None:
    """A run that met none says so in words that nobody can read as proof."""
    rows = pd.DataFrame({"outcome": "accepted", "null_continuations": [0] * 40})
    assert "no proof" in null_sentence("live", rows)
    rows.loc[:1, "null_continuations"] = [1, 2]
    told = null_sentence("live", rows)
    assert told.startswith("3 null continuations were met in 2 of 40 streams")
    assert told.endswith("2 of those 2 were accepted.")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_outside_of_the_calendar_is_one_line(tmp_path: Path, time: str) -> None:
    """A time that has no UTC is refused like one that is none."""
    with pytest.raises(InputError, match="line 1 of the log: time must be"):
        _import(tmp_path, FINE | {"time": time})


def test_a_bad_line_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    """Blank lines are counted, so that an editor finds the line."""
    with pytest.raises(InputError, match="line 4 of the log"):
        _import(tmp_path, FINE, "", "", FINE | {"arguments": "{}"})


def test_numbered_repeats_never_meet_a_logged_id(tmp_path: Path) -> None:
    """An id that looks like the second outcome of another one is kept apart from it."""
    once = {"stream": "s-0123456789abcdef", "time": FINE["time"], "outcome": "accepted"}
    facts = [once, once, once | {"stream": "s-0123456789abcdef-2"}]
    streams = _import(tmp_path, *facts, *facts[::-1]).results.column("stream").to_pylist()
    assert len(set(streams)) == len(streams) == 6


def test_a_log_that_cannot_be_read_twice_is_one_line(tmp_path: Path) -> None:
    """A pipe is refused at once instead of being waited for."""
    os.mkfifo(tmp_path / "log")
    with pytest.raises(InputError, match="it is a pipe"):
        import_log(tmp_path / "log", "r", tmp_path / "runs")
