"""Scrubbing moves no outcome and lets nothing through."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fragmentlab.assembler import assemble
from fragmentlab.corpus.batches import open_batch, record_of, write_batch
from fragmentlab.corpus.scrubbing.aliases import Aliases
from fragmentlab.corpus.scrubbing.json_text import scrub_arguments
from fragmentlab.corpus.scrubbing.scrub import Scrubber, Unscrubbable, verify
from fragmentlab.corpus.scrubbing.text import fill_number
from fragmentlab.corpus.streams import Stream, read_stream_file, stream_id
from fragmentlab.corpus.synth.batch import SynthOptions, synthesize
from fragmentlab.disclosure import NameAliases

CAPTURED = Path(__file__).resolve().parents[4] / "shared" / "captured"
PIECE = 4

canaries = st.text("QZJVKqzjvk37é東🙂", min_size=PIECE, max_size=9)
keys = canaries | st.sampled_from(["city", "id", "name", "k"])


def values(depth: int = 2) -> st.SearchStrategy[Any]:
    scalars = canaries | st.integers(-(10**6), 10**6) | st.booleans() | st.none() | st.floats(allow_nan=False)
    if not depth:
        return scalars
    return (
        scalars
        | st.lists(values(depth - 1), max_size=2)
        | st.dictionaries(keys, values(depth - 1), max_size=3)
    )


arguments = (
    st.dictionaries(keys, values(), max_size=3).map(json.dumps)
    | st.dictionaries(keys, values(), max_size=3).map(
        lambda value: json.dumps(value, ensure_ascii=False, indent=1)
    )
    | canaries
    | st.sampled_from(['{"a": NaN}', '{"q": "\\ud83d"}', "[1, 2]", '{"a": 1e999}', '{"a"', '"\\u00e9 x"'])
)
ids = canaries | st.sampled_from([None, "", 7, True, [], {}])
indices = st.sampled_from([0, 0, 0, 1, 2, 5, -1, None, "0", 1.5, 500, 10**9])
names = canaries | st.sampled_from(["", None, 5, "\ud83d"])


@st.composite
def fragments(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The fragments of a call whose argument text is cut anywhere."""
    text, index = draw(arguments), draw(indices)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    given_id, style = (
        draw(ids),
        draw(st.sampled_from(["omitted", "null", "empty", "same", "double", "other"])),
    )
    first = {
        "index": index,
        "id": given_id,
        "type": draw(st.sampled_from(["function", "FUNCTION", None, "custom"])),
    }
    made = [first | {"function": {"name": draw(names), "arguments": pieces[0]}}]
    for piece in pieces[1:]:
        fragment: dict[str, Any] = {"index": index, "function": {"arguments": piece}}
        if style != "omitted":
            double = given_id * 2 if isinstance(given_id, str) else given_id
            fragment["id"] = {
                "null": None,
                "empty": "",
                "same": given_id,
                "double": double,
                "other": "QZ77zz",
            }[style]
        made.append(fragment)
    return made


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """An event stream with faults of any kind, and the canaries that may not leave."""
    response, model, extra = draw(canaries), draw(canaries), draw(canaries)
    calls = draw(st.lists(fragments(), max_size=3))
    lines = []
    for fragment in [piece for call in calls for piece in call]:
        choice = {"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": None}
        if draw(st.integers(0, 9)) == 0:
            choice["delta"]["content"] = extra
            choice[extra] = {extra: [extra, 12345678]}
        lines.append({"id": response, "object": "chat.completion.chunk", "model": model, "choices": [choice]})
    finish = draw(st.sampled_from(["tool_calls", "stop", "length", extra, None, ""]))
    lines.append(
        {"id": response, "choices": [{"index": 0, "delta": {"refusal": extra}, "finish_reason": finish}]}
    )
    if draw(st.integers(0, 5)) == 0:
        lines.append({"error": {"message": extra, "code": extra, extra: 1}})
    ascii_only = draw(st.booleans())
    texts = [json.dumps(line, ensure_ascii=ascii_only) for line in lines]
    body = "".join(f"data: {text}\n\n" for text in texts).encode("utf-8", "replace")
    if draw(st.integers(0, 3)) == 0:
        body = f": {extra}\nevent: {extra}\nid: {extra}\nretry: 3000\n{extra}: {extra}\n".encode() + body
    if draw(st.booleans()):
        body += b"data: [DONE]\n\n"
    for _ in range(draw(st.integers(0, 2))):
        body = draw(damaged(body))
    return body, canaries_in(body)


@st.composite
def damaged(draw: st.DrawFn, body: bytes) -> bytes:
    at = draw(st.integers(0, len(body)))
    size = draw(st.integers(0, 3))
    kind = draw(st.sampled_from(["replace", "cut", "drop blank lines", "crlf", "repeat"]))
    if kind == "replace":
        put = draw(
            st.sampled_from(
                [b"", b"\xff", b'"', b"{", b"}", b"\\", b"7", b" ", b"\n", b"QZJ7", b"\xed\xa0\xbd"]
            )
        )
        return body[:at] + put + body[at + size :]
    if kind == "cut":
        return body[:at]
    if kind == "repeat":
        return body[:at] + body[at : at + 40] + body[at:]
    return body.replace(b"\n\n", b"\n") if kind == "drop blank lines" else body.replace(b"\n", b"\r\n")


