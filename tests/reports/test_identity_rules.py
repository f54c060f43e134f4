"""Notebook 03's tables and figures are built from the rule table, the rows and the search."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.rules import CELLS, COLUMNS, DEFAULT_RULES, IDENTITIES, SHIPPED, rules_from_json
from fragmentlab.errors import InputError
from fragmentlab.reports.identity_rules import Bench, put_on_the_bench
from fragmentlab.reports.show.figures import LIGHT, Figure
from fragmentlab.reports.show.rule_figures import SAYS, cells_df, flow_figure, grouped, met_figure
from tests.qualification.candidates.test_assessment import changed


def parameters(**given: str) -> SimpleNamespace:
    values = {
        "rules": "keep-established,reject-null",
        "batches": "captured-local",
        "candidate": "empty-continuation",
    }
    return SimpleNamespace(**(values | given))


@pytest.fixture(scope="module")
def shown() -> Bench:
    return put_on_the_bench(parameters(batches="captured-local,data/vectors/counterexample.json"))


def other_action(rules: RuleSet, identity: str, column: str) -> str:
    return "reject:identity.conflict" if rules.action(identity, column) == "keep" else "keep"


@pytest.mark.parametrize(("identity", "column"), CELLS)
def test_flow_changes_with_every_cell(identity: str, column: str) -> None:
    """Changing any cell changes the flow's alt text, its groups and the drawing."""
    default = SHIPPED[DEFAULT_RULES]
    rules = changed("flipped", (identity, column, other_action(default, identity, column)))
    before, after = flow_figure(default, "x"), flow_figure(rules, "x")
    assert before.alt != after.alt
    assert not grouped(cells_df(default)).equals(grouped(cells_df(rules)))
    assert before.to_svg(LIGHT) != after.to_svg(LIGHT)


def test_flow_holds_every_cell_once() -> None:
    """The groups are the whole table: each cell once, under its action."""
    for rules in SHIPPED.values():
        groups = grouped(cells_df(rules)).itertuples()
        cells = [(row.identity, says, row.action) for row in groups for says in row.says.split(", ")]
        assert sorted(cells) == sorted((i, SAYS[c], rules.action(i, c)) for i, c in CELLS)


@pytest.mark.parametrize("cell", CELLS[::6])
def test_met_figure_changes_with_the_rows(cell: tuple[str, str]) -> None:
    """A cell that is met more often changes the drawing; the alt text counts the cells that are met."""

    def drawn(times: int) -> Figure:
        counts = pd.DataFrame(0, index=IDENTITIES, columns=COLUMNS)
        counts.loc[CELLS[1]], counts.loc[cell] = 5, times
        return met_figure({"controlled": counts})

    none, one, more = map(drawn, (0, 1, 40))
    assert len({none.to_svg(LIGHT), one.to_svg(LIGHT), more.to_svg(LIGHT)}) == 3
    assert "controlled: 1 of 25 cells met" in none.alt
    assert "controlled: 2 of 25 cells met" in one.alt


def test_evidence_is_kept_apart(shown: Bench) -> None:
    """Controlled, captured and live counts are drawn and told apart, none included."""
    alt = shown.met_figure().alt
    assert "captured: " in alt
    assert "live: 0 of 25 cells met" in alt
    text = shown.met_table().to_text()
    assert "captured-local" in text
    assert "vectors" in text


def test_tables_come_from_the_table(shown: Bench) -> None:
    """The complete table shows every cell of the default; the other tables show only what differs."""
    complete = shown.complete_table().frame
    assert complete.shape == (9, 4) and complete.isna().sum().sum() == 2
    others = shown.other_tables().frame.groupby("rule set")["known identity"].agg(set)
    assert set(others.index) == {"reject-null", "empty-continuation"}
    assert others["empty-continuation"] == {"established"}


def test_both_drifts(shown: Bench) -> None:
    """reject-null refuses the captured targets; every counterfactual lets an identity through."""
    lost = shown.refused_valid().frame.set_index("rule set")
    assert lost.captured["reject-null"] == 13
    through = shown.let_through().frame
    assert "✓ 0" not in set(through["identities let through"].map(str))
    assert through["for example"].notna().all()


