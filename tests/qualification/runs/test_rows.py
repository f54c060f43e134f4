"""What a run records of a stream, and what it never records."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fragmentlab.assembler import Assembler, Result, assemble
from fragmentlab.assembler.assembler import End
from fragmentlab.corpus.batches import write_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.corpus.vectors import load_vectors
from fragmentlab.errors import InputError
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.record import record_run
from fragmentlab.qualification.runs.rows import RESULTS, same_calls
from fragmentlab.qualification.runs.run_files import Run, open_run
from fragmentlab.qualification.runs.sources import open_sources
from fragmentlab.qualification.runs.writer import GROUP_ROWS

Record = Callable[..., Run]
KEEP = Choice(rules="keep-established")
CANARY = "CANARY-0123456789"
ROOT = Path(__file__).resolve().parents[3]


def _body(call_id: str = CANARY, later: str = '"id": null, ') -> bytes:
    first = f'{{"index": 0, "id": "{call_id}", "function": {{"name": "{CANARY}", "arguments": "{{}}"}}}}'
    second = f'{{"index": 0, {later}"function": {{"arguments": ""}}}}'
    chunks = [
        f'{{"object": "chat.completion.chunk", "choices": [{{"delta": {{"tool_calls": [{call}]}}}}]}}'
        for call in (first, second)
    ]
    end = (
        '{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'
    )
    return "".join(f"data: {chunk}\n\n" for chunk in (*chunks, end, "[DONE]")).encode()


def _batch(folder: Path, *streams: Stream, name: str = "mine", evidence: str = "captured") -> Path:
    facts = {"provenance": "a test", "licence": "MIT", "scrubbed": False}
    return write_batch(folder / name, streams, name=name, evidence=evidence, **facts)  # type: ignore[arg-type]


def _stream(body: bytes, **facts: object) -> Stream:
    return Stream(stream_id(body), body, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("choice", "assemblies"), [(KEEP, 1), (Choice(rules="reject-null"), 2), (Choice(command=("false",)), 1)]
)
def test_a_stream_is_assembled_once_a_pass(
    choice: Choice,
    assemblies: int,
    tmp_path: Path,
    identity: Path,
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kit reads each stream once; another rule set's subject reads it once more, under its own rules."""
    done: Counter[str] = Counter()
    finish = Assembler.finish

    def counting(self: Assembler, end: End = "unknown") -> Result:
        result = finish(self, end)
        done[result.rules] += 1
        return result

    monkeypatch.setattr(Assembler, "finish", counting)
    batch = _batch(tmp_path, *(_stream(_body(CANARY + str(n))) for n in range(5)))
    run = record(choice, sources=[identity, batch])
    assert set(done.values()) == {run.results.num_rows} and len(done) == assemblies


def test_a_vector_row_says_what_was_expected_and_whether_it_came(record: Record, identity: Path) -> None:
    """Each vector gives one row, in order, with its expectation beside the outcome."""
    rows = record(KEEP).results.to_pylist()
    vectors = load_vectors(identity).vectors
    assert [row["stream"] for row in rows] == [vector.id for vector in vectors]
    assert [row["expected_outcome"] for row in rows] == [vector.expect.outcome for vector in vectors]
    assert all(row["as_expected"] for row in rows)
    assert {row["evidence"] for row in rows} == {"controlled"}


def test_a_row_counts_what_the_stream_holds(tmp_path: Path, record: Record) -> None:
    """Counts are those of the assembler, and the first null continuation is named by its fragment."""
    run = record(KEEP, sources=[_batch(tmp_path, _stream(_body()))])
    (row,) = run.results.to_pylist()
    counts = assemble(_body()).counts
    assert all(row[name] == counts[name] for name in ("events", "fragments", "arguments_bytes"))
    assert (row["null_continuations"], row["first_null_fragment"]) == (1, 2)
    assert json.loads(row["tolerances"])["null_padding.id"] == 1
    assert run.header["evidence"]["captured"] == {"streams": 1, "null_continuations": 1}


def test_facts_of_a_stream_do_not_depend_on_the_subject(record: Record) -> None:
    """Null continuations are counted on the wire, also where a rule set stops at the first."""
    facts = ["stream", "events", "fragments", "arguments_bytes", "null_continuations", "tolerances"]
    tables = [
        record(Choice(rules=rules)).results.select(facts) for rules in ("keep-established", "reject-null")
    ]
    assert tables[0].equals(tables[1])


