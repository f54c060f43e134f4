"""The committed vectors: each file follows the schema and the house rules, each vector gives its outcome."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fragmentlab.assembler import CATEGORIES, assemble
from fragmentlab.assembler.categories import HOST_CATEGORY
from fragmentlab.assembler.rules import CELLS, SHIPPED, load_rules
from fragmentlab.corpus.vector_check import check, expectations
from fragmentlab.corpus.vectors import ExpectedDiagnostic, Vector, load_vectors, vector_paths

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "vectors"
SHARED = ROOT.parent / "shared" / "vectors"
REPORTED = ("reported", "reported-2")
TOPICS = ("identity", "index", "name", "arguments", "completion", "protocol", "framing", "limits")
FILES = {path.stem: load_vectors(path) for path in vector_paths([FOLDER])}
OURS = {topic: FILES[topic] for topic in TOPICS}
OUR_VECTORS = [vector for file in OURS.values() for vector in file.vectors]
ORDER_FLAG = "order"
"""The flag of the vectors that hold two faults on purpose."""


@pytest.mark.parametrize("vector", [v for f in FILES.values() for v in f.vectors], ids=lambda v: v.id)
def test_every_vector_gives_its_outcome_in_every_replay(vector: Vector) -> None:
    """Outcome, calls and diagnostic do not move with reads, line ends or mode, under each rule set."""
    assert [mismatch.text() for mismatch in check(vector)] == []


@pytest.mark.parametrize("rules", SHIPPED)
def test_our_vectors_hold_under_every_shipped_rule_set(rules: str) -> None:
    """What a rule set changes is written down: everything else in our files is the same under all."""
    for vector in OUR_VECTORS:
        rule_set, expect = next(expectations(vector, rules))
        result = assemble(
            vector.stream.body, rules=rule_set, tools=vector.known_tools, limits=vector.limits, end=vector.end
        )
        assert (vector.id, result.outcome, result.category) == (vector.id, expect.outcome, expect.category)


def test_the_files_are_the_topics_and_the_reported_ones() -> None:
    """There is one file a topic, the public reports, and what the model checker wrote."""
    assert set(FILES) == {*TOPICS, *REPORTED, "counterexample"}


def test_the_schema_is_strict() -> None:
    """A misspelt key anywhere is refused, and so is a stream in two forms."""
    good = {
        "id": "a/b",
        "comment": "c",
        "flags": [],
        "source": "kit",
        "sse": "",
        "expect": {"outcome": "no_calls"},
    }
    document = {"schema": "fragmentlab-vectors-v1", "notes": {}, "vectors": [good]}
    assert _validator().is_valid(document)
    for change in (
        {"expct_under": {}},
        {"events": []},
        {"done": True},
        {"expect": {"outcome": "accepted"}},
        {"expect": {"outcome": "rejected", "category": "identity.conflict", "calls": []}},
        {"expect": {"outcome": "no_calls", "category": "identity.conflict"}},
        {"limits": {"event": 3}},
        {"limits": {"timeline_rows": 3}},
        {"tools": [7]},
        {"end": "reset"},
        {"id": "no topic"},
    ):
        assert not _validator().is_valid({**document, "vectors": [{**good, **change}]}), change
    assert not _validator().is_valid({**document, "version": 1})
    assert not _validator().is_valid({**document, "vectors": []})


def test_ids_are_unique_over_all_files_and_name_their_file() -> None:
    """An id stands for one vector, and its first part for the file it is in."""
    ids = Counter(vector.id for file in FILES.values() for vector in file.vectors)
    assert max(ids.values()) == 1
    for topic, file in OURS.items():
        assert {vector.id.partition("/")[0] for vector in file.vectors} == {topic}


@pytest.mark.parametrize("topic", TOPICS)
def test_flags_are_explained_once_and_used(topic: str) -> None:
    """Every vector has a flag, every flag an explanation, and no explanation stands for nothing."""
    used = [flag for vector in OURS[topic].vectors for flag in vector.flags]
    assert all(vector.flags for vector in OURS[topic].vectors)
    assert set(used) == set(OURS[topic].notes)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_two_vectors_of_a_file_are_the_same_stream(topic: str) -> None:
    """Each vector adds something: its stream, limits, tools or end differ from every other's."""
    seen: dict[tuple[Any, ...], str] = {}
    for vector in OURS[topic].vectors:
        key = (vector.reads, vector.stream.limits, repr(vector.tools), vector.end)
        assert seen.setdefault(key, vector.id) == vector.id


