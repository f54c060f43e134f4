"""Formats: faults are named by their path and never quoted; schemas are current and hold for our data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta

from fragmentlab.errors import InputError
from fragmentlab.formats import SCHEMAS, HugeNumber, StrictStruct, decode, json_schema

ROOT = Path(__file__).resolve().parents[1]
COMMITTED = {
    "batch": ["data/batches/*/batch.json"],
    "expectations": ["data/runs/expectations.json"],
    "ledger": ["data/runs/ledger.jsonl"],
    "policy": ["lib/fragmentlab/runtime/policy.json"],
    "rules": ["data/rules/*.json", "lib/**/rules/*.json", "lib/**/harmful_rules/*.json"],
    "run": ["data/runs/*/run.json"],
    "scenario": ["data/scenarios/*.json"],
    "shapes": ["data/shapes.json"],
    "vectors": ["data/vectors/*.json"],
}
"""Format -> patterns of its committed files."""


class _Met(StrictStruct, frozen=True, tag_field="outcome", tag="met"):
    size: Annotated[int, Meta(ge=0, le=9)]


class _Missed(StrictStruct, frozen=True, tag_field="outcome", tag="missed"):
    why: str

    def __post_init__(self) -> None:
        if self.why != "because":
            raise ValueError("why must be because")


class _Item(StrictStruct, frozen=True):
    result: _Met | _Missed
    end: Literal["clean", "cut"] = "clean"
    name: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    times: dict[str, int] | None = None
    extra: Any = None


class _Document(StrictStruct, frozen=True, tag_field="schema", tag="fragmentlab-example-v1"):
    items: list[_Item]


def _item(text: str) -> str:
    return f'{{"schema": "fragmentlab-example-v1", "items": [{text}]}}'


def _with(field: str) -> str:
    return _item(f'{{"result": {{"outcome": "met", "size": 1}}, {field}}}')


FAULTS = [
    ("", "is not a JSON document"),
    ('{"schema": "fragmentlab-example-v1", "items": []} CANARY', "is not a JSON document"),
    ('{"schema": "fragmentlab-example-v1", "items": NaN}', "is not a JSON document"),
    (b'{"schema": "CANARY\xff"}', "is not a JSON document"),
    ("[" * 100_000, "is nested too deeply"),
    ("[]", 'needs "schema": "fragmentlab-example-v1"'),
    ('{"schema": "CANARY"}', 'needs "schema": "fragmentlab-example-v1"'),
    ('{"schema": ["CANARY"]}', 'needs "schema": "fragmentlab-example-v1"'),
    ('{"schema": "fragmentlab-example-v2"}', "written by another version of the kit"),
    ('{"schema": "fragmentlab-example-v1", "items": [], "items": []}', "an object holds a key twice"),
    ('{"schema": "fragmentlab-example-v1"}', "missing required field items"),
    ('{"schema": "fragmentlab-example-v1", "items": {"CANARY": 1}}', "items: expected array, got object"),
    (_item('"CANARY"'), "items[0]: expected object, got str"),
    (_item('{"CANARY": 1}'), "items[0]: unknown field"),
    (_item('{"result": {"outcome": "CANARY"}}'), "items[0].result.outcome: not one of the known values"),
    (_item('{"result": {"outcome": "met", "size": 10}}'), "items[0].result.size: expected int <= 9"),
    (_item('{"result": {"outcome": "met", "size": true}}'), "items[0].result.size: expected int, got bool"),
    (_item('{"result": {"outcome": "missed", "why": "CANARY"}}'), "items[0].result: why must be because"),
    (_item('{"result": {"outcome": "met", "size": 1, "size": 1}}'), "items[0].result: an object holds a key"),
    (_with('"end": "CANARY"'), "items[0].end: not one of the known values"),
    (_with('"name": "CANARY"'), "items[0].name: not of the known form"),
    (_with('"times": {"CANARY": "CANARY"}'), "items[0].times[...]: expected int, got str"),
    (_with('"times": {"a": %s}' % ("9" * 5000)), "items[0].times[...]: expected int, got HugeNumber"),
    (_with('"extra": [{"CANARY": 1, "CANARY": 2}]'), "an object holds a key twice"),
]


@pytest.mark.parametrize(("data", "words"), FAULTS)
def test_a_fault_is_named_by_its_path_and_not_quoted(data: str | bytes, words: str) -> None:
    """One line: the document, the path, what is wrong."""
    with pytest.raises(InputError) as raised:
        decode(data, _Document, "some.json")
    message = str(raised.value)
    assert message.startswith("some.json")
    assert words in message
    assert "CANARY" not in message
    assert "\n" not in message
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_numbers_of_any_size_are_kept_where_any_json_is() -> None:
    """What neither int nor float can hold stays its text."""
    for text in ("9" * 5000, "1e999", "-1E+400"):
        assert decode(_with(f'"extra": {text}'), _Document, "d").items[0].extra == HugeNumber(text)


def test_a_byte_order_mark_is_no_part_of_a_document() -> None:
    """Editors write one."""
    assert decode(b"\xef\xbb\xbf" + _item("").encode(), _Document, "d").items == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_current(name: str) -> None:
    """``fragmentlab maintain schemas`` writes what is committed."""
    path = ROOT / "data" / "schemas" / f"{name}.schema.json"
    assert path.read_text() == json.dumps(json_schema(name), indent=1) + "\n"
    Draft202012Validator.check_schema(json_schema(name))


@pytest.mark.parametrize("name", COMMITTED)
def test_the_committed_files_follow_their_schema(name: str) -> None:
    """By another implementation than the one that reads them."""
    validator = Draft202012Validator(json_schema(name))
    for pattern in COMMITTED[name]:
        files = sorted(ROOT.glob(pattern))
        assert files, pattern
        for path in files:
            text = path.read_text()
            for document in text.splitlines() if path.suffix == ".jsonl" else [text]:
                assert not list(validator.iter_errors(json.loads(document))), path.name
