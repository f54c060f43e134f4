"""Notebook 05's answers, against batches whose story is known."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.corpus.batches import write_batch
from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.corpus.synth.batch import SynthOptions, synthesize
from fragmentlab.errors import InputError
from fragmentlab.reports.provider_shapes import open_shapes
from fragmentlab.reports.show.figures import LIGHT
from tests.corpus.importing.bodies import BODY, TEXT_BODY

CANARY = "kanarienvogel"


def text(part):
    return part._repr_mimebundle_()["text/plain"]


def page(found):
    parts = [found.overview(), found.table(), found.vocabulary(), found.refusals(), found.sizes()]
    parts += [found.size_table(), found.upstream(), found.conclusion()]
    parts += [found.by_source(kind) for kind in ("captured", "controlled", "imported", "live")]
    return "".join(str(part._repr_mimebundle_()) for part in parts)


@pytest.fixture
def batch(tmp_path):
    def write(streams, evidence="captured", name="b", **extra):
        return str(
            write_batch(
                tmp_path / name, streams, name=name, evidence=evidence, provenance="", licence="MIT",
                scrubbed=False, **extra,
            )
        )  # fmt: skip

    return write


def ask(*batches, rules="keep-established"):
    return open_shapes(SimpleNamespace(batches=", ".join(batches), rules=rules))


RECORDED = Stream(stream_id(BODY), BODY, provider="venice", model=CANARY, tools=("lookup_city",))


def test_a_null_continuation_is_shown_by_its_source(batch):
    """The source is named in the conclusion, the table and the heat map; the rule sets differ on it."""
    found = ask(batch([RECORDED]))
    assert "venice (1 streams)" in text(found.conclusion())
    assert "id null 1" in text(found.table())
    assert "id null 1" in found.by_source("captured").alt
    refused = found.refusals().frame.set_index("shape").loc["id null"]
    assert refused.streams == 1
    assert refused.filter(like="refused by").to_list() == [0, 0, 1]


def test_a_tolerated_null_is_worth_reporting(batch):
    """What is captured is listed with advice; what we made ourselves is not."""
    assert "leave id out instead of sending null" in text(ask(batch([RECORDED])).upstream())
    assert ask(batch([RECORDED], "controlled", "c")).upstream().frame.empty


def test_streams_without_calls_are_counted_apart(batch):
    """Text answers have no shape of a tool call."""
    found = ask(batch([RECORDED, Stream(stream_id(TEXT_BODY), TEXT_BODY)]))
    assert "1 streams without a tool call are left out" in text(found.overview())


def test_sizes_and_refusals_add_up(batch):
    """Every stream stands in one range, and each share has its interval."""
    found = ask(batch(synthesize(SynthOptions(60, 3)), "controlled"))
    rows = found.size_table().frame
    assert rows.streams.sum() == 60 and (rows.refused <= rows.streams).all()
    assert found.results_df().query("rules == 'keep-established'").shape[0] == 60


def test_nothing_private_is_on_the_page(batch):
    """Unreviewed models and hosts are aliases; no body, ID, tool or file name is shown."""
    shown = page(ask(batch([RECORDED], name=f"x{CANARY}")))
    assert "model-1" in shown
    for word in (CANARY, "call_1", "lookup_city", "Zü", "rich"):
        assert word not in shown


def test_a_rule_set_of_ones_own_is_not_named(batch, tmp_path):
    """A rules file counts beside the shipped rule sets, without its name."""
    cells = {identity: dict(row) for identity, row in SHIPPED["keep-established"].cells.items()}
    table = {"schema": "fragmentlab-rules-v1", "name": CANARY, "note": CANARY, "cells": cells}
    (tmp_path / f"{CANARY}.json").write_text(json.dumps(table))
    shown = page(ask(batch([RECORDED]), rules=str(tmp_path / f"{CANARY}.json")))
    assert "refused by your rule set" in shown and "Refused under your rule set" in shown
    assert CANARY not in shown


def test_the_figures_can_be_drawn(batch):
    """Both pictures are made, also where a name is hostile."""
    stream = Stream(stream_id(BODY), BODY, provider="$x^{<b>$\u202e", server="<script>")
    found = ask(batch([stream]), batch(synthesize(SynthOptions(200, 1)), "controlled", "c"))
    for figure in (found.by_source("captured"), found.by_source("controlled"), found.sizes()):
        assert b"<svg" in figure.to_svg(LIGHT)
    assert "<script>" not in page(found)


def test_a_raw_import_is_refused_unless_told(batch, monkeypatch):
    """A batch imported without scrubbing is not rendered by mistake."""
    private = batch([RECORDED], private=True)
    with pytest.raises(InputError, match="not scrubbed"):
        ask(private)
    monkeypatch.setenv("FRAGMENTLAB_ALLOW_PRIVATE", "1")
    assert not ask(private).table().frame.empty


def test_no_batch_is_an_error():
    """An empty list of batches is said, not shown as an empty page."""
    with pytest.raises(InputError, match="names no batch"):
        ask(" ,")
