"""Why one stream was refused: everything that notebook 01 shows, computed from its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from fragmentlab.assembler import CATEGORIES, SHIPPED, Fault, Result, RuleSet
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.recordings import stream_of_file
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import NameAliases, refuse_private, shown_name
from fragmentlab.errors import InputError
from fragmentlab.reports.frame.catalog import shown_rules
from fragmentlab.reports.minimized import VectorText, minimized
from fragmentlab.reports.raw import raw_values
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.fragment_runs import says
from fragmentlab.reports.show.prose import Callout, Conclusion, Lists, conclude
from fragmentlab.reports.show.tables import Badge, Cell, Table
from fragmentlab.reports.show.timeline import timeline_figure, timeline_table

CATEGORIES_EXPLAINED = 4
_EVIDENCE = {
    "controlled": "It is controlled evidence: made by this kit, it tells nothing of any provider.",
    "captured": "It is captured evidence: a recording replayed, not an answer of a live server.",
    "imported": "It is imported evidence: bytes from someone's log, as they were kept there.",
    "live": "It is live evidence: a real server answered during the run that recorded it.",
}
_ACCEPTED = {"accepted": "accepted", "no_calls": "no calls"}


@dataclass(frozen=True)
class Investigation:
    """One stream under the chosen rules, and under every shipped rule set for comparison."""

    stream: Stream
    batch: str | None
    rules: RuleSet
    result: Result
    others: dict[str, Result]
    reveal: bool

    def source(self) -> Table:
        """Where the stream comes from, by public names and aliases."""
        names, stream = NameAliases(), self.stream
        known = "unknown" if stream.tools is None else f"{len(stream.tools)} known"
        rows: list[tuple[str, Cell]] = [
            ("stream", stream.shown_id),
            ("batch", self.batch or "none, a file"),
            ("evidence", stream.evidence),
            ("provider", names.show("provider", stream.provider)),
            ("server", names.show("server", stream.server)),
            ("model", names.show("model", stream.model)),
            ("recorded as", stream.fidelity),
            ("transport ended", stream.end),
            ("tools", known),
            ("bytes", f"{len(stream.body):,}"),
            ("fragments", f"{self.result.counts['fragments']:,}"),
        ]
        return Table(
            "Public names and aliases only", ["what", "value"], [row for row in rows if row[1] is not None]
        )

    def outcome(self) -> Callout:
        """The outcome in one sentence, where it was decided and what the category means."""
        result = self.result
        if result.outcome != "rejected":
            calls = result.counts["calls"]
            headline = f"Not refused: {_calls(calls)} may go on to authorization under {self._rules}."
            return Callout(
                "ok", headline if calls else f"Not refused: the stream proposes no call under {self._rules}."
            )
        fault = result.faults[0]
        later = len(result.faults) - 1 + result.counts["omitted_faults"]
        details = [f"It was decided {_where(fault)}.", CATEGORIES[fault.category].meaning]
        if later:
            details.append(f"{later:,} more {'fault was' if later == 1 else 'faults were'} found after it.")
        return Callout("bad", f"Refused as {fault.category} under {self._rules}.", details)

    def figure(self) -> Figure:
        """The fragments as lanes by index."""
        return timeline_figure(self.result.timeline, self.result.faults)

    def timeline(self) -> Table:
        """The table that the figure was drawn from."""
        return timeline_table(self.result.timeline, self.result.counts["omitted_rows"])

    def faults(self) -> Table:
        """Every fault of the stream in the order of checks, like ones joined; the first one decides."""
        columns = ["category", "times", "event", "fragment", "call", "says", "identity", "also"]
        lines = [_fault_line(group) for group in _joined(self.result.faults)]
        told = [i for i in range(len(columns)) if any(line[i] is not None for line in lines)]
        return Table(
            "In the order of checks; the first one decides the outcome",
            [columns[i] for i in told or range(2)],
            [[line[i] for i in told] for line in lines],
        )

    def next_steps(self) -> Lists:
        """Likely causes and what to do next, for each category found, the deciding one first."""
        found = list(dict.fromkeys(fault.category for fault in self.result.faults))
        lists: list[tuple[str, Sequence[str | tuple[str, str]]]] = []
        for category in found[:CATEGORIES_EXPLAINED]:
            entry = CATEGORIES[category]
            lists.append((f"{category}: likely causes", entry.causes))
            lists.append(
                (f"{category}: what to do next", [*entry.next_steps, *[(link, link) for link in entry.links]])
            )
        if more := found[CATEGORIES_EXPLAINED:]:
            lists.append(("For the rest", [f"fragmentlab explain {category}" for category in more]))
        return Lists(lists or [("Nothing to do", ["No rule was broken."])])

    def rule_sets(self) -> Table:
        """The outcome of the same bytes under every rule set."""
        return Table(
            "The same bytes under every rule set",
            ["rule set", "outcome", "category", "faults", "may serve execution"],
            [_rules_line(name, result) for name, result in self.others.items()],
            note="reject-null is a reconstruction of the rule before the repair, not history.",
        )

    def minimized(self) -> VectorText | Callout:
        """The smallest stream that is refused for the same reason, scrubbed, as a vector file."""
        return minimized(self.stream, self.rules)

    def raw(self) -> Lists | Callout:
        """Raw values, only when the parameter ``reveal`` asked for them."""
        if not self.reveal:
            return Callout("plain", "Not shown.", ["Set the parameter reveal to true to see them here."])
        return raw_values(self.stream, self.result)

    def conclusion(self) -> Conclusion:
        """What the data shows and what it does not."""
        return conclude(shows=list(self._shows()), not_shown=list(self._does_not_show()))

    @property
    def _rules(self) -> str:
        return shown_rules(self.rules.name)

    def _shows(self) -> Iterator[str]:
        result = self.result
        if result.outcome == "rejected":
            where = _where(result.faults[0])
            yield f"Under {self._rules} the stream is refused as {result.category}, {where}."
        else:
            yield f"Under {self._rules} the stream is not refused."
        nulls = result.counts["null_continuations"]
        yield f"A null ID after an established one was met {nulls:,} {'time' if nulls == 1 else 'times'}."
        verdicts = {(other.outcome, other.category) for other in self.others.values()}
        if len(verdicts) == 1:
            yield "Every rule set gives the same outcome: no choice among them changes it."
        elif len({outcome for outcome, _ in verdicts}) == 1:
            yield "Every rule set refuses it, but not for the same reason: " + self._by_rules() + "."
        else:
            yield "The rule set decides: " + self._by_rules() + "."

    def _by_rules(self) -> str:
        return ", ".join(
            f"{shown_rules(name)} {other.category or _ACCEPTED[other.outcome]}"
            for name, other in self.others.items()
        )

    def _does_not_show(self) -> Iterator[str]:
        yield "What another client does with these bytes: the kit's assembler was tested, not yours."
        yield _EVIDENCE[self.stream.evidence]
        if self.stream.end == "unknown":
            yield "How the transport ended: unsaid by the recording, so a lost connection looks like an end."
        if self.stream.tools is None:
            yield "Whether the tools exist: they are unknown, so names were not checked."
        if self.result.outcome == "accepted":
            yield "Whether the host would authorize the calls: that is decided after assembly."
        if not self.rules.executable:
            yield "Anything that may be executed: this rule set breaks an invariant and only measures."


def investigate(parameters: SimpleNamespace) -> Investigation:
    """Load the stream that the parameters name and assemble it in diagnosing mode.

    Parameters: ``file`` (a path; ``stream`` picks one of several by its number) or ``batch`` (a folder or a
    name) with ``stream`` (an id; empty: the first one refused), ``tools`` (names with commas; empty: as
    recorded), ``rules`` (a name or a file) and ``reveal``. Raises InputError for what cannot be read, and
    where a batch holds no refused stream.
    """
    rules = find_rules(parameters.rules)
    tools = tuple(name.strip() for name in parameters.tools.split(",") if name.strip()) or None
    if parameters.file:
        number = parameters.stream if parameters.stream.isdecimal() else ""
        batch, stream = None, stream_of_file(parameters.file, number)
    else:
        opened = refuse_private(open_batch(parameters.batch))
        batch = shown_name(opened.name, "one of your own")
        chosen = parameters.stream
        stream = opened.stream(chosen) if chosen else _first_refused(opened.streams(), rules, tools)
    if tools is not None:
        stream = replace(stream, tools=tools)
    sets = {**SHIPPED, rules.name: rules}
    results = {name: stream.assemble(rule_set, diagnose=True) for name, rule_set in sets.items()}
    return Investigation(stream, batch, rules, results[rules.name], results, parameters.reveal)


def _first_refused(streams: Iterator[Stream], rules: RuleSet, tools: tuple[str, ...] | None) -> Stream:
    for stream in streams:
        result = stream.assemble(rules, tools=tools)
        if result.outcome == "rejected":
            return stream
    raise InputError(
        "no stream of this batch is refused under these rules; name one with the parameter stream"
    )


def _calls(count: int) -> str:
    return "one call" if count == 1 else f"{count} calls"


def _where(fault: Fault) -> str:
    ordinals = {"event": fault.event, "fragment": fault.fragment, "call": fault.call}
    places = [f"{name} {number:,}" for name, number in ordinals.items() if number is not None]
    where = f"at {', '.join(places)}" if places else "at the end of the stream"
    if fault.previous_identity is None:
        return where
    said, identity = says(fault.incoming_kind), fault.previous_identity
    return f"{where}: the fragment says {said} while the identity is {identity}"


def _joined(faults: Sequence[Fault]) -> list[list[Fault]]:
    groups: dict[tuple[object, ...], list[Fault]] = {}
    for fault in faults:
        key = (
            fault.category,
            fault.incoming_kind,
            fault.previous_identity,
            fault.next_identity,
            str(fault.flags),
        )
        groups.setdefault(key, []).append(fault)
    return list(groups.values())


def _fault_line(group: list[Fault]) -> list[Cell]:
    first = group[0]
    identity = first.previous_identity
    if identity != first.next_identity:
        identity = f"{identity} → {first.next_identity}"
    return [
        Badge(first.category, "bad"),
        len(group),
        *(_span([getattr(fault, name) for fault in group]) for name in ("event", "fragment", "call")),
        None if first.incoming_kind is None else says(first.incoming_kind),
        identity,
        ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in first.flags.items()) or None,
    ]


def _span(numbers: list[int | None]) -> str | None:
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    return f"{min(known)}" if min(known) == max(known) else f"{min(known)} to {max(known)}"


def _rules_line(name: str, result: Result) -> list[Cell]:
    outcome = (
        Badge("refused", "bad") if result.outcome == "rejected" else Badge(_ACCEPTED[result.outcome], "ok")
    )
    faults = len(result.faults) + result.counts["omitted_faults"]
    return [shown_rules(name), outcome, result.category, faults, "yes" if result.executable else "never"]
