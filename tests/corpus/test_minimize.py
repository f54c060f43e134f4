"""The smallest stream is refused for the same reason, runs as a vector, and holds nothing of the
recording."""

from __future__ import annotations

import json

import pytest

from fragmentlab.assembler import Limits, assemble
from fragmentlab.corpus.batches import write_batch
from fragmentlab.corpus.minimize import minimized_vector
from fragmentlab.corpus.reducing import Reducer
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.corpus.synth.batch import SynthOptions, synthesize
from fragmentlab.corpus.synth.faults import FAULTS
from fragmentlab.corpus.vector_check import check
from fragmentlab.corpus.vectors import load_vectors
from fragmentlab.errors import InputError
from fragmentlab.wire import events
from fragmentlab.wire.fragments import chunk, delta, fragment

CANARY = "kanarienvogel"
STREAMS = list(synthesize(SynthOptions(len(FAULTS), 5, fault_share=1000)))


def opening(index: int, arguments: str = "", name: str = "f") -> dict[str, object]:
    """The first fragment of a call."""
    function = {"name": name, "arguments": arguments}
    return chunk(delta(fragment(index, function, id=f"c{index}", type="function")))


def called(arguments: str) -> dict[str, object]:
    """A call in one chunk with its finish."""
    function = {"name": "f", "arguments": arguments}
    return chunk(delta(fragment(0, function, id="c", type="function")), "tool_calls")


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[fault.name for fault in FAULTS])
def test_every_fault_is_minimized_to_a_vector_that_agrees(tmp_path, number):
    """The vector is far smaller, keeps the category, and passes under every replay."""
    stream, category = STREAMS[number], FAULTS[number].category
    document = minimized_vector(stream, category)
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(document))
    (vector,) = load_vectors(path).vectors
    assert vector.expect.category == category
    assert check(vector) == []
    assert len(path.read_bytes()) < len(stream.body)
    assert len(document["vectors"][0].get("events", [])) <= 3


def test_a_fault_behind_others_is_brought_to_the_front():
    """A category that is not the stream's first is kept alone."""
    body = b"".join(
        b"data: "
        + json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}}]}).encode()
        + b"\n\n"
        for fragment in ({"id": "x"}, {"index": 0, "id": 5}, {"index": "0", "id": CANARY})
    )
    stream = Stream(stream_id(body), body)
    assert assemble(body).category == "fragment.index_missing"
    document = minimized_vector(stream, "identity.unsupported_type")
    assert document["vectors"][0]["expect"]["category"] == "identity.unsupported_type"
    assert CANARY not in json.dumps(document)


def test_broken_json_is_minimized_as_text():
    """What chunk objects cannot say is reduced by lines and characters."""
    body = b'data: {"choices": []}\n\ndata: {"choices": [}' + CANARY.encode() + b"\n\ndata: [DONE]\n\n"
    (vector,) = minimized_vector(Stream(stream_id(body), body))["vectors"]
    assert vector["expect"]["category"] == "event.invalid_json"
    assert len(vector["sse"]) < 12


@pytest.mark.parametrize(
    ("body", "category"),
    [
        (b'data: {"choices": [}\n\n', "event.invalid_json"),
        (b'data: {"a": 1} x\n\ndata: [DONE]\n\n', "event.invalid_json"),
        (b'{"choices": []}\n{"choices": [}\n', "event.invalid_json"),
        (b'data: {"choices": [], "choices": []}\n\n', "event.duplicate_key"),
        (b'data: {"a": "\xff"}\n\n', "event.invalid_utf8"),
        (b"data: " + b'{"a":' * 65 + b"1" + b"}" * 65 + b"\n\n", "limit.depth"),
    ],
)
def test_a_broken_event_stays_an_event(body, category):
    """What is reduced to a text that begins with a brace is still read as an event stream, as vectors are."""
    (vector,) = minimized_vector(Stream(stream_id(body), body))["vectors"]
    assert vector["expect"]["category"] == category


def test_lone_surrogates_are_minimized():
    """Values that UTF-8 cannot hold stop nothing."""
    delta = {
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "n", "arguments": '{"a": "\ud83d"}'}}]
    }
    choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls"}
    body = f"data: {json.dumps({'choices': [choice]})}\n\n".encode()
    (vector,) = minimized_vector(Stream(stream_id(body), body))["vectors"]
    assert vector["expect"]["category"] == "proposal.arguments_invalid_unicode"


