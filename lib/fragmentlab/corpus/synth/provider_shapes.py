"""Provider shapes: what each provider and server was seen to do, as facts with their source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from fragmentlab.disclosure import for_terminal
from fragmentlab.files import data_folder, read_bytes
from fragmentlab.formats import StrictStruct, decode

_MAX_BYTES = 1 << 20
_LABELS = {
    ("continuation_id", "omitted"): "id omitted",
    ("continuation_id", "null"): "id null",
    ("continuation_id", "empty_string"): "id empty",
    ("continuation_id", "repeated"): "id repeated",
    ("continuation_id", "none"): "one fragment",
    ("continuation_name", "null"): "name null",
    ("continuation_name", "empty_string"): "name empty",
    ("continuation_name", "repeated"): "name repeated",
    ("type", "every"): "type repeated",
    ("type", "null_after"): "type null",
    ("type", "never"): "type missing",
    ("role", "every"): "role repeated",
    ("role", "null_after"): "role null",
    ("first_chunk", "empty_choices"): "empty choices",
    ("first_arguments", "null"): "arguments null",
    ("index_base", None): "no index",
    ("index_base", -1): "negative index",
    ("index_base", 1): "base above 0",
    ("finish", "with_last_fragment"): "finish with fragment",
    ("finish", "every_call"): "finish with fragment",
    ("finish", "repeated"): "finish repeated",
    ("finish", "missing"): "no finish",
    ("finish_reason", "stop"): "finish stop",
    ("usage", "empty_choices"): "empty choices",
    ("comments", True): "comments",
    ("done", False): "no [DONE]",
    ("chunk_id", "changes"): "response id changes",
}
_SOURCE = r"^(own measurement [0-9]{4}-[0-9]{2}-[0-9]{2}|[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+#[0-9]+)$"
_Said = Literal["first", "every", "null_after", "never"]


class Shape(StrictStruct, frozen=True, kw_only=True):
    """How one provider or server, by public name, streams a call.

    streams_seen: how many recorded streams showed it; sources: measurements with their date, or public
    reports; continuation_id: the ID in later fragments, none where each call is one fragment; type and role:
    which fragments and chunks say them; content: beside fragments; first_chunk: before the first fragment;
    arguments: in many pieces, whole in a later fragment, or in the only one; index_base: the first call's
    index, null where none is sent; finish: every_call is beside the last fragment of each; finish_key:
    finish_reason before the finish; object: whether chunks say what they are; padding: further fields sent as
    null, each with where it stands.
    """

    name: Annotated[str, Meta(pattern="^[a-z0-9]+([.-][a-z0-9]+)*$")]
    provider: str | None
    server: str | None
    streams_seen: Annotated[int, Meta(ge=1)] | None
    sources: Annotated[tuple[Annotated[str, Meta(pattern=_SOURCE)], ...], Meta(min_length=1)]
    note: str
    continuation_id: Literal["omitted", "null", "empty_string", "repeated", "none"]
    continuation_name: Literal["omitted", "null", "empty_string", "repeated"]
    type: _Said
    role: _Said
    content: Literal["omitted", "null", "empty_string"]
    first_chunk: Literal["role", "empty_choices", "call"]
    arguments: Literal["split", "whole", "single"]
    first_arguments: Literal["empty_string", "omitted", "null", "piece"]
    index_base: int | None
    parallel: Literal["sequential", "same_chunk"]
    finish: Literal["own_chunk", "with_last_fragment", "every_call", "repeated", "missing"]
    finish_reason: Literal["tool_calls", "stop"]
    finish_key: Literal["null", "omitted"]
    usage: Literal["none", "last_chunk", "empty_choices"]
    comments: bool
    done: bool
    chunk_id: Literal["same", "changes", "empty"]
    object: bool
    padding: tuple[Annotated[str, Meta(pattern=r"^(chunk|choice|delta)\.[a-z_]+$")], ...]

    @property
    def has_continuations(self) -> bool:
        """Whether a call takes more than one fragment, so that a control and a target can differ."""
        return self.continuation_id != "none"

    @property
    def labels(self) -> frozenset[str]:
        """The labels of ``wire.observing.SHAPES`` that a single call in this shape shows."""
        labels = {label for (name, value), label in _LABELS.items() if getattr(self, name) == value}
        return frozenset(labels | ({"tool_calls null"} if "delta.tool_calls" in self.padding else set()))


class ShapesDocument(StrictStruct, frozen=True, tag_field="schema", tag="fragmentlab-shapes-v1"):
    """What each provider and server was seen to do in a streamed tool call: facts with their source."""

    shapes: Annotated[tuple[Shape, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if len({shape.name for shape in self.shapes}) != len(self.shapes):
            raise ValueError("two shapes have one name")


def load_shapes(path: str | Path = "") -> tuple[Shape, ...]:
    """Read a shapes file, by default data/shapes.json; raise InputError where it is not in the format."""
    path = path or data_folder("shapes.json")
    return decode(read_bytes(path, _MAX_BYTES), ShapesDocument, for_terminal(str(path))).shapes
