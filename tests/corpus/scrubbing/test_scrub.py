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
from fragmentlab.corpus.scrubbing.body import MAX_SCRUB_BYTES, scrub_body
from fragmentlab.corpus.scrubbing.event_data import Replacements, scrub_event
from fragmentlab.corpus.scrubbing.json_text import scrub_arguments
from fragmentlab.corpus.scrubbing.scrub import Scrubber, Unscrubbable, verify
from fragmentlab.corpus.scrubbing.text import fill_number
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.corpus.synth.batch import SynthOptions, synthesize
from fragmentlab.disclosure import NameAliases
from fragmentlab.wire.events import DONE, body, event
from tests.assembler.work import calls_made

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
        lambda stream, *_: stream.body.replace(b'"id":null', b'"id":7'),
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
    assert open_batch(tmp_path / "once").manifest.scrubbed
    assert "QZJV" not in (tmp_path / "once/batch.json").read_text()


def reply(content: str, arguments: str) -> bytes:
    """A response that says something and makes a call."""
    value = chunk(arguments)
    value["choices"][0]["delta"]["content"] = content
    return body([value])


@pytest.mark.parametrize(
    "words", ["Meet Anna at 10.", "a b c d e f g h ", 'He said: \\"No\\"', "x\\n\\ty\\/z - 0.50"]
)
def test_nothing_is_left_of_words_and_their_lengths(words):
    """Text of one size is one text: no blank, capital, digit or mark says where a word began or ended."""
    arguments = json.dumps({"note": words.replace("\\", "_")})
    texts = {
        Scrubber().scrub(Stream("s", reply(words, arguments))).body for words in (words, "~" * len(words))
    }
    assert len(texts) == 1
    sizes = {Scrubber().scrub(Stream("s", reply("w" * size, "{}"))).body for size in range(8, 16)}
    assert len(sizes) == 1


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ('{"a": "Tell \\"Jo\\" 7\\u00e9\\n"}', '{"k": "xxxxx\\nxx\\nxx\\u00e9\\n"}'),
        ("I will look it up\nnow, Jo", "xxxxxxxxxxxxxxxxxxxxx, xx"),
        ('{"a": tru', '{"k": tru'),
        ('{"a": -12.', '{"k": -11.'),
        ('{"a": "b\\u00', '{"k": "x\\u00'),
        ('{"a": "b\\', '{"k": "x\\'),
        ('{"a": 1} and more', '{"k": 1} xxxxxxxx'),
    ],
)
def test_filler_is_fixed_by_class_and_what_breaks_the_text_stays(text, scrubbed):
    """A reader sees structure, sizes and where a document was cut, and nothing else."""
    assert re.sub('"[a-z]":', '"k":', scrub_arguments(text, Aliases())) == scrubbed


def one_event(text: str) -> bytes:
    return event(text) + DONE


KNOBS = {
    "short keys": lambda n: one_event("{" + ",".join(f'"//{chr(0x4E00 + i)}":1' for i in range(n)) + "}"),
    "long keys": lambda n: one_event('{"' + "ab" * n + 'c":1}'),
    "keys that begin one another": lambda n: one_event(
        "{" + ",".join(f'"{"a" * (i % 100)}b{i}":1' for i in range(n)) + "}"
    ),
    "quotes": lambda n: one_event('"' * n),
    "backslashes": lambda n: one_event('"' + "\\" * n),
    "blanks": lambda n: one_event('"a"' + " " * n + "x"),
    "events": lambda n: event({"choices": []}) * n,
    "comments": lambda n: b": c\n" * n,
    "data lines": lambda n: b"data: {\n" * n,
    "fragments": lambda n: body([chunk("{ ")] * n),
    "arguments": lambda n: body([chunk(json.dumps({"a": "x\n" * n}))]),
    "IDs": lambda n: body([{"id": f"r{i}", "choices": []} for i in range(n)]),
}


@pytest.mark.parametrize("knob", KNOBS)
def test_work_grows_with_the_input(knob):
    """Twice and four times the input cost about twice and four times the calls."""
    counts = [
        calls_made(lambda size=size: scrub_body(Stream("s", KNOBS[knob](size)), Replacements()))
        for size in (500, 1000, 2000)
    ]
    assert counts[2] <= 4.4 * counts[0] + 200 and counts[1] <= 2.2 * counts[0] + 200


@pytest.mark.parametrize("level", ['{"a":[', '{"a":"b","c":', '[{"index":7,"id":"x",', "]}"])
def test_work_grows_with_broken_nesting(level):
    """However deep a broken event is nested, a token costs the same."""
    counts = [
        calls_made(lambda size=size: list(scrub_event(level * size, Replacements(), {})))
        for size in (500, 1000, 2000)
    ]
    assert counts[2] <= 4.4 * counts[0] and counts[1] <= 2.2 * counts[0]


def test_a_form_has_as_many_placeholders_as_words():
    """Keys with one character that can be replaced stay apart, however many there are."""
    aliases = Aliases()
    words = [f"/{chr(0x80 + number)}" for number in range(0x780)]
    assert len({aliases.of("key", word) for word in words}) == len(words)


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (Stream("s", b"x" * (MAX_SCRUB_BYTES + 1)), "it is larger than 16 MiB"),
        (Stream("s", b"data: [" + b"1," * 600 + b"\n\n"), "it holds more than 1,000 values"),
        (Stream("s", b"\n" * 1001), "it holds more than 1,000 values"),
        (Stream("s", DONE, tools=("a", 5)), "a known tool is neither a name nor an object with one"),
    ],
)
def test_a_stream_past_the_budget_is_named_and_left_out(stream, why, monkeypatch):
    """Work and memory are bounded, and the reason is counted."""
    monkeypatch.setattr("fragmentlab.corpus.scrubbing.body.MAX_SCRUB_VALUES", 1000)
    scrubber = Scrubber()
    assert list(scrubber.scrub_all([stream])) == []
    assert dict(scrubber.refused) == {why: 1}


def test_a_schema_nested_too_deeply_is_named():
    """A schema that no recursion can follow leaves the stream out, not the batch."""
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"items": schema}
    scrubber = Scrubber()
    assert list(scrubber.scrub_all([Stream("s", DONE, tools=({"name": "f", "schema": schema},))])) == []
    assert dict(scrubber.refused) == {"the schema of a known tool is nested too deeply": 1}


SHARED = Path(__file__).resolve().parents[4] / "shared"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded streams are not part of the checkout")
def test_recorded_streams_keep_their_outcomes():
    """Each recorded stream, scrubbed, has the outcome of the original under every rule set."""
    scrubber = Scrubber()
    paths = [*SHARED.glob("captured/*/*"), *SHARED.glob("local-captures/*/*")]
    scrubbed = list(scrubber.scrub_all(Stream(path.name, path.read_bytes()) for path in sorted(paths)))
    assert not scrubber.refused
    assert len(scrubbed) == len(paths) > 300