def test_another_rule_set_is_named_in_the_vector():
    """What reject-null refuses is a vector that the default accepts or not, said apart."""
    target = next(
        s for s in synthesize(SynthOptions(10, 1, fault_share=0)) if s.pair and b'"id":null' in s.body
    )
    (vector,) = minimized_vector(target, rules="reject-null")["vectors"]
    assert vector["expect_under"]["reject-null"]["category"] == "TOOL_FRAGMENT_ID"


def test_what_is_not_refused_cannot_be_minimized():
    """The message says what the stream has instead."""
    good = next(iter(synthesize(SynthOptions(2, 1, fault_share=0))))
    with pytest.raises(InputError, match="not refused"):
        minimized_vector(good)
    with pytest.raises(InputError, match=r"it has identity\.missing"):
        minimized_vector(STREAMS[0], "limit.events")


def test_the_command_prints_a_vector_file(tmp_path, command):
    """A file and a stream of a batch give a vector on standard output; --no-scrub warns."""
    path = tmp_path / "stream.sse"
    path.write_bytes(STREAMS[0].body)
    done = command("minimize", path, "--category", "identity.missing")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["vectors"][0]["id"] == "minimized/identity-missing"
    batch = write_batch(
        tmp_path / "b", STREAMS, name="b", evidence="controlled", provenance="", licence="MIT", scrubbed=True
    )
    assert command("minimize", f"{batch}:{STREAMS[1].id}").status == 0
    assert "not scrubbed" in command("minimize", path, "--no-scrub").err
    assert command("minimize", path, "--category", CANARY).status == 2


WIDE = ",".join(f'"k{number}":{number}' for number in range(3000))
SIZES = {
    "limit.events": Stream("s", events.body([{"choices": []}] * 20_001), limits=Limits(events=20_000)),
    "limit.event_bytes": Stream("s", events.body([{"a": "x" * (1 << 20)}])),
    "limit.calls": Stream(
        "s", events.body([opening(index) for index in range(101)], done=False), limits=Limits(calls=100)
    ),
    "limit.arguments_bytes": Stream("s", events.body([opening(0, "x" * 600_000)] * 2)),
    "limit.name_bytes": Stream("s", events.body([opening(0, "", "n" * 600)] * 2)),
    "limit.depth": Stream("s", events.body([called("{" + '"a":{' * 70 + "}" * 71)])),
    "limit.number": Stream("s", events.body([called('{"a":' + "9" * 5000 + "}")])),
    "event.invalid_json": Stream("s", events.body(["{" + WIDE + ",}"])),
    "event.duplicate_key": Stream("s", events.body(["{" + WIDE + ',"id":1,"id":2}'])),
    "event.invalid_utf8": Stream("s", events.body(["{" + WIDE]).replace(b'"k7"', b'"\xff"')),
    "proposal.arguments_duplicate_key": Stream("s", events.body([called("{" + WIDE + ',"k0":0}')])),
    "proposal.arguments_invalid_json": Stream("s", events.body([called("{" + WIDE + ",,}")])),
    "proposal.arguments_not_object": Stream("s", events.body([called("[{" + WIDE + "}]")])),
}


@pytest.mark.parametrize("category", SIZES)
def test_large_and_broken_streams_become_small_ones(tmp_path, category):
    """Limits are lowered, broken events and wide arguments are reduced, in a bounded number of tries."""
    document = minimized_vector(SIZES[category], category)
    path = tmp_path / "vectors.json"
    path.write_text(json.dumps(document))
    (vector,) = load_vectors(path).vectors
    assert (vector.expect.category, check(vector)) == (category, [])
    assert len(path.read_bytes()) < 900


def test_a_vector_is_minimized_by_its_id(command):
    """The id of one of the kit's vectors is enough."""
    done = command("minimize", "identity/cell-absent-null")
    assert done.status == 0
    assert json.loads(done.out)["vectors"][0]["expect"]["category"] == "identity.missing"
    assert command("minimize", "identity/no-such-vector").status == 2


def test_no_single_item_can_be_taken_from_a_reduced_list():
    """Delta debugging ends at a list that is minimal item by item."""
    reducer = Reducer(lambda body: {3, 41, 97} <= set(body))
    assert reducer.items(range(100), bytes) == [3, 41, 97]


@pytest.mark.parametrize("bounds", [{"tries": 5}, {"work": 100}])
def test_tries_and_bytes_are_limited(bounds):
    """A condition that is dear to test ends with the smallest so far."""
    reducer = Reducer(lambda body: len(body) >= 2, **bounds)
    assert 2 <= len(reducer.items(range(100), bytes)) < 100
    assert reducer.is_done
