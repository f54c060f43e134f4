"""Which wire shapes each source emits, which rule sets refuse them, and what is worth reporting upstream."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace

from fragmentlab.assembler import SHIPPED, RuleSet
from fragmentlab.corpus.batches import Batch, open_batch
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import NameAliases, refuse_private
from fragmentlab.errors import InputError
from fragmentlab.qualification.comparing.comparison import acceptance_interval
from fragmentlab.reports.frame.catalog import shown_rules
from fragmentlab.reports.show.figures import Figure
from fragmentlab.reports.show.prose import Callout, Conclusion, conclude
from fragmentlab.reports.show.shapes_charts import SizeRow, heat_map, size_figure
from fragmentlab.reports.show.tables import Cell, Table
from fragmentlab.reports.upstream import UPSTREAM
from fragmentlab.wire.observing import SHAPES, observe

SIZE_BOUNDS = (0, 1, 64, 256, 1024, 4096, 16384)
"""Lower bounds of the ranges of argument bytes; the last has no upper one."""
KIND_WORDS = {
    "captured": "recordings replayed",
    "imported": "bytes from someone's log",
    "live": "recorded while a real server answered",
    "controlled": "streams that we made after the shapes; what they show is what we put in",
}
"""Kind of evidence, in the order of the tables -> what it is."""


@dataclass(frozen=True)
class Source:
    """Who sent a stream, by public names and aliases."""

    evidence: str
    provider: str | None
    server: str | None
    model: str | None

    @property
    def label(self) -> str:
        """Provider and server in one line, the model where there is nothing else."""
        named = [name for name in (self.provider, self.server) if name not in (None, "kit synth", "local")]
        return " / ".join(dict.fromkeys(name for name in named if name)) or self.model or "unknown"


@dataclass
class _Tally:
    """Counts over streams with tool-call fragments; nothing of a stream is kept."""

    streams: Counter[Source] = field(default_factory=Counter)
    shapes: dict[Source, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    with_shape: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    sizes: Counter[tuple[str, int]] = field(default_factory=Counter)
    size_refused: Counter[tuple[str, int]] = field(default_factory=Counter)
    tolerances: dict[str, Counter[Source]] = field(default_factory=lambda: defaultdict(Counter))
    others: int = 0


class ProviderShapes:
    """Everything that notebook 05 shows, counted in one pass over the batches."""

    def __init__(self, batches: list[Batch], rules: RuleSet) -> None:
        self._rules = rules
        self._rule_sets = {rules.name: rules, **SHIPPED}
        self._batches = batches
        self._names = NameAliases()
        self._tally = _Tally()
        for batch in batches:
            for stream in batch.streams():
                self._count(stream)

    def overview(self) -> Callout:
        """How many streams of how many sources, and how many shapes."""
        tally = self._tally
        kinds = Counter(source.evidence for source in tally.streams.elements())
        seen = {shape for counts in tally.shapes.values() for shape in counts}
        return Callout(
            "plain",
            f"{tally.streams.total():,} streams with tool calls, {len(tally.streams)} sources, "
            f"{len(seen)} of {len(SHAPES)} shapes",
            [f"{count:,} {kind}: {KIND_WORDS[kind]}." for kind, count in kinds.items()]
            + ([f"{tally.others:,} streams without a tool call are left out."] if tally.others else []),
        )

    def heat_map(self, evidence: str) -> Figure | Callout:
        """The share of each source's streams that show a shape, with counts."""
        sources = [source for source in self._tally.streams if source.evidence == evidence]
        if not sources:
            return Callout("plain", f"The batches hold no {evidence} streams with tool calls.")
        merged: dict[str, tuple[int, Counter[str]]] = {}
        for source in sources:
            streams, counts = merged.get(source.label, (0, Counter()))
            merged[source.label] = (
                streams + self._tally.streams[source],
                counts + self._tally.shapes[source],
            )
        return heat_map(evidence, merged)

    def table(self) -> Table:
        """Each source with its shapes and how many streams showed them."""
        rows: list[list[Cell]] = []
        for source, streams in sorted(
            self._tally.streams.items(),
            key=lambda item: (list(KIND_WORDS).index(item[0].evidence), item[0].label),
        ):
            counts = self._tally.shapes[source]
            named = ", ".join(f"{shape} {counts[shape]}" for shape in SHAPES if counts[shape])
            rows.append([source.label, source.evidence, source.model, streams, named])
        return Table(
            "Shapes by source",
            ["source", "evidence", "model", "streams", "shapes and their streams"],
            rows,
        )

    def vocabulary(self) -> Table:
        """What the labels mean, those that were seen."""
        seen = {shape for counts in self._tally.shapes.values() for shape in counts}
        rows = [[shape, meaning] for shape, meaning in SHAPES.items() if shape in seen]
        return Table("What the shapes mean", ["shape", "meaning"], rows)

    def refusals(self) -> Table:
        """How many streams with a shape each rule set refuses; where the rule sets differ comes first."""
        rows: list[list[Cell]] = []
        for evidence in KIND_WORDS:
            for shape in SHAPES:
                streams = self._tally.with_shape[evidence, shape]
                counts = [self._tally.refused[evidence, shape, name] for name in self._rule_sets]
                if streams:
                    rows.append([shape, evidence, streams, *counts])
        rows.sort(key=lambda row: -_spread(row[3:]))
        return Table(
            "Streams refused, by a shape that they show",
            [
                "shape",
                "evidence",
                "streams",
                *[f"refused by {shown_rules(name)}" for name in self._rule_sets],
            ],
            rows,
            note="A stream counts under each shape that it shows, and can be refused for another reason.",
        )

    def sizes(self) -> Figure:
        """The share of refused streams by the size of their arguments."""
        return size_figure(self._size_rows(), shown_rules(self._rules.name))

    def size_table(self) -> Table:
        """The numbers of the figure."""
        rows: list[list[Cell]] = [
            [
                row.evidence,
                row.label,
                row.streams,
                row.refused,
                f"{row.share:.0%}",
                f"{row.low:.0%} to {row.high:.0%}",
            ]
            for row in self._size_rows()
        ]
        return Table(
            f"Refused under {shown_rules(self._rules.name)}, by bytes of arguments",
            ["evidence", "argument bytes", "streams", "refused", "share", "95 % interval"],
            rows,
            note="A response that was cut has fewer bytes than it would have had.",
        )

    def upstream(self) -> Table:
        """Tolerated oddities that a provider or server could stop sending, and what to tell them."""
        rows: list[list[Cell]] = []
        for tolerance, advice in UPSTREAM.items():
            for source, streams in self._tally.tolerances[tolerance].most_common():
                if source.evidence != "controlled":
                    rows.append([source.label, tolerance, streams, self._tally.streams[source], advice])
        return Table(
            "Tolerated, and worth reporting upstream",
            ["source", "tolerance", "streams", "of", "what to report"],
            rows,
            note="Controlled streams are left out: nobody sent them.",
        )

    def conclusion(self) -> Conclusion:
        """What the batches show and what they do not."""
        nulls = Counter(
            {source.label: counts["id null"] for source, counts in self._tally.shapes.items()
             if counts["id null"] and source.evidence != "controlled"}
        )  # fmt: skip
        said = ", ".join(f"{label} ({count} streams)" for label, count in nulls.most_common()) or "none"
        strict, lenient = (
            sum(self._tally.refused[evidence, "id null", name] for evidence in KIND_WORDS)
            for name in ("reject-null", "keep-established")
        )
        return conclude(
            shows=[
                f"Sources that were seen sending null continuations: {said}.",
                (
                    "Of the streams with a null continuation, reject-null refuses "
                    f"{strict} and keep-established {lenient}."
                ),
            ],
            not_shown=[
                "How often a provider sends a shape today: a batch is what somebody recorded, not a sample.",
                (
                    "Anything of a provider from controlled streams: they carry its name because they follow "
                    "its shape."
                ),
            ],
        )

    def _count(self, stream: Stream) -> None:
        result = stream.assemble(self._rules, diagnose=True)
        if not result.counts["fragments"]:
            self._tally.others += 1
            return
        show = self._names.show
        source = Source(
            stream.evidence,
            show("provider", stream.provider),
            show("server", stream.server),
            show("model", stream.model),
        )
        tally, shapes = self._tally, observe(stream.body, stream.framing)
        tally.streams[source] += 1
        tally.shapes[source].update(shapes)
        results = {name: stream.assemble(rules, diagnose=True) for name, rules in self._rule_sets.items()}
        for shape in shapes:
            tally.with_shape[stream.evidence, shape] += 1
            for name, other in results.items():
                tally.refused[stream.evidence, shape, name] += other.outcome == "rejected"
        size = max(
            number for number, low in enumerate(SIZE_BOUNDS) if result.counts["arguments_bytes"] >= low
        )
        tally.sizes[stream.evidence, size] += 1
        tally.size_refused[stream.evidence, size] += result.outcome == "rejected"
        for tolerance in result.tolerances:
            tally.tolerances[tolerance][source] += 1

    def _size_rows(self) -> list[SizeRow]:
        rows = []
        for evidence in KIND_WORDS:
            for number, low in enumerate(SIZE_BOUNDS):
                streams = self._tally.sizes[evidence, number]
                if streams:
                    refused = self._tally.size_refused[evidence, number]
                    interval = acceptance_interval(refused, streams)
                    rows.append(SizeRow(evidence, _range(number, low), streams, refused, *interval))
        return rows


def open_shapes(parameters: SimpleNamespace) -> ProviderShapes:
    """Count the batches named in ``parameters.batches`` under ``parameters.rules``; InputError for a bad
    name."""
    named = [name.strip() for name in parameters.batches.split(",") if name.strip()]
    if not named:
        raise InputError("batches names no batch; give names or folders with commas between them")
    batches = [refuse_private(open_batch(name)) for name in named]
    return ProviderShapes(batches, find_rules(parameters.rules))


def _spread(counts: Iterable[Cell]) -> int:
    numbers = [count for count in counts if isinstance(count, int)]
    return max(numbers) - min(numbers)


def _range(number: int, low: int) -> str:
    if number + 1 == len(SIZE_BOUNDS):
        return f"{low:,} and more"
    high = SIZE_BOUNDS[number + 1] - 1
    return f"{low:,}" if high == low else f"{low:,} to {high:,}"