def test_the_frames_agree_with_the_tables(shown: Bench) -> None:
    """Rulings hold a row per stream and rule set, and say the same as the tables made from them."""
    rulings, streams = shown.rulings_df(), shown.streams_df()
    assert len(rulings) == len(streams) * rulings.rules.nunique() and rulings.rules.nunique() == 9
    lost = rulings.query("rules == 'reject-null' and refused and not refused_by_default")
    assert str(shown.refused_valid().frame.iloc[0]["valid streams refused"]) == f"✗ {len(lost)}"
    table = shown.met_table().frame
    assert shown.met_df().times.sum() == table[["captured-local", "vectors"]].sum().sum() > 0
    assert (shown.checks_df().broken > 0).sum() == 6
    assert len(shown.candidate.departures_df()) == shown.candidate.flips().frame.streams.sum()


def test_counterexamples_are_listed(shown: Bench) -> None:
    """Each counterfactual has its counterexample, the shipped rule sets none."""
    named = set(shown.counterexamples().frame["rule set"])
    assert named == {
        "accept-every-null",
        "generate-id",
        "borrow-previous",
        "match-name",
        "inherit-response",
        "last-wins",
    }
    assert shown.model().frame.invariants.map(str).to_list()[:3] == ["✓ breaks none"] * 3


def test_someone_elses_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rules file of someone else is judged; neither its name nor its path is shown."""
    file = tmp_path / "secret-place.json"
    cells = {i: dict(SHIPPED[DEFAULT_RULES].cells[i]) for i in IDENTITIES}
    cells["established"]["other_string"] = "set"
    file.write_text(json.dumps({"schema": "fragmentlab-rules-v1", "name": "canary-rules", "cells": cells}))
    found = put_on_the_bench(parameters(candidate=str(file), rules="keep-established"))
    pieces = [
        found.candidate.verdict(),
        found.candidate.cells(),
        found.candidate.flips(),
        found.candidate.movements(),
    ]
    pieces += [
        found.candidate.questions(),
        found.model(),
        found.counterexamples(),
        found.other_tables(),
        found.conclusion(),
    ]
    text = "".join(str(piece._repr_mimebundle_()) for piece in pieces)
    assert "canary" not in text
    assert "secret-place" not in text
    assert "your candidate is unsafe" in text
    assert "an established identity is never changed" in text


def test_dropped_ids_are_no_success(tmp_path: Path) -> None:
    """A candidate that keeps the first of two IDs breaks no invariant, and is not called harmless."""
    file = tmp_path / "rules.json"
    cells = {i: dict(SHIPPED[DEFAULT_RULES].cells[i]) for i in IDENTITIES}
    cells["established"]["other_string"] = "keep"
    file.write_text(json.dumps({"schema": "fragmentlab-rules-v1", "name": "first-wins", "cells": cells}))
    batches = "data/vectors/identity.json"
    verdict = put_on_the_bench(parameters(candidate=str(file), batches=batches)).candidate.verdict()
    assert verdict.kind == "bad"
    assert "drops IDs that were sent" in verdict.headline


def test_unsafe_example(root: Path) -> None:
    """The unsafe example under data/rules is judged unsafe with the invariant named."""
    found = put_on_the_bench(parameters(candidate="empty-clears.json", rules="keep-established"))
    assert found.candidate.verdict().kind == "bad"
    assert "an established identity is never cleared" in found.candidate.verdict().details[-1]


def test_streams_of_ones_own_are_not_named(tmp_path: Path, root: Path) -> None:
    """Vectors that the kit does not ship are counted, not named."""
    file = tmp_path / "canary-file.json"
    shutil.copy(root / "data" / "vectors" / "counterexample.json", file)
    found = put_on_the_bench(parameters(batches=str(file)))
    text = found.let_through().to_text() + found.refused_valid().to_text() + found.met_table().to_text()
    assert "canary" not in text
    assert "one of yours" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"candidate": "no-such-rules"}, "unknown rule set"),
        ({"rules": "keep-established,no-such.json"}, "cannot be read"),
        ({"batches": ""}, "names no batch"),
        ({"batches": "no-such-batch"}, "is no batch"),
        ({"batches": "captured-local,captured-local"}, "given twice"),
    ],
)
def test_bad_parameters(given: dict[str, str], message: str) -> None:
    """A parameter that names nothing usable is one clear line."""
    with pytest.raises(InputError, match=message):
        put_on_the_bench(parameters(**given))


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    """A rules file that bears the name of a counterfactual would be taken for it, so it is refused."""
    cells = {i: dict(SHIPPED[DEFAULT_RULES].cells[i]) for i in IDENTITIES}
    cells["established"]["null"] = "reject:identity.conflict"
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"schema": "fragmentlab-rules-v1", "name": "last-wins", "cells": cells}))
    assert rules_from_json(file.read_bytes()).name == "last-wins"
    with pytest.raises(InputError, match="name of"):
        put_on_the_bench(parameters(candidate=str(file)))
