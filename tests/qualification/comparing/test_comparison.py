"""Flips, verdicts and declarations, as tables; then the rule sets that must be told apart."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.comparing.comparison import acceptance_interval, compare_runs, paired_p
from fragmentlab.qualification.comparing.expectations import Declared, load_expectations, proposal
from fragmentlab.qualification.comparing.verdict import Verdict, verdict_of
from fragmentlab.qualification.comparing.verdict_texts import verdict_junit, verdict_markdown, verdict_text
from fragmentlab.qualification.runs.rows import DIAGNOSTICS, RESULTS
from fragmentlab.qualification.runs.run_files import Run, find_run, open_run
from fragmentlab.qualification.runs.sources import SourceFacts
from fragmentlab.qualification.runs.writer import new_run

Record = Callable[..., Run]
CONFLICT, MISSING = "rejected:identity.conflict", "rejected:identity.missing"
OTHER, TIMEOUT = "accepted:other_calls", "failed:subject.timeout"


def _row(stream: str, state: str, expected: str | None = None, **facts: Any) -> dict[str, Any]:
    outcome, _, rest = state.partition(":")
    wanted, _, category = (expected or "").partition(":")
    row = dict.fromkeys(RESULTS.names) | {"stream": stream, "batch": "b", "evidence": "controlled"}
    row |= {"outcome": outcome, "category": None if rest in ("", "other_calls") else rest, "body_sha256": "0"}
    row |= {"calls_match": state != OTHER if outcome == "accepted" else None, "null_continuations": 0}
    row |= {"expected_outcome": wanted or None, "expected_category": category or None, "tolerances": "{}"}
    return row | facts


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Run]:
    """Return a function that writes a run of given rows."""
    count = 0

    def make(*rows: dict[str, Any], sources: Sequence[tuple[str, str]] = ()) -> Run:
        nonlocal count
        count += 1
        subject = {"kind": "command", "name": "a command"}
        facts = [
            SourceFacts(name, "batch", sha256 * 64, "controlled", "controlled", 1) for name, sha256 in sources
        ]
        with new_run(tmp_path / "made", f"r{count}", subject, facts) as writer:
            for row in rows:
                faults = []
                if row["category"]:
                    key = {name: row[name] for name in ("stream", "batch", "evidence", "category")}
                    faults = [dict.fromkeys(DIAGNOSTICS.names) | key | {"fault": 1, "fragment": 7}]
                writer.add(row, faults, {"stream": row["stream"], "batch": "b", "seconds": 0.0, "time": None})
            return open_run(writer.complete())

    return make


def _declared(folder: Path, *declarations: dict[str, str]) -> Declared:
    path = folder / "expectations.json"
    named = [{"reason": "because", "reviewer": "someone", **declaration} for declaration in declarations]
    path.write_text(json.dumps({"schema": "fragmentlab-expectations-v1", "declarations": named}))
    return load_expectations(path)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("accepted", "accepted", "pass"),
        (CONFLICT, CONFLICT, "pass"),
        (CONFLICT, "accepted", "lost protection"),
        (CONFLICT, OTHER, "lost protection"),
        ("accepted", OTHER, "lost protection"),
        ("no_calls", "accepted", "lost protection"),
        ("accepted", CONFLICT, "lost compatibility"),
        ("accepted", "no_calls", "lost compatibility"),
        ("accepted", TIMEOUT, "lost compatibility"),
        ("no_calls", CONFLICT, "lost compatibility"),
        (CONFLICT, MISSING, "drift"),
        (CONFLICT, "no_calls", "drift"),
        (CONFLICT, TIMEOUT, "drift"),
        (TIMEOUT, "accepted", "drift"),
        (OTHER, "accepted", "drift"),
    ],
)
def test_each_flip_has_its_verdict(made: Callable[..., Run], before: str, after: str, verdict: str) -> None:
    """From one state to another is pass, lost protection, lost compatibility or drift."""
    other = _row("other", "no_calls")
    comparison = compare_runs(made(_row("s", before), other), made(_row("s", after), other))
    assert verdict_of(comparison).kind == verdict
    assert len(comparison.moves) == (verdict != "pass")


@pytest.mark.parametrize(
    ("before", "after"),
    [(TIMEOUT, TIMEOUT), ("accepted", TIMEOUT), (CONFLICT, TIMEOUT), (TIMEOUT, "accepted")],
)
def test_a_run_that_failed_for_every_stream_never_passes(
    made: Callable[..., Run], tmp_path: Path, before: str, after: str
) -> None:
    """It shows nothing, whatever a reviewer declared."""
    comparison = compare_runs(made(_row("s", before)), made(_row("s", after)))
    assert verdict_of(comparison).kind == "broken"
    if before != after:
        declared = _declared(tmp_path, {"stream": "s", "from": before, "to": after})
        assert verdict_of(comparison, declared).kind == "broken"
    assert "gave no outcome for any compared stream" in verdict_text(verdict_of(comparison))


def test_what_decided_is_written_with_its_hash(made: Callable[..., Run], tmp_path: Path) -> None:
    """Text, Markdown and JUnit name both runs and the hash of the declarations."""
    base, target = made(_row("s", CONFLICT)), made(_row("s", "accepted"))
    declared = _declared(tmp_path, {"stream": "s", "from": "rejected", "to": "accepted"})
    sha256 = hashlib.sha256((tmp_path / "expectations.json").read_bytes()).hexdigest()
    verdict = verdict_of(compare_runs(base, target), declared)
    for text in (verdict_text(verdict), verdict_markdown(verdict), verdict_junit(verdict)):
        assert all(word in text.replace("\\", "") for word in (base.id, target.id, sha256))


def test_the_worst_kind_is_the_verdict(made: Callable[..., Run]) -> None:
    """One lost protection among drifts decides."""
    base = made(_row("a", CONFLICT), _row("b", "accepted"), _row("c", CONFLICT))
    target = made(_row("a", MISSING), _row("b", CONFLICT), _row("c", "accepted"))
    verdict = verdict_of(compare_runs(base, target))
    assert list(verdict.undeclared.kind) == ["lost protection", "lost compatibility", "drift"]
    assert verdict.kind == "lost protection"


def test_a_vector_that_must_be_refused_fails_even_where_nothing_moved(made: Callable[..., Run]) -> None:
    """Both runs accepted it, or it is new: lost protection in either case."""
    row = _row("s", "accepted", expected=CONFLICT)
    for base in (made(row), made(_row("other", "accepted"), _row("x", "accepted"))):
        target = made(row, _row("other", "accepted"), _row("x", "accepted"))
        assert verdict_of(compare_runs(base, target)).kind == "lost protection"


def test_flips_say_where_they_can_be_followed_down_to(made: Callable[..., Run]) -> None:
    """A flip names the fragment at which the run that refused it did so."""
    comparison = compare_runs(made(_row("s", CONFLICT)), made(_row("s", "accepted")))
    assert list(comparison.moves.fragment) == [7]


def test_added_streams_are_listed_and_removed_or_changed_ones_fail(made: Callable[..., Run]) -> None:
    """Only what both runs hold with the same bytes is judged."""
    base = made(_row("same", "accepted"), _row("gone", "accepted"), _row("other", "accepted"))
    target = made(_row("same", "accepted"), _row("new", CONFLICT), _row("other", CONFLICT, body_sha256="1"))
    verdict = verdict_of(compare_runs(base, target))
    moves = verdict.moves
    assert verdict.comparison.added == [("b", "new")]
    assert list(zip(moves.stream, moves.kind, strict=True)) == [("gone", "removed"), ("other", "changed")]
    assert verdict.kind == "drift"


@pytest.mark.parametrize(
    "declaration",
    [
        {"stream": "s", "from": CONFLICT, "to": "accepted"},
        {"stream": "s", "from": "rejected", "to": "accepted"},
        {"category": "identity.conflict", "from": "rejected", "to": "accepted"},
    ],
)
def test_a_declared_flip_passes(
    made: Callable[..., Run], tmp_path: Path, declaration: dict[str, str]
) -> None:
    """A reviewer's declaration by stream or category covers a flip."""
    comparison = compare_runs(made(_row("s", CONFLICT)), made(_row("s", "accepted")))
    assert verdict_of(comparison, _declared(tmp_path, declaration)).kind == "pass"


