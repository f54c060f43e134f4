"""Which wire shapes each source emits, which rule sets refuse them, and what is worth reporting upstream."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace

import pandas as pd

from fragmentlab.assembler.rules import SHIPPED
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.rules import find_rules
from fragmentlab.disclosure import refuse_private, shown_name
from fragmentlab.errors import InputError
from fragmentlab.reports.columns import once
from fragmentlab.reports.frame.parameters import names_in
from fragmentlab.reports.frames import StreamFrames, assemble_all, stream_frames
from fragmentlab.reports.show.charts import shapes_figure, share_figure, with_shares
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Callout, Conclusion, conclude, counts_in_words
from fragmentlab.reports.show.tables import Table
from fragmentlab.wire.observing import SHAPES

SIZE_BOUNDS = (0, 1, 64, 256, 1024, 4096, 16384)
"""Lower bounds of the ranges of argument bytes; the last has no upper one."""
KIND_WORDS = {
    "captured": "recordings replayed",
    "imported": "bytes from someone's log",
    "live": "recorded while a real server answered",
    "controlled": "streams that we made after the shapes; what they show is what we put in",
}
"""Kind of evidence, in the order of the tables -> what it is."""
_NULL = "leave {} out instead of sending null (a serializer option such as exclude_unset or omitempty)"
UPSTREAM = {
    "null_padding.id": _NULL.format("id") + "; strict clients refuse such a call",
    "null_padding.name": _NULL.format("function.name"),
    "null_padding.arguments": _NULL.format("function.arguments"),
    **{
        f"null_padding.{name}": _NULL.format(name)
        for name in ("type", "function", "role", "tool_calls", "function_call", "delta", "choices")
    },
    "repeated_id": "send the ID once, with the first fragment; some clients concatenate it",
    "repeated_finish": "send finish_reason once",
    "empty_finish": 'send finish_reason: null, not ""',
    "sparse_index": "number the calls of a response from 0 without gaps",
    "missing_type": 'send type: "function" with a call\'s first fragment',
    "missing_done": "end the stream with data: [DONE], or clients cannot tell an end from a cut",
    "repeated_done": "send [DONE] once",
    "response_id_changed": "keep one id for all chunks of a response",
    "replacement_character": "join UTF-8 sequences before decoding: a character was lost as U+FFFD",
}
"""Tolerance -> what to report. What only says how a stream was recorded is not in it."""
_EVIDENCE = pd.CategoricalDtype(list(KIND_WORDS), ordered=True)
_IDS = ["batch", "stream"]
_SENDER = ["sender", "evidence", "model"]


@dataclass(frozen=True)
class ProviderShapes:
    """Everything that notebook 05 shows, from frames that were filled in one pass over the batches.

    ``rules`` is the name of the chosen rule set, as it is shown; ``rule_sets`` are those of all compared.
    """

    frames: StreamFrames
    rules: str
    rule_sets: list[str]

    @once
    def streams_df(self) -> pd.DataFrame:
        """One row per stream with a tool call.

        Columns: those of ``fragmentlab.reports.frames.streams_df``, and ``sender``: provider and server in
        one text.
        """
        streams = self.frames.streams.query("fragments > 0")
        return streams.assign(
            sender=list(map(_sender, streams.provider, streams.server, streams.model)),
            evidence=streams.evidence.astype(_EVIDENCE),
        )

    def results_df(self) -> pd.DataFrame:
        """One row per stream and rule set, with the columns of ``fragmentlab.reports.frames.results_df``."""
        return self.frames.results

    def shapes_df(self) -> pd.DataFrame:
        """One row per stream and ``shape`` that it shows, with the columns of ``streams_df``."""
        shapes = self._exploded("shapes", "shape")
        return shapes.astype({"shape": pd.CategoricalDtype(list(SHAPES), ordered=True)})

    def tolerances_df(self) -> pd.DataFrame:
        """One row per stream and ``tolerance`` that was counted in it, with the columns of ``streams_df``."""
        return self._exploded("tolerances", "tolerance")

    def _exploded(self, column: str, each: str) -> pd.DataFrame:
        streams = self.streams_df()
        named = streams[column].map(lambda text: list(json.loads(text)))
        return streams.assign(**{each: named}).explode(each).dropna(subset=each)

    def overview(self) -> Callout:
        """How many streams of how many sources, and how many shapes."""
        streams = self.streams_df()
        sources, seen = len(streams[_SENDER].drop_duplicates()), self.shapes_df()["shape"].nunique()
        kinds = streams.evidence.value_counts()
        details = [f"{count:,} {kind}: {KIND_WORDS[kind]}." for kind, count in kinds.items() if count]
        if others := len(self.frames.streams) - len(streams):
            details.append(f"{others:,} streams without a tool call are left out.")
        headline = (
            f"{len(streams):,} streams with tool calls, {sources} sources, {seen} of {len(SHAPES)} shapes"
        )
        return Callout("plain", headline, details)

    def by_source(self, evidence: str) -> Figure | Callout:
        """How many of each source's streams show a shape, and which share of them."""
        streams = self.streams_df().query("evidence == @evidence")
        if streams.empty:
            return Callout("plain", f"The batches hold no {evidence} streams with tool calls.")
        shapes = self.shapes_df().query("evidence == @evidence")
        counts = pd.crosstab(shapes["shape"].astype(str), shapes.sender)
        counts = counts.reindex(index=[*SHAPES], columns=streams.sender.unique(), fill_value=0)
        return shapes_figure(evidence, counts, streams.sender.value_counts())

    def table(self) -> Table:
        """Each source with its shapes and how many streams showed them."""
        shapes = self.shapes_df().groupby(_SENDER, observed=True, dropna=False)["shape"]
        named = shapes.agg(lambda seen: counts_in_words(seen.value_counts(sort=False)))
        told = self._sent.to_frame("streams").join(named).reset_index()
        told = told.sort_values(["evidence", "sender"], kind="stable")
        columns = "sender as source, evidence, model, streams, shape as shapes and their streams"
        return Table("Shapes by source", told, columns)

    @property
    def _sent(self) -> pd.Series:
        """How many streams each sender has."""
        return self.streams_df().groupby(_SENDER, observed=True, dropna=False).size()

    def vocabulary(self) -> Table:
        """What the labels mean, those that were seen."""
        seen = set(self.shapes_df()["shape"])
        told = [(shape, meaning) for shape, meaning in SHAPES.items() if shape in seen]
        return Table("What the shapes mean", pd.DataFrame(told, columns=["shape", "meaning"]))

    def refusals(self) -> Table:
        """How many streams with a shape each rule set refuses; where the rule sets differ comes first."""
        results = self.results_df()
        refused = results.assign(refused=results.outcome == "rejected").pivot(
            index=_IDS, columns="rules", values="refused"
        )[self.rule_sets]
        groups = self.shapes_df().join(refused, on=_IDS).groupby(["shape", "evidence"], observed=True)
        counts = groups[self.rule_sets].sum().astype(int)
        told = counts.add_prefix("refused by ")
        told.insert(0, "streams", groups.size())
        spread = counts.max(axis=1) - counts.min(axis=1)
        order = spread.reset_index(name="spread").sort_values(
            ["spread", "evidence", "shape"], ascending=[False, True, True]
        )
        return Table(
            "Streams refused, by a shape that they show",
            told.reset_index().loc[order.index],
            note="A stream counts under each shape that it shows, and can be refused for another reason.",
        )

    def sizes(self) -> Figure:
        """The share of refused streams by the size of their arguments."""
        sizes = self._sizes()
        labelled = sizes.assign(label=sizes.evidence.astype(str) + ", " + sizes["size"].astype(str))
        return share_figure(labelled, f"refused under {self.rules}", "Refused streams by bytes of arguments")

    def size_table(self) -> Table:
        """The numbers of the figure."""
        return Table(
            f"Refused under {self.rules}, by bytes of arguments",
            self._sizes(),
            "evidence, size as argument bytes, streams, part as refused, percent as share, "
            "interval as 95 % interval",
            "A response that was cut has fewer bytes than it would have had.",
        )

    def upstream(self) -> Table:
        """Tolerated oddities that a provider or server could stop sending, and what to tell them."""
        own = self.tolerances_df().query("evidence != 'controlled' and tolerance in @UPSTREAM")
        counts = own.groupby(["tolerance", *_SENDER], observed=True, dropna=False).size()
        told = (
            counts.reset_index(name="times")
            .merge(self._sent.reset_index(name="of"))
            .sort_values(
                ["tolerance", "times"],
                key=lambda values: values.map([*UPSTREAM].index) if values.name == "tolerance" else -values,
                kind="stable",
            )
        )
        columns = "sender as source, tolerance, times as streams, of, advice as what to report"
        note = "Controlled streams are left out: nobody sent them."
        advised = told.assign(advice=told.tolerance.map(UPSTREAM))
        return Table("Tolerated, and worth reporting upstream", advised, columns, note)

    def conclusion(self) -> Conclusion:
        """What the batches show and what they do not."""
        nulls = self.shapes_df().query("shape == 'id null'")
        senders = nulls.query("evidence != 'controlled'").sender.value_counts()
        named = ", ".join(f"{sender} ({count} streams)" for sender, count in senders.items()) or "none"
        refused = self.results_df().merge(nulls[_IDS]).query("outcome == 'rejected'").rules.value_counts()
        counted = "Of the streams with a null continuation, " + " and ".join(
            f"{rules} refuses {refused.get(rules, 0):,}" for rules in ("reject-null", "keep-established")
        )
        return conclude(
            shows=[f"Sources that were seen sending null continuations: {named}.", f"{counted}."],
            not_shown=[
                "How often a provider sends a shape today: a batch is what somebody recorded, not a sample.",
                "Anything of a provider from controlled streams: they bear its name for following its shape.",
            ],
        )

    @once
    def _sizes(self) -> pd.DataFrame:
        labels = [_range(*bounds) for bounds in zip(SIZE_BOUNDS, [*SIZE_BOUNDS[1:], None], strict=True)]
        chosen = self.results_df().query("rules == @self.rules and fragments > 0")
        sized = chosen.assign(
            size=pd.cut(
                chosen.arguments_bytes.astype(float), [*SIZE_BOUNDS, float("inf")], right=False, labels=labels
            ),
            is_refused=chosen.outcome == "rejected",
            evidence=chosen.evidence.astype(_EVIDENCE),
        )
        groups = sized.groupby(["evidence", "size"], observed=True).is_refused
        return with_shares(groups.agg(part="sum", streams="size").reset_index())


def open_shapes(parameters: SimpleNamespace) -> ProviderShapes:
    """Assemble the batches that ``parameters`` names under its rules and the shipped rule sets.

    Raises InputError for a name that is no batch, and where none is named.
    """
    batches = [refuse_private(open_batch(name)) for name in names_in(parameters.batches)]
    if not batches:
        raise InputError("batches names no batch; give names or folders with commas between them")
    rules = find_rules(parameters.rules)
    frames = stream_frames(assemble_all(batches, {rules.name: rules, **SHIPPED}.values()))
    shown = [shown_name(name, "your rule set") for name in {rules.name: rules, **SHIPPED}]
    return ProviderShapes(frames, shown[0], shown)


def _sender(provider: object, server: object, model: object) -> str:
    """Provider and server in one text, the model where there is nothing else."""
    both = dict.fromkeys(name for name in (provider, server) if name not in ("kit synth", "local"))
    named = [str(name) for name in both if pd.notna(name)]
    return " / ".join(named) or (str(model) if pd.notna(model) else "unknown")


def _range(low: int, bound: int | None) -> str:
    if bound is None:
        return f"{low:,} and more"
    return f"{low:,}" if bound - 1 == low else f"{low:,} to {bound - 1:,}"
