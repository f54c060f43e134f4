"""Arguments against a schema: what jsonschema decides, in work that is linear and bounded."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragmentlab.assembler import Limits, Tools, assemble
from fragmentlab.assembler.schemas import ArgumentSchema, WorkExceeded
from tests.assembler.wire import call, response
from tests.assembler.work import calls_made

STEPS = Limits().schema_work
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -1, 2.5, "", "a", "ab", "aab"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3),
    max_leaves=8,
)
SCALARS = st.sampled_from(
    [
        {"type": "object"}, {"type": ["array", "null"]}, {"type": "integer"}, {"pattern": "^a+b?$"},
        {"minLength": 1}, {"uniqueItems": True}, {"enum": [1, "a", [1], {"a": True}]}, {"const": 1}, {},
        {"const": [1, {"a": 0}]}, {"required": ["a"]}, {"minItems": 2}, True, False, {"maximum": 1},
    ]
)  # fmt: skip
SCHEMAS = st.recursive(
    SCALARS,
    lambda s: st.one_of(
        s.map(lambda x: {"items": x}),
        s.map(lambda x: {"not": x}),
        s.map(lambda x: {"contains": x}),
        s.map(lambda x: {"propertyNames": x}),
        s.map(lambda x: {"properties": {"a": x}, "additionalProperties": False}),
        s.map(lambda x: {"properties": {"b": x}, "unevaluatedProperties": x}),
        s.map(lambda x: {"prefixItems": [x], "unevaluatedItems": False}),
        st.tuples(s, s).map(lambda p: {"patternProperties": {"^a": p[0]}, "additionalProperties": p[1]}),
        st.tuples(s, s).map(lambda p: {"anyOf": list(p)}),
        st.tuples(s, s).map(lambda p: {"oneOf": list(p)}),
        st.tuples(s, s).map(lambda p: {"allOf": list(p)}),
        st.tuples(s, s, s).map(lambda p: {"if": p[0], "then": p[1], "else": p[2]}),
        st.tuples(s, s).map(lambda p: {"$defs": {"d": p[0]}, "allOf": [{"$ref": "#/$defs/d"}, p[1]]}),
        s.map(lambda x: {"dependentSchemas": {"a": x}}),
    ),
    max_leaves=5,
)


@given(SCHEMAS, VALUES)
def test_it_decides_as_jsonschema_does(schema: Any, value: Any) -> None:
    """Every keyword that is done here or counted gives what the library gives."""
    try:
        wanted = jsonschema.Draft202012Validator(schema).is_valid(value)
    except Exception:  # a nested "#/$defs/d" means the root's, which may be missing
        wanted = False
    try:
        assert ArgumentSchema(schema).is_satisfied(value, 100, STEPS) == wanted
    except WorkExceeded:
        assert "patternProperties" in json.dumps(schema) and "unevaluatedProperties" in json.dumps(schema)


def objects(count: int) -> Any:
    return [{"k": number} for number in range(count)]


def names(count: int) -> list[str]:
    return [f"aaaaaaaaa{number}!" for number in range(count)]


REFERRING = {"$defs": {"d": {"type": "object"}}, "items": {"$ref": "#/$defs/d"}}
KNOBS: dict[str, Any] = {
    "unique items": lambda n: ({"uniqueItems": True}, objects(n)),
    "a backtracking pattern": lambda n: ({"items": {"pattern": "^(a+)+$"}}, ["a" * n + "!"] * 10),
    "pattern properties": lambda n: ({"patternProperties": {"^(a+)+$": {}}}, dict.fromkeys(names(n), 1)),
    "an enumeration and items": lambda n: ({"items": {"enum": objects(n)}}, objects(n)),
    "items": lambda n: ({"items": {"type": "object"}}, objects(n)),
    "contains": lambda n: ({"contains": {"const": -1}}, objects(n)),
    "references": lambda n: (REFERRING, objects(n)),
    "required": lambda n: ({"required": [str(i) for i in range(n)]}, {str(i): 1 for i in range(n)}),
    "alternatives": lambda n: ({"anyOf": [{"const": -i} for i in range(1, n)]}, 1),
}  # fmt: skip


@pytest.mark.parametrize("knob", KNOBS.values(), ids=KNOBS)
def test_work_grows_with_the_input(knob: Any) -> None:
    """Four times the input costs at most about four times the calls."""

    def work(size: int) -> int:
        schema, value = knob(size)
        compiled = ArgumentSchema(schema)
        return calls_made(lambda: compiled.is_satisfied(value, 1000, 1 << 40))

    small = work(100)
    assert work(400) <= 4.5 * small + 100


NODE = {"$ref": "#/$defs/n"}
ARRAY = {"type": "array", "items": NODE}
BRANCHING = {
    "$defs": {"n": {"anyOf": [ARRAY, ARRAY | {"minItems": 1}]}},
    **NODE,
}  # fmt: skip
NESTED = json.loads("[" * 60 + "1" + "]" * 60)
ENDLESS: dict[str, tuple[Any, Any]] = {
    "branching": (BRANCHING, NESTED),
    "a reference to itself": ({"$ref": "#"}, 1),
    "a lookaround": ({"pattern": "(?=a)b"}, "ab"),
    "a backreference": ({"pattern": r"(a)\1"}, "aa"),
    "unevaluated items": ({"unevaluatedItems": False, "prefixItems": [{}]}, list(range(20_000))),
    "alternatives that quote": ({"anyOf": [False] * 10_000}, "x"),
    "patterns that jsonschema would match": (
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
        {"a" * 40 + "!": 1},
    ),
}


@pytest.mark.parametrize(("schema", "value"), ENDLESS.values(), ids=ENDLESS)
def test_what_cannot_be_checked_within_the_bound_is_said_so(schema: Any, value: Any) -> None:
    """Neither accepted nor refused as unfit: the work is the reason, and it is bounded."""
    compiled = ArgumentSchema(schema)

    def check() -> None:
        with pytest.raises(WorkExceeded):
            compiled.is_satisfied(value, 1 << 20, STEPS)

    assert calls_made(check) < 40 * STEPS


def test_a_schema_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling is bounded as well."""
    monkeypatch.setattr("fragmentlab.assembler.schemas._COMPILING", 100)
    with pytest.raises(ValueError, match="too large to be checked"):
        ArgumentSchema({"properties": {str(i): {"type": "string"} for i in range(100)}})


def test_unicode_escapes_of_a_pattern_are_read() -> None:
    """\\u00e9 is a character; after an escaped backslash it is text."""
    assert ArgumentSchema({"pattern": "^\\u00e9$"}).is_satisfied("é", 1, STEPS)
    assert ArgumentSchema({"pattern": "^\\\\u00e9$"}).is_satisfied("\\u00e9", 1, STEPS)


def test_a_requests_own_tools_are_taken_as_they_are() -> None:
    """Functions with their parameters; tools of another kind are left out."""
    function = {"name": "f", "description": "d", "parameters": {"required": ["a"]}, "strict": True}
    tools = [
        {"type": "function", "function": function},
        {"type": "web_search"},
        {"type": "custom", "custom": {"name": "g"}},
    ]
    assert "g" not in Tools(tools)
    assert assemble(response(call(arguments='{"a":1}')), tools=tools).outcome == "accepted"
    assert assemble(response(call()), tools=tools).category == "proposal.arguments_schema"
    assert assemble(response(call(name="g")), tools=tools).category == "proposal.name_unknown"