@pytest.mark.parametrize("category", [name for name in CATEGORIES if name != HOST_CATEGORY])
def test_every_category_is_given_by_at_least_two_of_our_vectors(category: str) -> None:
    """Each refusal that the assembler can give is shown in more than one way."""
    expected = [
        vector.id
        for vector in OUR_VECTORS
        for _, expect in expectations(vector)
        if expect.category == category
    ]
    assert len(expected) >= 2


@pytest.mark.parametrize("rules", SHIPPED)
def test_every_cell_of_the_identity_table_has_a_vector(rules: str) -> None:
    """For each shipped rule set, each cell's vector meets that cell and expects what the table says."""
    vectors = {v.id.removeprefix("identity/cell-"): v for v in OURS["identity"].vectors if "cell" in v.flags}
    assert set(vectors) == {f"{identity}-{column}".replace("_", "-") for identity, column in CELLS}
    for identity, column in CELLS:
        vector = vectors[f"{identity}-{column}".replace("_", "-")]
        met = _cells_met(vector)
        action = load_rules(rules).action(identity, column)
        _, expect = next(expectations(vector, rules))
        assert (identity, column) in met
        if action.startswith("reject:"):
            kind = "string" if column in ("same_string", "other_string") else column
            assert (expect.outcome, expect.category) == ("rejected", action.removeprefix("reject:"))
            assert expect.diagnostic == ExpectedDiagnostic(kind, identity, column == "empty_string")
        else:
            assert expect.outcome == "accepted"


def test_what_a_rule_set_changes_is_written_in_the_vector() -> None:
    """No cell's vector leaves the expectation under another shipped rule set to be derived."""
    for vector in OUR_VECTORS:
        for rules in SHIPPED:
            _, expect = next(expectations(vector, rules))
            assert expect == vector.expect_under.get(rules, vector.expect), vector.id


def test_null_first_and_then_a_real_id_is_among_the_vectors() -> None:
    """The null that keeps nothing is refused although a real ID follows."""
    vector = next(v for v in OURS["identity"].vectors if v.id == "identity/null-then-real-id")
    assert vector.expect.category == "identity.missing"
    assert _cells_met(vector) == [("absent", "null"), ("absent", "other_string")]


@pytest.mark.parametrize("vector", OUR_VECTORS, ids=lambda v: v.id)
def test_a_vector_holds_one_fault_unless_it_is_about_the_order(vector: Vector) -> None:
    """The diagnosing mode, which goes on after a fault, finds no fault of another category."""
    for rules, expect in expectations(vector):
        result = assemble(
            vector.stream.body,
            rules=rules,
            tools=vector.known_tools,
            limits=vector.limits,
            diagnose=True,
            end=vector.end,
        )
        categories = {fault.category for fault in result.faults}
        if ORDER_FLAG not in vector.flags:
            assert categories <= {expect.category}


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/vectors")
@pytest.mark.parametrize("name", REPORTED)
def test_the_reported_vectors_are_the_shared_ones(name: str) -> None:
    """The public reports are kept byte for byte."""
    assert (FOLDER / f"{name}.json").read_bytes() == (SHARED / f"{name}.json").read_bytes()


def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(
        json.loads((ROOT / "data/schemas/vectors.schema.json").read_bytes())
    )


def _cells_met(vector: Vector) -> list[tuple[str, str]]:
    """Walk a stream of one index by the table's words alone, without the assembler."""
    known: str | None = None
    met = []
    for line in vector.stream.body.decode().split("\n"):
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            for fragment in choice["delta"].get("tool_calls", []):
                identity = "absent" if known is None else "established" if known else "empty"
                met.append((identity, _column(fragment, known)))
                if isinstance(fragment.get("id"), str) and not known:
                    known = fragment["id"]
    return met


def _column(fragment: dict[str, Any], known: str | None) -> str:
    if "id" not in fragment:
        return "omitted"
    value = fragment["id"]
    if value is None:
        return "null"
    if isinstance(value, str):
        return "empty_string" if not value else "same_string" if value == known else "other_string"
    return {bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}[type(value)]
