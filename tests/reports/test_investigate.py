"""Notebook 01's answers, against streams whose story is known."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.errors import InputError
from fragmentlab.reports.investigate import EXAMPLE, investigate
from fragmentlab.reports.show.figures import LIGHT

FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def fragment(index, name=None, arguments="", **identity):
    item = {
        "index": index,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **identity,
    }
    return {"choices": [{"index": 0, "delta": {"tool_calls": [item]}}]}


@pytest.fixture
def ask(tmp_path):
    def asked(*chunks, **parameters):
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        path = tmp_path / "stream.sse"
        path.write_text(body)
        defaults = {"batch": "", "stream": "", "file": str(path), "tools": "", "rules": "keep-established"}
        return investigate(SimpleNamespace(**{**defaults, "reveal": False, **parameters}))

    return asked


KEPT = [fragment(0, "f", "{", id="call_1"), fragment(0, arguments="}", id=None), FINISH]
MISSING = [fragment(0, "f", "{}", id=None), fragment(0, id="call_1"), FINISH]


def text(part):
    return part._repr_mimebundle_()["text/plain"]


def test_a_null_continuation_is_not_refused(ask):
    """Established and null: accepted, and the conclusion says that the rule set decides."""
    found = ask(*KEPT)
    assert "Not refused: one call may go on to authorization" in text(found.outcome())
    assert "met 1 time." in text(found.conclusion())
    assert "The rule set decides: keep-established accepted" in text(found.conclusion())
    assert "reject-null TOOL_FRAGMENT_ID" in text(found.conclusion())


def test_a_null_first_is_refused_where_it_stands(ask):
    """Absent and null: the outcome names category, place, what was said and what was known."""
    told = text(ask(*MISSING).outcome())
    assert told.startswith("Refused as identity.missing under keep-established: null where no ID is known.")
    assert "at event 1, fragment 1, call 1: the fragment says null while the identity is absent" in told


def test_next_steps_come_from_the_categories(ask):
    """Causes and steps are those of the category file."""
    assert "do not invent an ID" in text(ask(*MISSING).next_steps())


def test_every_shipped_rule_set_has_a_row(ask):
    """The table compares the same bytes under each rule set."""
    outcomes = ask(*KEPT).rule_sets().frame.set_index("rule set").outcome.map(str)
    assert list(outcomes.index) == list(SHIPPED)
    assert outcomes["keep-established"] == "✓ accepted" and outcomes["reject-null"] == "✗ refused"


def test_unknown_tools_are_said_to_be_unchecked(ask):
    """Without tools the page does not claim that names were checked; with tools they are."""
    assert "names were not checked" in text(ask(*KEPT).conclusion())
    assert "proposal.name_unknown" in text(ask(*KEPT, tools="other").outcome())
    assert "Not refused" in text(ask(*KEPT, tools="other, f").outcome())


def test_raw_values_only_when_asked(ask):
    """IDs stand as letters until somebody asks for them."""
    found = ask(*KEPT)
    assert "call_1" not in text(found.raw()) + text(found.timeline()) + text(found.figure())
    assert "call_1" in text(ask(*KEPT, reveal=True).raw())
    assert "call_1" in text(ask(*MISSING, reveal=True).raw())


def test_a_batch_without_refusals_says_so(tmp_path):
    """Asking for the first refused stream of a clean batch is one clear line."""
    from fragmentlab.corpus.batches import write_batch

    folder = write_batch(
        tmp_path / "b", [], name="b", evidence="controlled", provenance="x", licence="MIT", scrubbed=False
    )
    given = {
        "batch": str(folder),
        "stream": "",
        "file": "",
        "tools": "",
        "rules": "reject-null",
        "reveal": False,
    }
    with pytest.raises(InputError, match="no stream of this batch is refused"):
        investigate(SimpleNamespace(**given))


def test_a_batch_of_ones_own_is_shown_without_its_names(tmp_path):
    """Batch, stream ids, provider, server, model, pair and tools of someone's batch are not shown."""
    from fragmentlab.corpus.batches import write_batch
    from fragmentlab.corpus.streams import Stream

    names = dict.fromkeys(("id", "provider", "server", "model", "pair"), "CANARY-name")
    stream = Stream(body=b"data: [DONE]\n\n", tools=("CANARY-tool",), **names)
    facts = {"evidence": "captured", "provenance": "CANARY", "licence": "CANARY", "scrubbed": False}
    folder = write_batch(tmp_path / "CANARY-batch", [stream], name="CANARY-batch", **facts)
    given = {"batch": str(folder), "stream": "CANARY-name", "file": "", "tools": "", "reveal": False}
    found = investigate(SimpleNamespace(**given, rules="keep-established"))
    shown = [text(part()) for part in (found.outcome, found.source, found.faults, found.conclusion)]
    assert "CANARY" not in "".join(shown) + repr(found)


