"""What each rule set lets through: what notebook 03 shows, from the tables, the streams and a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

from fragmentlab.assembler import CELLS, COLUMNS, DEFAULT_RULES, IDENTITIES, IMPOSSIBLE, SHIPPED, RuleSet
from fragmentlab.corpus.rules import find_rules
from fragmentlab.errors import InputError
from fragmentlab.files import kit_folder
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
from fragmentlab.reports.candidate import Candidate
from fragmentlab.reports.rule_names import (
    EVIDENCE,
    action_cell,
    shown_batch,
    shown_rules,
    shown_stream,
    smallest,
)
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Conclusion, ResultDoesNotHold, conclude
from fragmentlab.reports.show.rule_figures import SAYS, flow_figure, grouped, heat_map, said
from fragmentlab.reports.show.tables import Badge, Cell, Table


@dataclass(frozen=True)
class Bench:
    """The rule sets, the streams under each of them, the model searches and the candidate's assessment."""

    tables: tuple[RuleSet, ...]
    rows: tuple[BenchRow, ...]
    checks: dict[str, Check]
    candidate: Candidate

    def flow(self) -> Figure:
        """The decision flow of the default rule set."""
        return flow_figure(SHIPPED[DEFAULT_RULES], DEFAULT_RULES)

    def grouped_table(self) -> Table:
        """What the figure was drawn from: the default's cells grouped by identity and action."""
        rows: list[list[Cell]] = [
            [identity, said(columns), action_cell(action)]
            for identity, action, columns in grouped(SHIPPED[DEFAULT_RULES])
        ]
        return Table(
            f"{DEFAULT_RULES}, grouped", ["known identity", "the fragment says", "so the table"], rows
        )

    def complete_table(self) -> Table:
        """Every cell of the default rule set."""
        rules = SHIPPED[DEFAULT_RULES]
        rows: list[list[Cell]] = [
            [
                SAYS[column],
                *(
                    None if (i, column) in IMPOSSIBLE else action_cell(rules.action(i, column))
                    for i in IDENTITIES
                ),
            ]
            for column in COLUMNS
        ]
        note = "A dash: nothing nonempty is known that an ID could equal."
        return Table(f"{DEFAULT_RULES}, complete", ["the fragment says", *IDENTITIES], rows, note=note)

    def other_tables(self) -> Table:
        """The cells in which the other tables are not the default's."""
        default = SHIPPED[DEFAULT_RULES]
        groups: dict[tuple[str, str, str, str], list[str]] = {}
        for rules in self._compared():
            for identity, column in CELLS:
                before, after = default.action(identity, column), rules.action(identity, column)
                if before != after:
                    groups.setdefault((rules.name, identity, before, after), []).append(column)
        rows: list[list[Cell]] = [
            [shown_rules(name), identity, said(columns), action_cell(before), action_cell(after)]
            for (name, identity, before, after), columns in groups.items()
        ]
        note = "reject-null is our reconstruction of the older rule, made on 2026-12-01; it is not history."
        head = ["rule set", "known identity", "the fragment says", DEFAULT_RULES, "instead"]
        return Table("Where the other tables differ", head, rows, note=note)

    def met_figure(self) -> Figure:
        """Which cells the streams exercise, by evidence."""
        return heat_map(self._met)

    def met_table(self) -> Table:
        """The same counts by batch; vector files are taken together."""
        batches = list(dict.fromkeys(shown_batch(row) for row in self.rows))
        counts: Counter[tuple[str, str, str]] = Counter()
        for row in self.rows:
            for (identity, column), count in row.met.items():
                counts[shown_batch(row), identity, column] += count
        rows: list[list[Cell]] = [
            [identity, SAYS[column], *(counts[batch, identity, column] for batch in batches)]
            for identity, column in CELLS
        ]
        note = "A replay is never live evidence. Live counts stand in the runs that made them."
        return Table(
            "Fragments by cell and batch", ["known identity", "the fragment says", *batches], rows, note=note
        )

    def refused_valid(self) -> Table:
        """The first drift: valid streams that a table refuses although the default accepts them."""
        rows: list[list[Cell]] = []
        for rules in self._compared():
            lost = [
                row
                for row in self.rows
                if self._refuses(row, rules.name) and not self._refuses(row, DEFAULT_RULES)
            ]
            kinds = Counter(row.evidence for row in lost)
            example = smallest(lost)
            rows.append(
                [
                    shown_rules(rules.name),
                    *(kinds[e] for e in EVIDENCE),
                    _count(len(lost)),
                    shown_stream(example),
                ]
            )
        columns = ["rule set", *EVIDENCE, "valid streams refused", "for example"]
        return Table("Drift one: refusing what is valid", columns, rows)

    def let_through(self) -> Table:
        """The second drift: what each counterfactual accepts although the default refuses it."""
        rows: list[list[Cell]] = []
        for name, entry in COUNTERFACTUALS.items():
            through = [
                row for row in self.rows if self._refuses(row, DEFAULT_RULES) and not self._refuses(row, name)
            ]
            given = [row for row in through if self._refuses(row, "accept-every-null")]
            kinds = Counter(row.evidence for row in through)
            identities = sum(row.rulings[name].calls for row in through)
            example = shown_stream(smallest(given or through))
            rows.append([name, entry.does, *(kinds[e] for e in EVIDENCE), _count(identities), example])
        columns = ["counterfactual", "it", *EVIDENCE, "identities let through", "for example"]
        note = (
            "Counts by evidence are streams; an identity is a call's. None of these may ever serve execution."
        )
        return Table("Drift two: accepting what must be refused", columns, rows, note=note)

    def model(self) -> Table:
        """What the search over all sequences says of each rule set and counterfactual."""
        rows: list[list[Cell]] = []
        for name, check in self.checks.items():
            verdict = (
                Badge("breaks none", "ok") if check.safe else Badge(f"breaks {len(check.findings)}", "bad")
            )
            reach = "any" if check.closed else f"up to {MAX_FRAGMENTS}"
            rows.append(
                [
                    shown_rules(name),
                    verdict,
                    reach,
                    check.states,
                    check.steps_taken,
                    ", ".join(check.differs) or None,
                ]
            )
        columns = ["rule set", "invariants", "fragments", "states", "steps taken", f"against {DEFAULT_RULES}"]
        return Table("Every sequence of fragments, in each of two consecutive responses", columns, rows)

    def counterexamples(self) -> Table:
        """The shortest counterexample of each invariant that something breaks."""
        rows: list[list[Cell]] = [
            [
                shown_rules(name),
                CHECKED_INVARIANTS[f.invariant],
                _told(f),
                Badge("accepted" if f.accepted else "not accepted", "bad" if f.accepted else "plain"),
            ]
            for name, check in self.checks.items()
            for f in check.findings
        ]
        note = "As vectors: data/vectors/counterexample.json."
        return Table(
            "Shortest counterexamples",
            ["rule set", "what it breaks", "index: the fragment says", "the response is"],
            rows,
            note=note,
        )

    def conclusion(self) -> Conclusion:
        """What the data shows and what it does not; fails where the default itself breaks an invariant."""
        if not self.checks[DEFAULT_RULES].safe:
            raise ResultDoesNotHold(f"{DEFAULT_RULES} breaks an invariant")
        return conclude(shows=self._shows(), not_shown=self._not_shown())

    @cached_property
    def _met(self) -> dict[str, Counter[tuple[str, str]]]:
        met: dict[str, Counter[tuple[str, str]]] = {evidence: Counter() for evidence in EVIDENCE}
        for row in self.rows:
            met[row.evidence].update(row.met)
        return met

    def _shows(self) -> list[str]:
        evidence = Counter(row.evidence for row in self.rows)
        told = ", ".join(f"{count:,} {kind}" for kind, count in evidence.items())
        nulls = {e: cells["established", "null"] for e, cells in self._met.items() if e in evidence}
        met = ", ".join(f"{count:,} in {kind} evidence" for kind, count in nulls.items())
        check = self.checks[DEFAULT_RULES]
        unsafe = [name for name, each in self.checks.items() if not each.safe]
        searched = (
            f"{DEFAULT_RULES} breaks no invariant in any of the {check.sequences:,} sequences of one to "
            f"{MAX_FRAGMENTS} fragments, alone or after another response ({check.steps_taken:,} steps taken)."
        )
        return [
            f"Over {len(self.rows):,} streams ({told}) a null after an established ID was met: {met}.",
            searched,
            f"{len(unsafe)} of {len(self.checks)} rule sets and counterfactuals break an invariant.",
            self.candidate.verdict().headline,
        ]

    def _not_shown(self) -> list[str]:
        missing = [e for e in EVIDENCE if not sum(self._met[e].values())]
        unmet = sum(not any(self._met[e][cell] for e in EVIDENCE) for cell in CELLS)
        return [
            *(f"Anything about {e} evidence: no stream here is of that kind." for e in missing),
            *([f"How often {unmet} cells occur: no stream meets them."] if unmet else []),
            "What another gateway does with these bytes: the kit's assembler was tested, not yours.",
            "Two calls sent on one index with one ID or none for the second: no identity rule can see that.",
            "How often a provider sends any of this: controlled streams are made, and recordings are few.",
            "What happened under the older rule: reject-null is a reconstruction, not history.",
        ]

    def _compared(self) -> list[RuleSet]:
        return [rules for rules in self.tables if rules.name != DEFAULT_RULES]

    @staticmethod
    def _refuses(row: BenchRow, name: str) -> bool:
        return row.rulings[name].refused