def test_every_fault_is_a_row_and_the_first_decides(record: Record) -> None:
    """Diagnostics count from 1 within a stream, and the first one has the category of its result."""
    run = record(KEEP)
    first = {row["stream"]: row["category"] for row in run.diagnostics.to_pylist() if row["fault"] == 1}
    refused = {row["stream"]: row["category"] for row in run.results.to_pylist() if row["category"]}
    assert first == refused


def test_timings_stand_apart(record: Record) -> None:
    """Every stream has a time, and none of it is in the rows that are compared."""
    run = record(KEEP)
    assert "seconds" not in RESULTS.names
    assert all(seconds >= 0 for seconds in run.timings.column("seconds").to_pylist())


def test_workers_do_not_change_a_row(tmp_path: Path, identity: Path, record: Record) -> None:
    """Several processes give the same rows in the same order."""
    folder = record_run([identity], "two", KEEP, tmp_path / "runs", workers=2)
    run, alone = open_run(folder), record(KEEP)
    assert run.results.equals(alone.results)
    assert run.diagnostics.equals(alone.diagnostics)


def test_rows_are_written_in_bounded_groups(tmp_path: Path, record: Record) -> None:
    """A batch larger than a group keeps its order over groups."""
    streams = [_stream(f'data: {{"id": "{n}"}}\n\n'.encode()) for n in range(GROUP_ROWS + 5)]
    table = record(KEEP, sources=[_batch(tmp_path, *streams)]).results
    assert table.column("stream").to_pylist() == [stream.id for stream in streams]


def test_nothing_raw_of_a_stream_is_recorded(tmp_path: Path, record: Record) -> None:
    """IDs, names, arguments, private providers and file names never reach a run's files."""
    private = {"provider": CANARY, "server": CANARY, "model": CANARY, "tools": ("other", CANARY)}
    streams = [_stream(_body(), **private), _stream(_body(later=f'"id": "{CANARY}-2", '), **private)]
    run = record(KEEP, sources=[_batch(tmp_path / CANARY, *streams)])
    _assert_absent(run)
    assert {row["provider"] for row in run.results.to_pylist()} == {"provider-1"}


@pytest.mark.parametrize(
    "script",
    [
        'print(\'{"outcome": "rejected", "category": "%s", "note": "%s"}\')',
        'print(\'{"outcome": "accepted", "calls": [{"id": "%s", "name": "%s", "arguments": "{}"}]}\')',
        "import sys; print('%s'); sys.stderr.write('%s'); sys.exit(1)",
        "raise SystemExit('%s' + '%s')",
    ],
)
def test_nothing_that_a_command_prints_is_recorded(tmp_path: Path, record: Record, script: str) -> None:
    """A subject's output, its command line and its errors never reach a run's files."""
    command = (sys.executable, "-c", script % (CANARY, CANARY))
    _assert_absent(record(Choice(command=command), sources=[_batch(tmp_path, _stream(_body("a")))]))


def _assert_absent(run: Run) -> None:
    for path in [*run.folder.iterdir(), run.folder.parent / "ledger.jsonl"]:
        assert CANARY.encode() not in path.read_bytes()
    for table in (run.results, run.diagnostics, run.timings):
        assert CANARY not in repr(table.to_pylist())


def test_calls_of_a_command_are_compared_with_those_of_the_stream(tmp_path: Path, record: Record) -> None:
    """Accepted with the stream's own calls, or with others: only that one fact is kept."""
    batch = _batch(tmp_path, _stream(_body("a")))
    for call_id, matches in (("a", True), ("b", False)):
        answer = {"outcome": "accepted", "calls": [{"id": call_id, "name": CANARY, "arguments": " {} "}]}
        command = (sys.executable, "-c", f"print({json.dumps(answer)!r})")
        (row,) = record(Choice(command=command), sources=[batch]).results.to_pylist()
        assert row["calls_match"] is matches


@pytest.mark.parametrize(
    ("arguments", "same"),
    [('{"a": 1}', True), ('{"a":1.0}', False), ('{"a":true}', False), ("{", False), ("[" * 9999, False)],
)  # fmt: skip
def test_arguments_are_compared_as_json(arguments: str, same: bool) -> None:
    """White space is no difference; another type is."""
    assert same_calls([("i", "n", arguments)], [("i", "n", '{"a":1}')]) is same