def test_alt_text_tells_the_story(ask):
    """Who cannot see the figure reads the same facts."""
    alt = ask(*MISSING).figure().alt
    assert "Index 0: fragment 1 says null, refused as identity.missing; fragment 2 says ID A" in alt


def test_a_stream_without_fragments_has_a_figure_too(ask):
    """Nothing arrived: still a figure, a table and an outcome."""
    found = ask(FINISH)
    assert found.figure().alt == "No fragment arrived. Refused outside the fragments: completion.no_calls."
    assert found.figure().to_svg(LIGHT) and text(found.timeline()).endswith("not shown.")


def test_long_and_wide_streams_stay_bounded(ask):
    """Ten thousand fragments over a hundred interleaved indices give a page of a bounded size."""
    first = [fragment(i, "f", id=f"call_{i}") for i in range(100)]
    found = ask(*first, *[fragment(n % 100, arguments="1") for n in range(9900)], FINISH)
    html = found.figure().to_html() + found.timeline().to_html()
    assert len(html) < 250_000
    assert "more indices are not drawn" in html and "more rows are not shown" in html


def test_long_runs_are_joined(ask):
    """A call of many like fragments is one line, with its bytes added up."""
    found = ask(
        fragment(0, "f", "[", id="a"), *[fragment(0, arguments="1", id=None) for _ in range(500)], FINISH
    )
    assert found.timeline().frame.fragment.to_list() == ["1", "2 to 501"]
    assert found.timeline().frame["argument bytes"].to_list() == [1, 500]
    assert "fragments 2 to 501 say null" in found.figure().alt


def test_table_and_figure_agree(ask):
    """Figure and table are made from the same rows."""
    found = ask(*MISSING)
    assert len(found.timeline().frame) == len(found.timeline_df()) == 2
    assert "2 fragments over 1 index" in found.figure().alt


def test_the_smallest_stream_is_offered(ask):
    """A refused stream comes with a scrubbed vector; one that is not refused says so."""
    shown = text(ask(*MISSING).minimized())
    assert '"category": "identity.missing"' in shown
    assert "call_1" not in shown
    assert "not refused" in text(ask(*KEPT).minimized())


PAGE = "outcome figure timeline faults next_steps rule_sets minimized source raw conclusion".split()


def test_a_page_about_a_file_names_no_batch_and_no_hash(ask):
    """Neither the kit's example nor a hash of the recording stands on it, in a table or in a frame."""
    found = ask(*MISSING)
    frames = [found.streams_df(), found.results_df(), found.faults_df(), found.timeline_df()]
    shown = "".join(text(getattr(found, part)()) for part in PAGE) + "".join(f.to_csv() for f in frames)
    assert "a file of yours" in shown and "captured-local" not in shown
    assert found.found.stream.body_sha256[:8] not in shown


def test_without_parameters_the_example_is_shown(ask):
    """Its batch and stream are named where the page says where the stream comes from."""
    source = ask(file="").source().frame.set_index("what").value
    assert (source.batch, source.stream) == EXAMPLE


@pytest.mark.parametrize("batch", ["", "vectors/identity", "data/vectors/identity.json"])
def test_a_vector_is_found_by_its_id(ask, batch, root, monkeypatch):
    """With or without its file, a vector of the kit is shown under its id, with its own tools and limits."""
    monkeypatch.chdir(root)
    found = ask(file="", batch=batch, stream="identity/cell-absent-null")
    source = found.source().frame.set_index("what").value
    assert (source.batch, source.stream) == ("vectors/identity", "identity/cell-absent-null")
    assert found.result.category == "identity.missing"


def test_a_vector_of_ones_own_is_not_named(ask, root, tmp_path):
    """The first refused vector of a file of one's own is shown without its id and its file's name."""
    file = tmp_path / "CANARY-file.json"
    vectors = (root / "data/vectors/identity.json").read_text("utf-8")
    file.write_text(vectors.replace('"identity/', '"canary/'), "utf-8")
    shown = text(ask(file="", batch=str(file)).source())
    assert "a vector of yours" in shown and "canary" not in shown.lower()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": "captured-local"}, "give a file or a batch"),
        ({"file": "", "stream": "identity/none"}, "no vector has that id"),
        ({"stream": "2"}, "no stream|holds 1 stream"),
        ({"file": "", "batch": "no-such-batch"}, "is no batch"),
    ],
)
def test_what_names_nothing_is_one_line(ask, given, message):
    """Contradictions and unknown names are told in one line each."""
    with pytest.raises(InputError, match=message):
        ask(*KEPT, **given)
