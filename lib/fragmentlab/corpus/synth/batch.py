"""Synthetic batches from provider shapes: pairs of control and target, other ID styles, and faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fragmentlab.corpus.streams import Stream, stream_id
from fragmentlab.corpus.synth.draft import TOOLS, Draft, draw_calls, write_draft
from fragmentlab.corpus.synth.draws import Draws
from fragmentlab.corpus.synth.faults import FAULTS
from fragmentlab.corpus.synth.provider_shapes import Shape, load_shapes
from fragmentlab.corpus.synth.rendering import MODEL, render

_OTHER_STYLES = ("empty_string", "repeated")
_TEXT = "Looking this up for you now."


@dataclass(frozen=True)
class SynthOptions:
    """What a synthetic batch is made of. Shares are per mille, ``arguments_size`` is characters of a call."""

    streams: int
    seed: int
    fault_share: int = 200
    parallel_share: int = 300
    interleaved_share: int = 300
    """Of the parallel ones whose shape has continuations."""
    arguments_size: int = 60


def synthesize(options: SynthOptions, shapes: Sequence[Shape] | None = None) -> Iterator[Stream]:
    """Yield ``options.streams`` streams, the same bytes for the same options and shapes on every Python.

    Tasks go round the shapes. A task whose shape has continuations gives a control (IDs omitted), its target
    (null), and a third stream in the shape's own or another ID style; control and target share ``pair``.
    """
    shapes = load_shapes() if shapes is None else shapes
    clean = _clean_streams(options, shapes)
    faulty = _faulty_streams(options, shapes)
    for number in range(options.streams):
        due = _ceil_permille(number + 1, options.fault_share) > _ceil_permille(number, options.fault_share)
        yield next(faulty if due else clean)


def _ceil_permille(count: int, share: int) -> int:
    return -(-count * share // 1000)


def _clean_streams(options: SynthOptions, shapes: Sequence[Shape]) -> Iterator[Stream]:
    task = 0
    left = options.streams - _ceil_permille(options.streams, options.fault_share)
    while True:
        shape = shapes[task % len(shapes)]
        for id_style, pair in _styles(shape, task, left):
            yield _stream(options, shape, task, id_style, pair)
            left -= 1
        task += 1


def _styles(shape: Shape, task: int, left: int) -> list[tuple[str, str | None]]:
    """The ID styles of one task; a control whose target would no longer fit is left out."""
    if not shape.has_continuations:
        return [("omitted", None)]
    own = shape.continuation_id
    third = own if own in _OTHER_STYLES else _OTHER_STYLES[task % len(_OTHER_STYLES)]
    pair = f"pair-{task + 1:04d}"
    return [("omitted", pair), ("null", pair), (third, None)] if left >= 2 else [(third, None)]


def _stream(options: SynthOptions, shape: Shape, task: int, id_style: str, pair: str | None) -> Stream:
    draws = Draws(options.seed, "task", task)
    count = 2 + draws.below(2) if draws.chance(options.parallel_share) else 1
    calls = draw_calls(draws, count, options.arguments_size)
    interleaved = count > 1 and shape.has_continuations and draws.chance(options.interleaved_share)
    text = _TEXT if draws.chance(250) else ""
    draft = write_draft(shape, calls, id_style, interleaved, draws)
    draft.text = text
    return _rendered(shape, draft, draws, pair)


def _faulty_streams(options: SynthOptions, shapes: Sequence[Shape]) -> Iterator[Stream]:
    usable = [shape for shape in shapes if _takes_faults(shape)] or [_PLAIN]
    task = 0
    while True:
        fault = FAULTS[task % len(FAULTS)]
        shape = usable[(task + task // len(FAULTS)) % len(usable)]
        draws = Draws(options.seed, "fault", task)
        calls = draw_calls(draws, fault.calls, max(options.arguments_size, 48))
        draft = write_draft(shape, calls, "omitted", False, draws)
        fault.apply(draft)
        yield _rendered(shape, draft, draws, None)
        task += 1


def _takes_faults(shape: Shape) -> bool:
    """Whether streams of the shape are accepted as they are and have pieces that a fault can change."""
    return (
        shape.has_continuations
        and shape.arguments == "split"
        and shape.index_base is not None
        and shape.index_base >= 0
        and shape.continuation_name != "repeated"
        and shape.finish in ("own_chunk", "repeated")
        and shape.done
    )


def _rendered(shape: Shape, draft: Draft, draws: Draws, pair: str | None) -> Stream:
    body = render(shape, draft, f"chatcmpl-syn-{draws.hex(8)}", ascii_only=draws.chance(125))
    return Stream(
        id=stream_id(body),
        body=body,
        provider=shape.provider or "local",
        server=shape.server or "kit synth",
        model=MODEL,
        tools=TOOLS,
        fidelity="reads",
        end="unknown" if draft.cut else "clean",
        pair=pair,
        evidence="controlled",
    )


_PLAIN = Shape(
    name="plain", provider=None, server=None, streams_seen=None, sources=(), note="",
    continuation_id="omitted", continuation_name="omitted", type="first", role="first", content="null",
    first_chunk="role", arguments="split", first_arguments="empty_string", index_base=0,
    parallel="sequential", finish="own_chunk", finish_reason="tool_calls", finish_key="null", usage="none",
    comments=False, done=True, chunk_id="same", object=True, padding=(),
)  # fmt: skip
"""Stands in where none of the given shapes takes faults."""
