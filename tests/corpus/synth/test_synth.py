"""Synthetic batches: reproducible, paired, and faulty exactly as they say."""

from __future__ import annotations

import json

import pytest

from fragmentlab.assembler import assemble
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.synth.batch import SynthOptions, _takes_faults, synthesize
from fragmentlab.corpus.synth.faults import FAULTS
from fragmentlab.corpus.synth.provider_shapes import load_shapes
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.wire.observing import SHAPES as SHAPES_WORDS
from fragmentlab.wire.observing import observe

SHAPES = load_shapes()
CLEAN = [shape for shape in SHAPES if _takes_faults(shape)]


def result_of(stream: Stream, rules: str = "keep-established"):
    return assemble(stream.body, tools=stream.tools, end=stream.end, rules=rules)


def pairs_of(streams: list[Stream]) -> list[tuple[Stream, Stream]]:
    by_pair: dict[str, list[Stream]] = {}
    for stream in streams:
        if stream.pair is not None:
            by_pair.setdefault(stream.pair, []).append(stream)
    return [(control, target) for control, target in by_pair.values()]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_names_a_source_that_others_can_check(shape):
    """Every fact comes from a dated measurement or a public report."""
    assert shape.sources
    assert shape.streams_seen is None or any(source.startswith("own measurement") for source in shape.sources)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_shows_what_it_says(shape):
    """What is observed of a stream in a shape is what the shape's facts mean, in the same words."""
    options = SynthOptions(3, 3, fault_share=0, parallel_share=0)
    own = list(synthesize(options, [shape]))[{"omitted": 0, "null": 1}.get(shape.continuation_id, -1)]
    assert shape.labels <= SHAPES_WORDS.keys()
    assert observe(own.body, own.framing) == shape.labels


def test_the_same_options_give_the_same_streams():
    """A seed fixes every byte, and another seed changes them."""
    first, again, other = (list(synthesize(SynthOptions(60, seed))) for seed in (5, 5, 6))
    assert first == again
    assert {stream.id for stream in first}.isdisjoint(stream.id for stream in other)


def test_more_streams_only_add():
    """A longer batch begins with the tasks of a shorter one, apart from how the shorter one ends."""
    short, long = (list(synthesize(SynthOptions(count, 5))) for count in (40, 80))
    assert short[:30] == long[:30]


def test_the_committed_batch_is_what_its_command_writes(tmp_path, command):
    """`batch.json` of synthetic-identity holds the options that reproduce it byte for byte."""
    folder = data_folder() / "batches" / "synthetic-identity"
    options = json.loads((folder / "batch.json").read_bytes())["synth"]
    out = tmp_path / "synthetic-identity"
    numbers = {name: str(options[name]) for name in ("streams", "seed", "arguments")}
    shares = {name: str(options[name] / 1000) for name in ("faults", "parallel", "interleaved")}
    arguments = [text for name, value in (numbers | shares).items() for text in (f"--{name}", value)]
    done = command("synth", *arguments, "--out", out)
    assert done.status == 0
    assert done.last_line == str(out)
    for file in ("batch.json", "streams.jsonl"):
        assert (out / file).read_bytes() == (folder / file).read_bytes()


def test_the_committed_batch_begins_with_a_null_before_the_id():
    """Notebook 01 finds an instructive refusal first."""
    result = result_of(next(iter(open_batch("synthetic-identity").streams())))
    fault = result.faults[0]
    assert (fault.category, fault.incoming_kind, fault.previous_identity) == (
        "identity.missing",
        "null",
        "absent",
    )


def test_control_and_target_differ_in_null_ids_alone():
    """A pair carries the same calls; only the target has null continuations, and only reject-null minds."""
    pairs = pairs_of(list(synthesize(SynthOptions(300, 2))))
    assert len(pairs) > 50
    for control, target in pairs:
        assert control.body == target.body.replace(b'"id":null,', b"")
        assert result_of(control).calls == result_of(target).calls
        assert result_of(control).category == result_of(target).category
        assert result_of(control).counts["null_continuations"] == 0
        assert result_of(target).counts["null_continuations"] > 0
        assert result_of(target, "reject-null").category == "TOOL_FRAGMENT_ID"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_gives_its_category_in_every_shape(fault):
    """The one change that a fault makes is the first thing refused."""
    number = FAULTS.index(fault)
    for shape in CLEAN:
        streams = list(synthesize(SynthOptions(number + 1, 3, fault_share=1000), [shape]))
        assert result_of(streams[number]).category == fault.category, shape.name


@pytest.mark.parametrize("shape", CLEAN, ids=lambda shape: shape.name)
def test_a_clean_shape_is_accepted(shape):
    """Without faults, omitted and null continuations are accepted, interleaved or not."""
    options = SynthOptions(30, 4, fault_share=0, parallel_share=700, interleaved_share=500)
    for stream in synthesize(options, [shape]):
        if stream.pair is not None:
            assert result_of(stream).outcome == "accepted"


def test_a_shapes_own_style_is_among_its_streams():
    """The shape of alibaba sends empty continuation IDs, as recorded."""
    shape = next(shape for shape in SHAPES if shape.name == "alibaba")
    streams = list(synthesize(SynthOptions(3, 1, fault_share=0), [shape]))
    assert b'"id":"",' in streams[2].body
    assert result_of(streams[2]).category == "identity.conflict"


def test_argument_size_is_a_parameter():
    """Calls take about as many characters as asked."""
    options = SynthOptions(40, 1, fault_share=0, parallel_share=0, arguments_size=5000)
    sizes = [call.to_json()["arguments_length"] for s in synthesize(options) for call in result_of(s).calls]
    assert min(sizes) >= 2500 and max(sizes) <= 9000


@pytest.mark.parametrize(
    "text",
    ['{"schema": "fragmentlab-shapes-v1", "shapes": [{}]}', "{", '{"schema": "other", "shapes": []}'],
)
def test_a_bad_shapes_file_is_refused_in_one_line(tmp_path, text):
    """A shapes file is checked against its schema before use, and its text is not quoted."""
    path = tmp_path / "shapes.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load_shapes(path)
    assert "\n" not in str(error.value)