def put_on_the_bench(parameters: SimpleNamespace) -> Bench:
    """Run everything that the notebook shows.

    Parameters: ``rules`` (rule sets with commas, names or files), ``batches`` (batches and vector files or
    folders with commas) and ``candidate`` (a rule set's name or file). Raises InputError for what cannot be
    read or used, and for a rule set that bears the name of another one.
    """
    candidate = _rules(parameters.candidate)
    tables = _distinct([*map(_rules, _listed(parameters.rules)), candidate])
    sources = open_sources([_place(name, "batches") for name in _listed(parameters.batches)])
    if not sources:
        raise InputError("the parameter batches names no batch and no vector file")
    rows = bench(sources, tables, COUNTERFACTUALS)
    checks = check_all(tables)
    return Bench(
        tuple(tables), tuple(rows), checks, Candidate(assess(candidate, rows, checks[candidate.name]))
    )


def _distinct(tables: Sequence[RuleSet]) -> list[RuleSet]:
    found: dict[str, RuleSet] = {DEFAULT_RULES: SHIPPED[DEFAULT_RULES]}
    for rules in tables:
        if rules.name in COUNTERFACTUALS or found.setdefault(rules.name, rules) != rules:
            raise InputError("a rules file has the name of another rule set; give it a name of its own")
        if rules.name in SHIPPED and rules != SHIPPED[rules.name]:
            raise InputError("a rules file has the name of a shipped rule set; give it a name of its own")
    return list(found.values())


def _listed(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _rules(name: str) -> RuleSet:
    return find_rules(name if name in SHIPPED else str(_place(name, "rules")))


def _place(name: str, kind: str) -> Path:
    """A path as given, else in the checkout, else in the checkout's folder of that kind; else as given."""
    places = (Path(name), kit_folder() / name, kit_folder() / "data" / kind / name)
    return next((place for place in places if place.exists()), Path(name))


def _count(count: int) -> Cell:
    return Badge(f"{count:,}", "bad") if count else Badge("0", "ok")


def _told(finding: Finding) -> str:
    before = f"{_steps(finding.earlier)}; next response " if finding.earlier else ""
    return before + _steps(finding.steps)


def _steps(steps: Steps) -> str:
    return ", ".join(f"{step.index}: {SAYS.get(step.says, f'ID {step.says}')}" for step in steps)
