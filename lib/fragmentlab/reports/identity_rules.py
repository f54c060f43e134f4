"""What each rule set lets through: what notebook 03 shows, from the tables, the streams and a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pandas as pd

from fragmentlab.assembler import RuleSet
from fragmentlab.assembler.rules import CELLS, COLUMNS, DEFAULT_RULES, IDENTITIES, SHIPPED
from fragmentlab.corpus.rules import find_rules
from fragmentlab.disclosure import shown_name
from fragmentlab.errors import InputError
from fragmentlab.qualification.candidates.assessment import assess
from fragmentlab.qualification.candidates.bench import BenchRow, bench
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS
from fragmentlab.qualification.candidates.modelcheck import (
    CHECKED_INVARIANTS,
    MAX_FRAGMENTS,
    Check,
    Finding,
    check_all,
)
from fragmentlab.qualification.candidates.sequences import Steps
from fragmentlab.qualification.runs.sources import open_sources
from fragmentlab.reports.columns import once
from fragmentlab.reports.frame.parameters import names_in
from fragmentlab.reports.show.candidate import REPLAYED, CandidateTables
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Conclusion, ResultDoesNotHold, conclude
from fragmentlab.reports.show.rule_figures import (
    SAYS,
    action_badge,
    cells_df,
    flow_figure,
    grouped,
    met_figure,
    says_in_words,
)
from fragmentlab.reports.show.tables import Badge, Table, badges


@dataclass(frozen=True)
class Bench:
    """The rule sets, the streams under each of them, the searches, and the candidate's assessment.

    ``tables`` are the compared rule sets by the names under which they are shown; ``checks`` likewise.
    """

    tables: dict[str, RuleSet]
    rows: Sequence[BenchRow]
    checks: dict[str, Check]
    candidate: CandidateTables

    def streams_df(self) -> pd.DataFrame:
        """One row per stream.

        Columns: its ``number`` on the bench, ``batch``, ``stream``, ``kind`` of source, ``evidence``,
        ``provider`` and ``fragments``.
        """
        return self.candidate.streams

    @once
    def rulings_df(self) -> pd.DataFrame:
        """One row per stream and rule set or counterfactual.

        Columns: ``rules``, ``outcome``, ``category``, how many ``calls``, and those of ``streams_df``.
        """
        named = {rules.name: name for name, rules in self.tables.items()}
        rows = [
            (number, named.get(rules, rules), ruling.outcome, ruling.category, ruling.calls)
            for number, row in enumerate(self.rows)
            for rules, ruling in row.rulings.items()
        ]
        frame = pd.DataFrame(rows, columns=["number", "rules", "outcome", "category", "calls"])
        frame = frame.astype({"category": "str"}).assign(refused=frame.outcome == "rejected")
        default = frame.query("rules == @DEFAULT_RULES")[["number", "refused"]]
        joined = frame.merge(default, on="number", suffixes=("", "_by_default"))
        return joined.merge(self.streams_df(), on="number")

    @once
    def met_df(self) -> pd.DataFrame:
        """One row per stream and cell of the rule table that it meets.

        Columns: ``identity``, ``column``, how many ``times``, and those of ``streams_df``.
        """
        rows = [
            (number, *cell, times) for number, row in enumerate(self.rows) for cell, times in row.met.items()
        ]
        frame = pd.DataFrame(rows, columns=["number", "identity", "column", "times"])
        return frame.merge(self.streams_df(), on="number")

    def checks_df(self) -> pd.DataFrame:
        """One row per rule set and counterfactual.

        Columns: invariants ``broken``, whether the search was ``closed``, ``states``, ``steps_taken``, and
        how it ``differs`` from the default.
        """
        rows = [
            (name, len(own.findings), own.closed, own.states, own.steps_taken, ", ".join(own.differs))
            for name, own in self.checks.items()
        ]
        return pd.DataFrame(rows, columns=["rules", "broken", "closed", "states", "steps_taken", "differs"])

    def flow(self) -> Figure:
        """The decision flow of the default rule set."""
        return flow_figure(SHIPPED[DEFAULT_RULES], DEFAULT_RULES)

    def grouped_table(self) -> Table:
        """What the figure was drawn from: the default's cells grouped by identity and action."""
        cells = grouped(cells_df(SHIPPED[DEFAULT_RULES]))
        told = cells.assign(action=cells.action.map(action_badge))
        columns = "identity as known identity, says as the fragment says, action as so the table"
        return Table(f"{DEFAULT_RULES}, grouped", told, columns)

    def complete_table(self) -> Table:
        """Every cell of the default rule set."""
        cells = cells_df(SHIPPED[DEFAULT_RULES]).pivot(index="column", columns="identity", values="action")
        told = (
            cells.map(action_badge, na_action="ignore")
            .rename(index=SAYS)
            .reset_index(names="the fragment says")
        )
        note = "A dash: nothing nonempty is known that an ID could equal."
        return Table(f"{DEFAULT_RULES}, complete", told, note=note)

    def other_tables(self) -> Table:
        """The cells in which the other tables are not the default's."""
        default = cells_df(SHIPPED[DEFAULT_RULES])
        others = [cells_df(rules).assign(rules=name) for name, rules in self._compared]
        both = pd.concat([default.head(0).assign(rules=""), *others]).merge(
            default, on=["identity", "column"], suffixes=("", "_of_default")
        )
        keys = ["rules", "identity", "action_of_default", "action"]
        groups = both.query("action != action_of_default").groupby(keys, observed=True, sort=False)
        cells = groups.column.agg(says_in_words).reset_index()
        return Table(
            "Where the other tables differ",
            cells.assign(**cells[["action_of_default", "action"]].map(action_badge)),
            "rules as rule set, identity as known identity, column as the fragment says, "
            f"action_of_default as {DEFAULT_RULES}, action as instead",
            "reject-null is our reconstruction of the older rule, made on 2026-12-01; it is not history.",
        )

    def met_figure(self) -> Figure:
        """Which cells the streams exercise, by evidence."""
        return met_figure({kind: self._counts(self.met_df().query("evidence == @kind")) for kind in REPLAYED})

    def met_table(self) -> Table:
        """The same counts by batch; vector files are taken together."""
        met = self.met_df()
        met = met.assign(batch=met.batch.mask(met.kind == "vectors", "vectors"))
        counts = met.pivot_table(
            index=["identity", "column"], columns="batch", values="times", aggfunc="sum", observed=True
        )
        counts = counts.reindex(index=CELLS, columns=met.batch.unique()).fillna(0).astype(int).reset_index()
        told = counts.assign(column=counts.column.map(SAYS)).set_axis(
            ["known identity", "the fragment says", *counts.columns[2:]], axis="columns"
        )
        note = "A replay is never live evidence. Live counts stand in the runs that made them."
        return Table("Fragments by cell and batch", told, note=note)

    def refused_valid(self) -> Table:
        """The first drift: valid streams that a table refuses although the default accepts them."""
        lost = self.rulings_df().query("refused and not refused_by_default")
        rows = []
        for name, _ in self._compared:
            own = lost.query("rules == @name")
            rows.append([name, *_by_evidence(own), _count(len(own)), _smallest(own)])
        columns = ["rule set", *REPLAYED, "valid streams refused", "for example"]
        return Table("Drift one: refusing what is valid", pd.DataFrame(rows, columns=columns))

    def let_through(self) -> Table:
        """The second drift: what each counterfactual accepts although the default refuses it."""
        through = self.rulings_df().query("not refused and refused_by_default")
        every_null = self.rulings_df().query("rules == 'accept-every-null' and refused").number
        rows = []
        for name, entry in COUNTERFACTUALS.items():
            own = through.query("rules == @name")
            given = own[own.number.isin(every_null)]
            example = _smallest(own if given.empty else given)
            rows.append([name, entry.does, *_by_evidence(own), _count(own.calls.sum()), example])
        columns = ["counterfactual", "it", *REPLAYED, "identities let through", "for example"]
        told = pd.DataFrame(rows, columns=columns)
        note = (
            "Counts by evidence are streams; an identity is a call's. None of these may ever serve execution."
        )
        return Table("Drift two: accepting what must be refused", told, note=note)

    def model(self) -> Table:
        """What the search over all sequences says of each rule set and counterfactual."""
        checks = self.checks_df()
        told = checks.assign(
            broken=badges(checks.broken == 0, "breaks none", "breaks " + checks.broken.astype("str")),
            closed=checks.closed.map({True: "any", False: f"up to {MAX_FRAGMENTS}"}),
            differs=checks.differs.where(checks.differs != ""),
        )
        return Table(
            "Every sequence of fragments, in each of two consecutive responses",
            told,
            "rules as rule set, broken as invariants, closed as fragments, states, "
            f"steps_taken as steps taken, differs as against {DEFAULT_RULES}",
        )

    def counterexamples(self) -> Table:
        """The shortest counterexample of each invariant that something breaks."""
        accepted = {True: Badge("accepted", "bad"), False: Badge("not accepted", "plain")}
        rows = [
            [name, CHECKED_INVARIANTS[found.invariant], _sequence(found), accepted[found.accepted]]
            for name, check in self.checks.items()
            for found in check.findings
        ]
        columns = ["rule set", "what it breaks", "index: the fragment says", "the response is"]
        note = "As vectors: data/vectors/counterexample.json."
        return Table("Shortest counterexamples", pd.DataFrame(rows, columns=columns), note=note)

    def conclusion(self) -> Conclusion:
        """What the data shows and what it does not; fails where the default itself breaks an invariant."""
        if not self.checks[DEFAULT_RULES].safe:
            raise ResultDoesNotHold(f"{DEFAULT_RULES} breaks an invariant")
        return conclude(shows=self._shows(), not_shown=self._not_shown())

    @staticmethod
    def _counts(met: pd.DataFrame) -> pd.DataFrame:
        """Fragments by identity (rows) and column."""
        counts = pd.crosstab(met.identity, met.column, met.times, aggfunc="sum")
        return counts.reindex(index=IDENTITIES, columns=COLUMNS).fillna(0).astype(int)

    @property
    def _compared(self) -> list[tuple[str, RuleSet]]:
        return [(name, rules) for name, rules in self.tables.items() if name != DEFAULT_RULES]

    def _shows(self) -> list[str]:
        streams = self.streams_df()
        kinds = streams.evidence.astype(str).value_counts(sort=False)
        told = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        nulls = self.met_df().query("identity == 'established' and column == 'null'")
        times = nulls.groupby("evidence", observed=True).times.sum().reindex(kinds.index, fill_value=0)
        met = ", ".join(f"{count:,} in {kind} evidence" for kind, count in times.items())
        check = self.checks[DEFAULT_RULES]
        unsafe = sum(not each.safe for each in self.checks.values())
        searched = (
            f"{DEFAULT_RULES} breaks no invariant in any of the {check.sequences:,} sequences of one to "
            f"{MAX_FRAGMENTS} fragments, alone or after another response ({check.steps_taken:,} steps taken)."
        )
        return [
            f"Over {len(streams):,} streams ({told}) a null after an established ID was met: {met}.",
            searched,
            f"{unsafe} of {len(self.checks)} rule sets and counterfactuals break an invariant.",
            self.candidate.verdict().headline,
        ]

    def _not_shown(self) -> list[str]:
        missing = [kind for kind in REPLAYED if kind not in set(self.met_df().evidence)]
        unmet = len(CELLS) - len(self.met_df().groupby(["identity", "column"]))
        return [
            *(f"Anything about {kind} evidence: no stream here is of that kind." for kind in missing),
            *([f"How often {unmet} cells occur: no stream meets them."] if unmet else []),
            "What another gateway does with these bytes: the kit's assembler was tested, not yours.",
            "Two calls sent on one index with one ID or none for the second: no identity rule can see that.",
            "How often a provider sends any of this: controlled streams are made, and recordings are few.",
            "What happened under the older rule: reject-null is a reconstruction, not history.",
        ]