@pytest.mark.parametrize(
    "declaration",
    [
        {"stream": "other", "from": "rejected", "to": "accepted"},
        {"stream": "s", "from": MISSING, "to": "accepted"},
        {"stream": "s", "from": "rejected", "to": "no_calls"},
        {"category": "identity.missing", "from": "rejected", "to": "accepted"},
    ],
)
def test_a_declaration_of_something_else_covers_nothing_and_is_stale(
    made: Callable[..., Run], tmp_path: Path, declaration: dict[str, str]
) -> None:
    """The flip fails, and so does the declaration that no longer occurs."""
    comparison = compare_runs(made(_row("s", CONFLICT)), made(_row("s", "accepted")))
    verdict = verdict_of(comparison, _declared(tmp_path, declaration))
    assert (verdict.kind, len(verdict.stale)) == ("lost protection", 1)


def test_a_declaration_that_no_longer_occurs_fails_alone(made: Callable[..., Run], tmp_path: Path) -> None:
    """Nothing moved, yet something was declared to move."""
    comparison = compare_runs(made(_row("s", CONFLICT)), made(_row("s", CONFLICT)))
    stale = _declared(tmp_path, {"stream": "s", "from": "rejected", "to": "accepted"})
    assert verdict_of(comparison, stale).is_regression


