"""Exact JSON: both engines against Python's own parser and a duplicate check of the tests' own."""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fragmentlab.assembler.strictjson import (
    Malformed,
    ParsedText,
    RepeatingDict,
    _Hooks,
    _parsed,
    _Walker,
    parse,
)
from tests.assembler.work import calls_made

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
MARKS = ["{", "}", "[", "]", ",", ":", " ", "\n", '"a":1', "x", "true", "null", "tru", "\ufeff", "\xa0"]
STRINGS = ['"a"', '"b"', '"\\u0061"', '"\\ud83d\\ude00"', '"\\ud800"', '"', "'", '"\\x"', '"\t"', '"é😀"']
NUMBERS = [
    "1",
    "-1",
    "-0",
    "01",
    "1.5",
    "1e5",
    "1E+400",
    ".5",
    "1.",
    "-",
    "+1",
    "9" * 310,
    "NaN",
    "-Infinity",
]
PIECES = st.sampled_from(MARKS + STRINGS + NUMBERS)
TEXTS = st.lists(PIECES, max_size=14).map("".join)


def walk(text: str) -> ParsedText | None:
    """The engine without recursion, None where it refuses."""
    hooks = _Hooks(300)
    try:
        return _parsed(text, hooks, lambda text: _Walker(text, hooks).run())
    except Malformed:
        return None


def reference(text: str) -> tuple[Any, int, bool] | None:
    """(value, depth, whether a key stands twice) by Python's parser; None where the text is not JSON."""
    repeated = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) < len(pairs)
        return dict(pairs)

    def refuse(_: str) -> None:
        raise ValueError

    try:
        value = json.loads(text, object_pairs_hook=build, parse_constant=refuse)
    except ValueError:
        return None
    return value, depth_of(value), repeated


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def same(left: Any, right: Any) -> bool:
    """Equal with types: 1, 1.0 and True differ."""
    return type(plain(left)) is type(plain(right)) and repr(plain(left)) == repr(plain(right))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@given(TEXTS | VALUES.map(json.dumps) | VALUES.map(lambda v: json.dumps(v, ensure_ascii=False, indent=1)))
@example('{"a": {"b": 1, "b": 2}}')
@example('{"a": 1, "\\u0061": 2}')
@example("[1, 2,]")
@example('{"a" 1}')
@example("[}")
@example('{"a": 1, }')
@example("{,}")
@example("]")
@example("")
def test_walker_equals_python(text: str) -> None:
    """The walker accepts what Python's parser accepts, with the same value, depth and repeated keys."""
    expected, found = reference(text), walk(text)
    assert (expected is None) == (found is None)
    if expected and found and "9" * 310 not in text:
        value, depth, repeated = expected
        assert same(found.value, value)
        assert found.repeats == repeated
        if not repeated:
            assert found.depth == depth


@given(TEXTS)
def test_engines_agree(text: str) -> None:
    """Wherever the fast engine may be chosen, it says what the walker says."""
    found = walk(text)
    try:
        chosen = parse(text, 300)
    except Malformed:
        assert found is None
        return
    assert found is not None
    assert same(chosen.value, found.value)
    assert (chosen.repeats, chosen.lone_surrogate, chosen.wide_number) == (
        found.repeats,
        found.lone_surrogate,
        found.wide_number,
    )
    assert found.depth == chosen.depth


@given(st.integers(0, 140), st.integers(0, 1 << 140), st.integers(0, 5))
def test_depth_is_exact_above_the_limit(levels: int, shapes: int, width: int) -> None:
    """Whether a text is too deep never depends on the engine."""
    objects = [bool(shapes >> level & 1) for level in range(levels)]
    opening = "".join('{"a":' if is_object else "[[]," * bool(width) + "[" for is_object in objects)
    closing = "".join("}" if is_object else "]" + "]" * bool(width) for is_object in reversed(objects))
    text = f"{opening}{width}{closing}"
    found = walk(text)
    assert found is not None
    assert parse(text, 300).depth == found.depth


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ('{"a":1,"a":2}', {"a"}),
        ('{"a":1,"b":2,"\\u0061":3}', {"a"}),
        ('{"":1,"":2,"x":3,"x":4,"y":5}', {"", "x"}),
    ],
)
def test_repeated_keys(text: str, repeated: set[str]) -> None:
    """Keys are compared after unescaping, the last value counts, and both engines name them."""
    for document in (parse(text, 9), walk(text)):
        assert document is not None
        assert document.repeats
        assert isinstance(document.value, RepeatingDict)
        assert document.value.repeated == repeated
        assert dict(document.value) == json.loads(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_hundred_thousand_deep(opening: str, closing: str) -> None:
    """Any depth is read or refused without recursion."""
    levels = 100_000
    assert parse(opening * levels + "1" + closing * levels, 300).depth == levels
    with pytest.raises(Malformed):
        parse(opening * levels, 300)
    with pytest.raises(Malformed):
        parse(opening * levels + "1" + closing * (levels - 1) + "x", 300)


def test_nearly_full_stack() -> None:
    """A caller deep in its own recursion still gets an answer."""

    def descend(levels: int) -> ParsedText:
        return parse('{"a":' * 60 + "1" + "}" * 60, 300) if not levels else descend(levels - 1)

    assert descend(sys.getrecursionlimit() - len(inspect.stack()) - 40).depth == 60


WIDE = {
    "9" * 300: False,
    "9" * 301: True,
    "-" + "9" * 300: False,
    "1" + "0" * 308: True,
    "1e308": False,
    "1e309": True,
    "-1e309": True,
    "1e-400": False,
    "0." + "1" * 299: False,
    "0." + "1" * 300: True,
    "1e" + "0" * 299: False,
    "1e" + "0" * 300: True,
    "9" * 1_000_000: True,
    "1e" + "9" * 1_000_000: True,
}


@pytest.mark.parametrize(("number", "wide"), WIDE.items(), ids=[f"{n[:6]}-{len(n)}" for n in WIDE])
def test_wide_numbers(number: str, wide: bool) -> None:
    """A number of any size is JSON; too many digits or no double is said apart."""
    assert walk(number).wide_number is wide  # type: ignore[union-attr]
    if len(number) > 308 or "e" in number:
        assert parse(f'{{"a": {number}}}', 300).wide_number is wide


@pytest.mark.parametrize("text", ['"\\ud800"', '["\\udc00\\ud800"]', '{"\\uD83D":1}'])
def test_lone_surrogate(text: str) -> None:
    """Half a pair by escape is JSON, and said apart; a whole pair is not."""
    assert parse(text, 300).lone_surrogate
    assert not parse('"\\ud83d\\ude00"', 300).lone_surrogate


@pytest.mark.parametrize("unit", ["[", "1,", '"a":1,', '{"a":', '"\\ud800",', "1e9,", '"', "\\", " "])
def test_linear(unit: str) -> None:
    """Ten times the text costs at most about ten times the calls, whatever it holds.

    Where the longer one alone is too deep for Python's own parser, the other one takes some for each unit.
    """

    def work(times: int) -> int:
        def run() -> None:
            for text in (unit * times, "[" + unit * times + "1e1]", "{" + unit * times + '"z":1e1}'):
                with contextlib.suppress(Malformed):
                    parse(text, 300)

        return calls_made(run)

    assert work(20_000) <= 11 * work(2_000) + 30 * 20_000