def test_two_streams_with_one_body_keep_apart(tmp_path: Path, record: Record) -> None:
    """A body that comes twice gives two rows with two names."""
    run = record(KEEP, sources=[_batch(tmp_path, _stream(_body()), _stream(_body(), tools=("x",)))])
    names = run.results.column("stream").to_pylist()
    assert names == [stream_id(_body()), f"{stream_id(_body())}-2"]


def test_a_replayed_recording_of_live_answers_is_captured(tmp_path: Path) -> None:
    """Nothing answered during this run, so its evidence is not live."""
    (source,) = open_sources([_batch(tmp_path, _stream(_body()), evidence="live")])
    assert (source.facts.evidence, source.facts.declared) == ("captured", "live")


def test_a_batch_that_was_altered_leaves_no_run(tmp_path: Path) -> None:
    """A part that is not what its batch says ends the run, and nothing is recorded."""
    batch = _batch(tmp_path, _stream(_body()))
    part = batch / "streams.jsonl"
    part.write_bytes(part.read_bytes().replace(b"chat.completion.chunk", b"chat.completion.chonk"))
    with pytest.raises(InputError, match="SHA-256"):
        record_run([batch], "x", KEEP, tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_no_hash_of_a_private_stream_can_be_guessed(
    tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids, bodies, conditions and the batch itself are hashed with a key that stays beside the runs."""
    monkeypatch.setenv("FRAGMENTLAB_ALLOW_PRIVATE", "1")
    stream = _stream(_body(), tools=("secret-tool",))
    open_run = record(KEEP, sources=[_batch(tmp_path, stream, stream)])
    manifest = tmp_path / "mine" / "batch.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), "private": True}))
    keyed, again = (record(KEEP, sources=[tmp_path / "mine"]) for _ in range(2))
    columns = ["stream", "body_sha256", "conditions_sha256"]
    plain, private, same = (
        {value for row in run.results.select(columns).to_pylist() for value in row.values()}
        | {run.header["sources"][0]["sha256"]}
        for run in (open_run, keyed, again)
    )
    assert private == same
    assert not plain & private
    assert len(private) == 5
    assert {row["stream"] for row in keyed.timings.to_pylist()} == set(
        keyed.results.column("stream").to_pylist()
    )


@pytest.mark.parametrize("name", ["acme-secret", "keep-established", "empty-clears"])
def test_a_rule_set_of_ones_own_is_recorded_by_its_table(tmp_path: Path, record: Record, name: str) -> None:
    """Neither its name nor a name of the kit's that it took: the hash of its table tells tables apart."""
    table = json.loads((ROOT / "lib/fragmentlab/assembler/rules/keep-established.json").read_bytes())
    made = []
    for action in ("keep", "set"):
        table["cells"]["established"]["other_string"] = action
        path = tmp_path / f"acme-{action}.json"
        path.write_text(json.dumps({**table, "name": name}))
        run = record(Choice(rules=str(path)))
        made.append(run.rules)
        assert "acme" not in run.title + (run.folder / "run.json").read_text()
        assert run.rules == f"candidate-{run.subject['rules_sha256'][:12]}"
    assert len(set(made)) == 2


@pytest.mark.parametrize("revision", ["", "../up", "a b", "x" * 121, "-x", CANARY + "\x1b[2J"])
def test_a_revision_label_is_plain(tmp_path: Path, identity: Path, revision: str) -> None:
    """A label that could not stand in a file name is refused and not quoted."""
    with pytest.raises(InputError, match="revision label") as raised:
        record_run([identity], revision, KEEP, tmp_path / "runs")
    assert CANARY not in str(raised.value)


def test_unusable_tools_of_a_stream_are_one_line(tmp_path: Path) -> None:
    """A batch whose tools no assembler can take is refused by the stream's number, nothing quoted."""
    batch = _batch(tmp_path, _stream(_body()), _stream(_body("b"), tools=({"name": 7, CANARY: CANARY},)))
    with pytest.raises(InputError, match="stream 2") as raised:
        record_run([batch], "x", KEEP, tmp_path / "runs")
    assert CANARY not in str(raised.value)


def test_a_source_given_twice_is_refused(identity: Path) -> None:
    """Two sources of one name could not be told apart later."""
    with pytest.raises(InputError, match="given twice"):
        open_sources([identity, identity])
