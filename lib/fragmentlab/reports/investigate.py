"""Why one stream was refused: everything that notebook 01 shows, computed from its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from fragmentlab.assembler import CATEGORIES, Fault, Result, RuleSet, explain
from fragmentlab.assembler.explanations import remarks
from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.minimize import minimized_vector
from fragmentlab.corpus.recordings import stream_of_file
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.vectors import load_vectors, vector_paths
from fragmentlab.disclosure import KINDS, refuse_private, shown_name
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.reports.columns import once
from fragmentlab.reports.frame.parameters import names_in
from fragmentlab.reports.frames import (
    AssembledStream,
    StreamFrames,
    assemble_all,
    fragments_df,
    stream_frames,
)
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Callout, Conclusion, Lists, Verbatim, conclude
from fragmentlab.reports.show.tables import Badge, Table, badges
from fragmentlab.reports.show.timeline import (
    change_in_words,
    kind_in_words,
    timeline_figure,
    timeline_table,
)

EXAMPLE = ("captured-local", "s-26b539503f2f028b")
"""The batch and stream that are shown where no parameter names another."""
EXPLAINED = 4
"""Faults whose causes and next steps are listed."""
LARGEST_MINIMIZED = 1 << 20
"""Bytes; larger streams are minimized on the command line, where waiting shows."""
CHARACTERS_SHOWN = 4000
_EVIDENCE = {
    "controlled": "It is controlled evidence: made by this kit, it tells nothing of any provider.",
    "captured": "It is captured evidence: a recording replayed, not an answer of a live server.",
    "imported": "It is imported evidence: bytes from someone's log, as they were kept there.",
    "live": "It is live evidence: a real server answered during the run that recorded it.",
}
_ACCEPTED = {"accepted": "accepted", "no_calls": "no calls"}
_LIKENESS = ["category", "incoming_kind", "previous_identity", "next_identity", "flags"]


@dataclass(frozen=True)
class Investigation:
    """One stream under the chosen rules, and under every shipped rule set for comparison.

    ``rules`` is the name of the chosen ones, as it is shown.
    """

    found: AssembledStream
    rules: str
    rule_set: RuleSet
    reveal: bool

    @property
    def result(self) -> Result:
        return self.found.results[self.rules]

    @once
    def _frames(self) -> StreamFrames:
        return stream_frames([self.found])

    def streams_df(self) -> pd.DataFrame:
        """The stream as a row of ``fragmentlab.reports.frames.streams_df``."""
        return self._frames().streams

    def results_df(self) -> pd.DataFrame:
        """One row per rule set, with the columns of ``fragmentlab.reports.frames.results_df``."""
        return self._frames().results

    def faults_df(self) -> pd.DataFrame:
        """One row per rule set and fault, with the columns of ``fragmentlab.reports.frames.faults_df``."""
        return self._frames().faults

    def timeline_df(self) -> pd.DataFrame:
        """One row per fragment under the chosen rules: ``fragmentlab.reports.frames.fragments_df``."""
        return fragments_df(self.result)

    def source(self) -> Table:
        """Where the stream comes from, by public names and aliases."""
        [row] = self.streams_df().astype(object).itertuples(index=False)
        facts = {
            **{name: getattr(row, name) for name in ("stream", "batch", "evidence", *KINDS)},
            "recorded as": row.fidelity,
            "transport ended": row.end,
            "tools": "unknown" if pd.isna(row.tools) else f"{row.tools} known",
            "bytes": f"{row.bytes:,}",
            "fragments": f"{row.fragments:,}",
        }
        told = pd.Series(facts, name="value").dropna().rename_axis("what").reset_index()
        return Table("Public names and aliases only", told)

    def outcome(self) -> Callout:
        """The outcome in one sentence, where it was decided, and what else a reader should know."""
        result = self.result
        if result.outcome != "rejected":
            calls = result.counts["calls"]
            may = f"{'one call' if calls == 1 else f'{calls} calls'} may go on to authorization"
            told = may if calls else "the stream proposes no call"
            return Callout("ok", f"Not refused: {told} under {self.rules}.", remarks(result))
        fault = result.faults[0]
        later = len(result.faults) - 1 + result.counts["omitted_faults"]
        details = [f"It was decided {_where(fault)}.", CATEGORIES[fault.category].meaning, *remarks(result)]
        if later:
            details.append(f"{later:,} more {'fault was' if later == 1 else 'faults were'} found after it.")
        point = explain(fault, result).headline.rstrip(".")
        point = "" if point == CATEGORIES[fault.category].meaning.rstrip(".") else f": {point}"
        return Callout("bad", f"Refused as {fault.category} under {self.rules}{point}.", details)

    def figure(self) -> Figure:
        """The fragments as lanes by index."""
        return timeline_figure(self.timeline_df(), self.result.faults)

    def timeline(self) -> Table:
        """The table that the figure was drawn from."""
        return timeline_table(self.timeline_df(), self.result.counts["omitted_rows"])

    def faults(self) -> Table:
        """Every fault in the order of checks, like ones joined; the first one decides."""
        own = self.faults_df().query("rules == @self.rules")
        first = own.drop_duplicates(_LIKENESS)
        groups = own.groupby(_LIKENESS, dropna=False, sort=False, observed=True)
        told = pd.DataFrame(
            {
                "category": [Badge(category, "bad") for category in first.category],
                "times": groups.size().to_numpy(),
                **{name: _spans(groups[name]) for name in ("event", "fragment", "call")},
                "says": first.incoming_kind.astype(object).map(kind_in_words, na_action="ignore").to_numpy(),
                "identity": list(map(change_in_words, first.previous_identity, first.next_identity)),
                "also": first["flags"].map(_flags_in_words).to_numpy(),
            }
        )
        told["identity"] = told.identity.where(first.previous_identity.notna().to_numpy())
        kept = told.columns[:2].union(told.dropna(axis=1, how="all").columns, sort=False)
        return Table("In the order of checks; the first one decides the outcome", told[list(kept)])

    def next_steps(self) -> Lists:
        """Likely causes and what to do next, the deciding fault first.

        Faults that follow from it are not explained again.
        """
        explained = {
            (fault.category, told.headline): told
            for fault in self.result.faults
            if not (told := explain(fault, self.result)).follows
        }
        lists: list[tuple[str, Sequence[str | tuple[str, str]]]] = []
        for (category, _), told in list(explained.items())[:EXPLAINED]:
            links = [(link, link) for link in CATEGORIES[category].links]
            lists.append((f"{category}: likely causes", told.causes))
            lists.append((f"{category}: what to do next", [*told.next_steps, *links]))
        more = dict.fromkeys(f"fragmentlab explain {category}" for category, _ in list(explained)[EXPLAINED:])
        lists.append(("For the rest", list(more)))
        return Lists(lists if explained else [("Nothing to do", ["No rule was broken."])])

    def rule_sets(self) -> Table:
        """The outcome of the same bytes under every rule set."""
        results = self.results_df()
        words = results.outcome.astype(object).map(_ACCEPTED)
        return Table(
            "The same bytes under every rule set",
            results.assign(outcome=badges(words.notna(), words, "refused")),
            "rules as rule set, outcome, category, faults, executable as may serve execution",
            "reject-null is a reconstruction of the rule before the repair, not history.",
        )

    def minimized(self) -> Verbatim | Callout:
        """The smallest stream that is refused for the same reason, scrubbed, as a vector file."""
        try:
            if self.rule_set.name not in SHIPPED:
                raise InputError("a vector names shipped rule sets only")
            if len(self.found.stream.body) > LARGEST_MINIMIZED:
                raise InputError("the stream is large, use `fragmentlab minimize`")
            vector = minimized_vector(self.found.stream, rules=self.rule_set)
        except InputError as error:
            return Callout("plain", f"Not minimized: {error}.")
        return Verbatim("Vector file", json.dumps(vector, indent=2))

    def raw(self) -> Lists | Callout:
        """Raw values, only when the parameter ``reveal`` asked for them: calls, or else the recording."""
        if not self.reveal:
            return Callout("plain", "Not shown.", ["Set the parameter reveal to true to see them here."])
        if calls := self.result.calls:
            told = {
                f"Call on index {call.index}": [call.id, call.name, _cut(call.arguments)] for call in calls
            }
            return Lists(told.items())
        text = _cut(self.found.stream.body.decode("utf-8", "backslashreplace"))
        return Lists([("The recording, as received", [line for line in text.splitlines() if line.strip()])])

    def conclusion(self) -> Conclusion:
        """What the data shows and what it does not."""
        return conclude(shows=list(self._shows()), not_shown=list(self._does_not_show()))

    def _shows(self) -> Iterator[str]:
        result = self.result
        if result.outcome == "rejected":
            where = _where(result.faults[0])
            yield f"Under {self.rules} the stream is refused as {result.category}, {where}."
        else:
            yield f"Under {self.rules} the stream is not refused."
        nulls = result.counts["null_continuations"]
        yield f"A null ID after an established one was met {nulls:,} {'time' if nulls == 1 else 'times'}."
        results = self.results_df().astype(object)
        reasons = results.category.where(results.category.notna(), results.outcome.map(_ACCEPTED))
        by_rules = ", ".join(results.rules + " " + reasons)
        if len(results[["outcome", "category"]].drop_duplicates()) == 1:
            yield "Every rule set gives the same outcome: no choice among them changes it."
        elif results.outcome.nunique() == 1:
            yield f"Every rule set refuses it, but not for the same reason: {by_rules}."
        else:
            yield f"The rule set decides: {by_rules}."

    def _does_not_show(self) -> Iterator[str]:
        yield "What another client does with these bytes: the kit's assembler was tested, not yours."
        yield _EVIDENCE[self.found.stream.evidence]
        if self.found.stream.end == "unknown":
            yield "How the transport ended: unsaid by the recording, so a lost connection looks like an end."
        if self.found.stream.tools is None:
            yield "Whether the tools exist: they are unknown, so names were not checked."
        if self.result.outcome == "accepted":
            yield "Whether the host would authorize the calls: that is decided after assembly."
        if not self.rule_set.executable:
            yield "Anything that may be executed: this rule set breaks an invariant and only measures."


def investigate(parameters: SimpleNamespace) -> Investigation:
    """Load the stream that the parameters name and assemble it in diagnosing mode.

    Parameters: ``file`` (a path; ``stream`` picks one of several by its number), or ``batch`` (a batch or a
    vector file, by name or path) and ``stream`` (an id; empty: the first one refused), ``tools`` (names with
    commas; empty: as recorded), ``rules`` (a name or a file) and ``reveal``. A vector is found by its id
    alone; without any of these EXAMPLE is shown. Raises InputError for what cannot be read or found, and
    where a batch holds no refused stream.
    """
    rules = find_rules(parameters.rules)
    tools = tuple(names_in(parameters.tools)) or None
    named = parameters.file or parameters.stream or not parameters.batch
    for ids, recorded in _candidates(parameters):
        stream = replace(recorded, tools=tools or recorded.tools)
        if named or stream.assemble(rules).outcome == "rejected":
            [found] = assemble_all([stream], {**SHIPPED, rules.name: rules}.values())
            found = replace(found, ids={**found.ids, **ids})
            return Investigation(found, shown_name(rules.name, "your rule set"), rules, parameters.reveal)
    raise InputError(
        "no stream of this batch is refused under these rules; name one with the parameter stream"
    )


def _candidates(parameters: SimpleNamespace) -> Iterator[tuple[Mapping[str, Any], Stream]]:
    """Streams to choose from with their ids as they may be shown; one where the parameters name one."""
    batch, wanted = parameters.batch, parameters.stream
    if parameters.file:
        if batch:
            raise InputError("give a file or a batch, not both")
        yield {"stream": "a file of yours"}, stream_of_file(parameters.file, wanted)
    elif paths := _vector_files(batch, wanted):
        yield from _vectors(paths, wanted)
    else:
        opened = refuse_private(open_batch(batch or EXAMPLE[0]))
        wanted = wanted or ("" if batch else EXAMPLE[1])
        for stream in [opened.stream(wanted)] if wanted else opened.streams():
            yield {"batch": shown_name(opened.name, "one of your own"), "stream": stream.shown_id}, stream


def _vector_files(batch: str, wanted: str) -> list[Path]:
    """The vector files that are meant; none where the names mean a batch."""
    if not batch:
        return vector_paths([data_folder("vectors")]) if "/" in wanted else []
    return [path for path in (Path(batch), data_folder(f"{batch}.json")) if path.is_file()][:1]


def _vectors(paths: Sequence[Path], wanted: str) -> Iterator[tuple[Mapping[str, Any], Stream]]:
    vectors = [(path, vector) for path in paths for vector in load_vectors(path).vectors]
    chosen = [(path, vector) for path, vector in vectors if wanted in ("", vector.id)]
    if not chosen:
        raise InputError("no vector has that id; `fragmentlab vectors` names those of a file")
    for path, vector in chosen:
        ours = path.resolve().parent == data_folder("vectors")
        shown = {"batch": f"vectors/{path.stem}", "stream": vector.id}
        yield shown if ours else {"stream": "a vector of yours"}, vector.stream


def _where(fault: Fault) -> str:
    ordinals = {"event": fault.event, "fragment": fault.fragment, "call": fault.call}
    places = [f"{name} {number:,}" for name, number in ordinals.items() if number is not None]
    where = f"at {', '.join(places)}" if places else "at the end of the stream"
    if fault.previous_identity is None:
        return where
    kind, identity = kind_in_words(fault.incoming_kind), fault.previous_identity
    return f"{where}: the fragment says {kind} while the identity is {identity}"


def _spans(numbers: Any) -> list[str | None]:
    """First and last ordinal of each group of faults."""
    return [
        None if pd.isna(low) else f"{low}" if low == high else f"{low} to {high}"
        for low, high in zip(numbers.min(), numbers.max(), strict=True)
    ]


def _flags_in_words(flags: str) -> str | None:
    named = (f"{name.replace('_', ' ')}: {value}" for name, value in json.loads(flags).items())
    return ", ".join(named) or None


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS_SHOWN else f"{text[:CHARACTERS_SHOWN]}… ({len(text):,} characters)"