def test_a_category_never_excuses_a_vector_that_must_be_refused(
    made: Callable[..., Run], tmp_path: Path
) -> None:
    """That takes a declaration that names the stream."""
    base, target = made(_row("s", CONFLICT, CONFLICT)), made(_row("s", "accepted", CONFLICT))
    comparison = compare_runs(base, target)
    move = {"from": CONFLICT, "to": "accepted"}
    by_category = _declared(tmp_path, {"category": "identity.conflict", **move})
    assert verdict_of(comparison, by_category).kind == "lost protection"
    assert verdict_of(comparison, _declared(tmp_path, {"stream": "s", **move})).kind == "pass"


def test_declared_absences_pass(made: Callable[..., Run], tmp_path: Path) -> None:
    """A removed batch and a changed stream can be declared."""
    base = made(_row("s", "accepted"), _row("gone", "accepted", batch="old"), _row("c", "accepted"))
    target = made(_row("s", "accepted"), _row("c", "accepted", body_sha256="1"))
    declared = _declared(
        tmp_path,
        {"batch": "old", "from": "recorded", "to": "removed"},
        {"stream": "c", "from": "recorded", "to": "changed"},
    )
    verdict = verdict_of(compare_runs(base, target), declared)
    assert verdict.kind == "pass"
    assert {"1 stream removed as declared", "1 stream changed as declared"} <= set(verdict.reasons())


def test_a_proposal_covers_what_fails_once_it_is_filled_in(made: Callable[..., Run], tmp_path: Path) -> None:
    """Declarations written for a reviewer are refused as they are, and pass with reason and reviewer."""
    base = made(_row("a", CONFLICT), _row("gone", "accepted"), _row("v", "accepted", CONFLICT))
    comparison = compare_runs(base, made(_row("a", "accepted"), _row("v", "accepted", CONFLICT)))
    path = tmp_path / "expectations.json"
    path.write_text(proposal(verdict_of(comparison).undeclared))
    with pytest.raises(InputError, match="must be filled in"):
        load_expectations(path)
    path.write_text(path.read_text().replace('""', '"x"'))
    assert verdict_of(comparison, load_expectations(path)).kind == "pass"


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"schema": "x", "declarations": []}',
        '{"schema": "fragmentlab-expectations-v1", "declarations": [1]}',
        '{"schema": "fragmentlab-expectations-v1", "declarations": [], "declarations": []}',
        '{"schema": "fragmentlab-expectations-v1", "declarations": [{"stream": "CANARY"}]}',
        '{"schema": "fragmentlab-expectations-v1", "declarations": [{"stream": "s", "from": "CANARY"}]}',
    ],
)  # fmt: skip
def test_unusable_expectations_are_one_line(tmp_path: Path, text: str) -> None:
    """What cannot be used is refused by name of the place, and not quoted."""
    path = tmp_path / "expectations.json"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load_expectations(path)
    assert "CANARY" not in str(raised.value)


@pytest.mark.parametrize(
    "declaration",
    [
        {"stream": "s", "from": "CANARY", "to": "accepted"},
        {"stream": "s", "category": "c", "from": "rejected", "to": "accepted"},
        {"category": "c", "from": "recorded", "to": "removed"},
        {"batch": "b", "from": "rejected", "to": "accepted"},
        {"from": "rejected", "to": "accepted"},
        {"stream": "s", "from": "rejected", "to": "accepted", "more": "CANARY"},
        {"stream": "s", "from": "rejected", "to": "accepted", "reviewer": " "},
    ],
)
def test_a_declaration_is_complete_or_refused(tmp_path: Path, declaration: dict[str, str]) -> None:
    """One selector, two states, a reason and a reviewer: anything else is refused and not quoted."""
    with pytest.raises(InputError, match=r"declarations\[0\]") as raised:
        _declared(tmp_path, declaration)
    assert "CANARY" not in str(raised.value)