def put_on_the_bench(parameters: SimpleNamespace) -> Bench:
    """Run everything that the notebook shows.

    Parameters: ``rules`` (rule sets with commas, names or files), ``batches`` (batches and vector files or
    folders with commas) and ``candidate`` (a rule set's name or file). Raises InputError for what cannot be
    read or used, and for a rule set that bears the name of another one.
    """
    candidate = find_rules(parameters.candidate)
    tables = _distinct([*map(find_rules, names_in(parameters.rules)), candidate])
    sources = open_sources(names_in(parameters.batches))
    if not sources:
        raise InputError("the parameter batches names no batch and no vector file")
    rows, checks = tuple(bench(sources, tables, COUNTERFACTUALS)), check_all(tables)
    own = [rules for rules in tables if not shown_name(rules.name, "") and rules != candidate]
    names = {rules.name: shown_name(rules.name, "your candidate") for rules in tables}
    names |= {rules.name: f"your rule set {number}" for number, rules in enumerate(own, 1)}
    assessment = assess(candidate, rows, checks[candidate.name])
    return Bench(
        {names[rules.name]: rules for rules in tables},
        rows,
        {names.get(name, name): check for name, check in checks.items()},
        CandidateTables(assessment, names[candidate.name], _streams_df(rows)),
    )