def canaries_in(body: bytes) -> list[str]:
    """Every piece of four canary characters that the body holds, escapes read."""
    text = unescaped(body.decode("utf-8", "replace"))
    runs = re.findall(r"[QZJVKqzjvk37é東🙂]{4,}", text)
    return [run[at : at + PIECE] for run in runs for at in range(len(run) - PIECE + 1)]


def unescaped(text: str) -> str:
    once = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), text)
    return once.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def record_text(stream: Stream) -> str:
    return unescaped(json.dumps(record_of(stream), ensure_ascii=False)) + stream.body.decode(
        "utf-8", "replace"
    )


@settings(max_examples=250)
@given(bodies(), st.sampled_from(["clean", "aborted", "unknown"]))
@example(
    (b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","id":"b"}]}}]}\n\n', []),
    "clean",
)
@example((b'data: {"choices":[]}\ndata: {"choices":[]}\ndata: [DONE]\n', []), "unknown")
@example(
    (b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\xff{}"}}]}}],"\xff":1}\n\n', []),
    "clean",
)
@example((b'\xef\xbb\xbfdata: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\r\rdata: 12', []), "unknown")
def test_any_stream_keeps_its_outcome_and_leaves_its_content(made, end):
    """Whatever is broken in a stream, scrubbed it has the same faults and timeline, and none of its words."""
    body, words = made
    tools = ("QZJV", "kkkk77")
    stream = Stream(
        stream_id(body), body, provider="QZJVKq", model="vvvv77", tools=tools, end=end, pair="QQQQ77"
    )
    scrubbed = Scrubber().scrub(stream)
    verify(stream, scrubbed)
    shown = record_text(scrubbed)
    assert [word for word in [*words, "QZJV", "vvvv", "QQQQ"] if word in shown] == []


@settings(max_examples=200)
@given(arguments)
@example('{"\\ud": 1}')
@example('{"a": NaN, "b": -Infinity}')
@example('{"a": 0e999999}')
def test_argument_text_keeps_its_form(text):
    """Valid JSON stays valid with the same skeleton, anything else stays refused; no character more or
    less."""
    scrubbed = scrub_arguments(text, Aliases())
    assert len(scrubbed) == len(text)
    assert len(scrubbed.encode("utf-8", "surrogatepass")) == len(text.encode("utf-8", "surrogatepass"))
    outcomes = [
        assemble(
            f"data: {json.dumps(chunk(arguments))}\n\n".encode(),
            diagnose=True,
        ).faults
        for arguments in (text, scrubbed)
    ]
    assert outcomes[0] == outcomes[1]


def chunk(text: str) -> dict[str, Any]:
    call = {"index": 0, "id": "c", "function": {"name": "n", "arguments": text}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}


def test_synthetic_streams_keep_their_outcomes():
    """Every shape and fault of the synthetic streams survives scrubbing, and pairs stay pairs."""
    scrubber = Scrubber()
    streams = list(synthesize(SynthOptions(300, 9)))
    scrubbed = list(scrubber.scrub_all(streams))
    assert not scrubber.refused
    assert [stream.pair for stream in scrubbed] == [stream.pair for stream in streams]


@pytest.mark.parametrize("names", [("secret", "model-1", "other"), ("model-1", "secret", "model-2")])
def test_names_that_are_aliases_already_stay_apart_from_new_ones(names):
    """Batches of which one was scrubbed can be read together: no two models become one."""
    aliases = NameAliases()
    shown = [aliases.show("model", name) for name in names]
    assert len(set(shown)) == 3 and not {"secret", "other"} & set(shown)
    assert [aliases.show("model", name) for name in names] == shown
    assert NameAliases().show("model", "model-20240611093000") == "model-1"


def test_ids_stay_equal_and_apart():
    """Equal IDs stay equal across streams, repeats and beginnings stay visible, different ones stay apart."""
    aliases = Aliases()
    one, two, twice, longer = (
        aliases.of("call", word) for word in ("call_ab", "call_zz", "call_abcall_ab", "call_abX")
    )
    assert one == aliases.of("call", "call_ab")
    assert twice == one * 2
    assert longer.startswith(one) and len({one, two, twice, longer}) == 4
    many = [aliases.of("call", f"c{number}") for number in range(3000)]
    assert len(set(many)) == 3000


def test_a_repeated_name_stays_repeated():
    """A name that a server sends with every fragment is still seen as the known one in a row."""
    first = chunk('{"a": 1}')["choices"][0]
    call = first["delta"]["tool_calls"][0]
    call["function"]["name"] = "lookuplookup"
    body = f"data: {json.dumps({'choices': [first]})}\n\n".encode()
    stream = Stream(stream_id(body), body, tools=("lookup",))
    scrubbed = Scrubber().scrub(stream)
    result = assemble(scrubbed.body, tools=scrubbed.tools, diagnose=True)
    assert result.faults[0].flags == {"name_repeated": True}


def test_a_name_seen_repeated_first_is_still_a_repetition_of_the_tool_that_comes_later():
    """The order in which a batch names its tools makes no stream impossible to scrub."""
    call = chunk("{}")
    call["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "lookuplookup"
    body = f"data: {json.dumps(call)}\n\n".encode()
    scrubber = Scrubber()
    scrubbed = list(scrubber.scrub_all(Stream("s", body, tools=tools) for tools in (None, ("lookup",))))
    assert not scrubber.refused
    assert scrubbed[0].body == scrubbed[1].body


@pytest.mark.parametrize(
    "number", ["0e999999", "0.0E+400", "1" * 420 + "e-200", "1e400", "2" * 500 + "e-100"]
)
def test_a_number_stays_inside_or_outside_of_what_a_double_holds(number):
    """No filler makes a number too large that was not, or the other way round."""
    filled = fill_number(number)
    assert len(filled) == len(number)
    assert math.isfinite(float(filled)) == math.isfinite(float(number))


def test_a_placeholder_keeps_slashes_where_they_are():
    """A placeholder of a placeholder is the same one, so that a scrubbed batch can be scrubbed again."""
    once = Aliases().of("call", "a/b")
    assert Aliases().of("call", once) == once


def test_schemas_are_renamed_with_the_arguments():
    """A schema goes on accepting and refusing what it did, under new keys."""
    schema = {
        "type": "object",
        "description": "QZJV secret",
        "properties": {
            "cityQZJV": {"type": "string", "enum": ["OsloQZJV", "Lima"]},
            "n": {"type": "integer"},
        },
        "required": ["cityQZJV"],
        "additionalProperties": False,
    }
    tools = ({"name": "lookupQZJV", "schema": schema},)
    for text, category in (
        ('{"cityQZJV": "OsloQZJV", "n": 3}', None),
        ('{"n": 3}', "proposal.arguments_schema"),
        ('{"cityQZJV": 5}', "proposal.arguments_schema"),
        ('{"cityQZJV": "Lima", "other": 1}', "proposal.arguments_schema"),
    ):
        value = chunk(text)
        value["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "lookupQZJV"
        body = f"data: {json.dumps(value)}\n\ndata: [DONE]\n\n".encode()
        scrubbed = Scrubber().scrub(Stream(stream_id(body), body, tools=tools))
        assert assemble(scrubbed.body, tools=scrubbed.tools).category == category
        assert "QZJV" not in record_text(scrubbed)


def test_a_stream_that_would_change_is_refused(monkeypatch):
    """Where filler would move an outcome, nothing is written and the reason names no value."""
    stream = next(iter(synthesize(SynthOptions(1, 1))))
    monkeypatch.setattr(
        "fragmentlab.corpus.scrubbing.scrub.scrub_body",
        lambda body, *_: body.replace(b'"id":null', b'"id":7'),
    )
    scrubber = Scrubber()
    assert list(scrubber.scrub_all([stream])) == []
    assert dict(scrubber.refused) == {"the outcome would differ": 1}
    with pytest.raises(Unscrubbable):
        Scrubber().scrub(stream)


def test_scrubbing_a_batch_twice_changes_nothing(tmp_path, command):
    """`scrub` writes a batch that is scrubbed already in the same words, and never quotes the first one's
    licence."""
    raw = write_batch(
        tmp_path / "raw", synthesize(SynthOptions(30, 2)), name="QZJV", evidence="captured",
        provenance="QZJV", licence="QZJV", scrubbed=False,
    )  # fmt: skip
    once = command("scrub", raw, "--out", tmp_path / "once")
    assert (once.status, once.last_line) == (0, str(tmp_path / "once"))
    assert command("scrub", tmp_path / "once", "--out", tmp_path / "twice").status == 0
    assert (tmp_path / "once/streams.jsonl").read_bytes() == (tmp_path / "twice/streams.jsonl").read_bytes()
    assert open_batch(tmp_path / "once").manifest["scrubbed"] is True
    assert "QZJV" not in (tmp_path / "once/batch.json").read_text()


@pytest.mark.skipif(not CAPTURED.is_dir(), reason="the captured streams are not part of the checkout")
def test_captured_streams_keep_their_outcomes():
    """Each recorded stream, scrubbed, has the outcome of the original under every rule set."""
    scrubber = Scrubber()
    streams = [read_stream_file(path) for path in sorted(CAPTURED.glob("*/*"))]
    scrubbed = list(scrubber.scrub_all(streams))
    assert not scrubber.refused
    assert len(scrubbed) == len(streams) > 200