def test_runs_without_a_common_stream_are_not_compared(made: Callable[..., Run]) -> None:
    """Nothing in common is an error, not a pass."""
    with pytest.raises(InputError, match="no stream in common"):
        compare_runs(made(_row("a", "accepted")), made(_row("b", "accepted")))


def test_a_changed_source_is_named(made: Callable[..., Run]) -> None:
    """A batch whose hash differs from the older run's is named in the reasons."""
    base = made(_row("s", "accepted"), sources=[("b", "0"), ("c", "0")])
    verdict = verdict_of(compare_runs(base, made(_row("s", "accepted"), sources=[("b", "1"), ("c", "0")])))
    assert "changed since the base run: b" in verdict.reasons()


def test_vectors_added_to_a_file_keep_older_runs_comparable(
    record: Record, identity: Path, tmp_path: Path
) -> None:
    """A file that grew is named, its new vectors are listed, and the rest is judged."""
    content = json.loads(identity.read_text())
    less = tmp_path / "less" / "identity.json"
    less.parent.mkdir()
    less.write_text(json.dumps({**content, "vectors": content["vectors"][5:]}))
    keep = Choice(rules="keep-established")
    verdict = verdict_of(compare_runs(record(keep, sources=[less]), record(keep)))
    assert verdict.kind == "pass"
    assert len(verdict.comparison.added) == 5
    assert verdict.comparison.changed_sources == ["vectors/identity"]


def test_a_vector_with_other_tools_is_changed_not_flipped(record: Record, root: Path, tmp_path: Path) -> None:
    """What a stream is judged by is part of what is matched: a changed vector is no regression of the
    subject."""
    content = json.loads((root / "data/vectors/name.json").read_text())
    other = tmp_path / "other" / "name.json"
    other.parent.mkdir()
    other.write_text(json.dumps({**content, "tools": ["another"]}))
    runs = [
        record(Choice(rules="keep-established"), sources=[source])
        for source in (root / "data/vectors/name.json", other)
    ]
    comparison = compare_runs(*runs)
    assert set(comparison.moves.kind) == {"changed"}


def test_only_named_batches_are_judged(made: Callable[..., Run]) -> None:
    """A limit to one batch leaves out what moved in another; an unknown one is an error."""
    base = made(_row("s", "accepted"), _row("s", "accepted", batch="c"))
    target = made(_row("s", "accepted"), _row("s", CONFLICT, batch="c"))
    assert verdict_of(compare_runs(base, target, ["b"])).kind == "pass"
    with pytest.raises(InputError):
        compare_runs(base, target, ["d"])


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Callable[[str], Verdict]:
    """Return a function that judges a rule set against ``keep-established`` over committed streams."""
    from fragmentlab.qualification.runs.record import record_run

    runs = tmp_path_factory.mktemp("judged") / "runs"
    sources = [data_folder("batches/synthetic-identity"), root / "data/vectors/identity.json"]

    def run(rules: str) -> Run:
        return open_run(record_run(sources, rules, Choice(rules=rules), runs))

    base = run("keep-established")
    return lambda rules: verdict_of(compare_runs(base, run(rules)))


@pytest.mark.parametrize("name", COUNTERFACTUALS)
def test_every_counterfactual_is_called_lost_protection(judged: Callable[[str], Verdict], name: str) -> None:
    """Each way to take a null for an ID, or an ID from elsewhere, is caught by that verdict."""
    assert judged(name).kind == "lost protection"


@pytest.mark.parametrize(
    ("rules", "kind"), [("reject-null", "lost compatibility"), ("keep-established", "pass")]
)
def test_refusing_nulls_is_lost_compatibility_and_a_rerun_passes(
    judged: Callable[[str], Verdict], rules: str, kind: str
) -> None:
    """Without a single lost protection."""
    verdict = judged(rules)
    assert verdict.kind == kind
    assert verdict.counts["lost protection"] == 0