def _streams_df(rows: Iterable[BenchRow]) -> pd.DataFrame:
    """A vector is named where the kit ships its file; a stream of a batch is named by its content."""
    columns = ["batch", "stream", "kind", "evidence", "provider", "fragments"]
    frame = pd.DataFrame([[getattr(row, name) for name in columns] for row in rows], columns=columns)
    own = frame.batch.map(lambda name: not shown_name(name.removeprefix("vectors/"), "")).astype(bool)
    frame = frame.assign(
        batch=frame.batch.mask(own, "your " + frame.kind),
        stream=frame.stream.mask(own & (frame.kind == "vectors"), "one of yours"),
    ).astype({"provider": "str", "evidence": pd.CategoricalDtype(REPLAYED)})
    return frame.rename_axis("number").reset_index()


def _distinct(tables: Iterable[RuleSet]) -> list[RuleSet]:
    found: dict[str, RuleSet] = {DEFAULT_RULES: SHIPPED[DEFAULT_RULES]}
    for rules in tables:
        known = SHIPPED.get(rules.name, found.setdefault(rules.name, rules))
        if rules.name in COUNTERFACTUALS or rules != known:
            raise InputError("a rules file has the name of another rule set; give it a name of its own")
    return list(found.values())


def _by_evidence(streams: pd.DataFrame) -> list[int]:
    return [int((streams.evidence == kind).sum()) for kind in REPLAYED]


def _smallest(streams: pd.DataFrame) -> str | None:
    """The stream with the fewest fragments: the easiest to look at."""
    first = streams.sort_values(["fragments", "stream"], kind="stable").stream.head(1)
    return None if first.empty else str(first.iloc[0])


def _count(count: int) -> Badge:
    return Badge(f"{count:,}", "bad") if count else Badge("0", "ok")


def _sequence(found: Finding) -> str:
    return "; next response ".join(_steps(steps) for steps in (found.earlier, found.steps) if steps)


def _steps(steps: Steps) -> str:
    return ", ".join(f"{step.index}: {SAYS.get(step.says, f'ID {step.says}')}" for step in steps)