GATEWAY = """
    import json, sys
    from fragmentlab.assembler import assemble
    for line in sys.stdin.buffer:
        header = json.loads(line)
        body = sys.stdin.buffer.read(header["length"])
        context = {name: header[name] for name in ("tools", "limits", "end")}
        print(json.dumps(changed(assemble(body, **context).to_json(True))), flush=True)
"""


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("lambda r: r", "pass"),
        (
            "lambda r: r | {'category': r['category'] and r['category'].replace('conflict', 'missing')}",
            "drift",
        ),
        ("lambda r: r | {'category': r['category'] and 'CANARY'}", "drift"),
        ("lambda r: {'outcome': 'no_calls'} if r['outcome'] == 'accepted' else r", "lost compatibility"),
        ("lambda r: r | {'calls': [c | {'id': 'CANARY'} for c in r['calls']]}", "lost protection"),
    ],
)
def test_a_gateway_behind_exec_is_judged_right_and_broken(record: Record, change: str, kind: str) -> None:
    """The kit's own assembler behind ``--exec`` passes; each way to break it has its verdict."""
    script = f"changed = {change}\n{textwrap.dedent(GATEWAY)}"
    base = record(Choice(rules="keep-established"))
    target = record(Choice(command=(sys.executable, "-c", script), long_lived=True))
    verdict = verdict_of(compare_runs(base, target))
    assert verdict.kind == kind
    for text in (verdict_text(verdict), verdict_markdown(verdict), verdict_junit(verdict)):
        assert "CANARY" not in text


def test_junit_is_well_formed_whatever_a_reviewer_wrote(made: Callable[..., Run], tmp_path: Path) -> None:
    """Control characters and markup in a declaration neither break the XML nor hide."""
    declared = _declared(
        tmp_path, {"stream": "s", "from": "rejected", "to": "accepted", "reason": "\x1b[2J<b>\x00&"}
    )
    comparison = compare_runs(
        made(_row("s", CONFLICT), _row("t", CONFLICT)), made(_row("s", "accepted"), _row("t", "accepted"))
    )
    root = ET.fromstring(verdict_junit(verdict_of(comparison, declared)))
    assert root.find(".//skipped").get("message").endswith(r"\x1b[2J<b>\x00&")  # type: ignore[union-attr]
    assert [suite.get("failures") for suite in root] == ["1"]


def test_small_numbers_are_tested_exactly() -> None:
    """Values of McNemar's exact test and of the Wilson interval, computed by hand."""
    assert paired_p(0, 0) == 1.0
    assert paired_p(5, 0) == pytest.approx(2 / 2**5)
    assert paired_p(1, 3) == pytest.approx(2 * (1 + 4) / 2**4)
    assert acceptance_interval(0, 0) == (0.0, 1.0)
    assert acceptance_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_runs_are_found_by_label_id_or_path(recorded: Path) -> None:
    """All three lead to the same run."""
    by_label = find_run("first", [recorded])
    found = [find_run(name, [recorded]) for name in ("first", by_label.id, str(by_label.folder))]
    assert found == [by_label] * 3
    with pytest.raises(InputError, match="no run is named"):
        find_run("third", [recorded])


def test_a_run_in_no_ledger_is_taken_only_where_asked_for(recorded: Path, tmp_path: Path) -> None:
    """A copy without its ledger may have been altered in all its parts: whatever uses it says so."""
    original = find_run("first", [recorded])
    copied = str(shutil.copytree(original.folder, tmp_path / "downloaded"))
    with pytest.raises(InputError, match="in no ledger"):
        find_run(copied, [recorded])
    taken = find_run(copied, [recorded], unrecorded=True)
    assert "in no ledger" in taken.title
    assert "in no ledger" in verdict_text(verdict_of(compare_runs(taken, original)))


@pytest.mark.parametrize("whole", [True, False], ids=["a run", "an empty folder"])
def test_a_folder_named_like_a_revision_never_takes_its_place(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """Only what contains a separator is a path: a run of another name could turn a verdict."""
    monkeypatch.chdir(tmp_path)
    for name in ("first", "third"):
        if whole:
            shutil.copytree(find_run("second", [recorded]).folder, name)
        else:
            Path(name).mkdir()
    assert find_run("first", [recorded]).revision == "first"
    for unrecorded in (False, True):
        with pytest.raises(InputError, match=r"no run is named third .* write \./third"):
            find_run("third", [recorded], unrecorded=unrecorded)
