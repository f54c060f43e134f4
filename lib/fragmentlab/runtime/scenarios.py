"""Scenarios: data files that say what a model server streams, turn by turn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType

from fragmentlab.assembler import CATEGORIES
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder, read_bytes
from fragmentlab.formats import StrictStruct, decode
from fragmentlab.runtime.policy import Allow
from fragmentlab.runtime.problems import PROBLEMS
from fragmentlab.runtime.task import Task

KINDS = ("control", "target", "variant", "negative", "recovery")
_MAX_BYTES = 1 << 22
_SENT = ("step", "calls", "text", "chunks", "sse")
_ONE_SENT = {"oneOf": [{"required": [name]} for name in _SENT]}
_Count = Annotated[int, Meta(ge=1, le=64)]
_S = TypeVar("_S", bound=StrictStruct)


class Style(StrictStruct, frozen=True, kw_only=True):
    """How the calls of an answer are streamed.

    ids: what later fragments say of the ID, late that the second one brings it; padding: with null IDs, name
    and type are null too; order: of several calls; characters: of arguments in a fragment; surrogates:
    fragments may end within a pair; reads: one per event, one in all, odd sizes, or a cut in wide characters.
    """

    ids: Literal["omitted", "null", "repeated", "late"] | UnsetType = UNSET
    padding: bool | UnsetType = UNSET
    order: Literal["sequential", "interleaved"] | UnsetType = UNSET
    characters: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType = UNSET
    surrogates: bool | UnsetType = UNSET
    reads: Literal["events", "whole", "odd", "mid-character"] | UnsetType = UNSET


STYLE = Style(
    ids="omitted", padding=False, order="sequential", characters=48, surrogates=False, reads="events"
)
"""How an answer is streamed where nothing is said."""


class Edit(StrictStruct, frozen=True, kw_only=True):
    """Members of one fragment to set or remove; call and piece count from 1, -1 is the last piece."""

    call: _Count
    piece: int
    set: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it
    remove: tuple[str, ...] = ()


class Cut(StrictStruct, frozen=True):
    """Where an answer breaks off, and how the connection ends then.

    at: after half of the fragments (arguments), within the next event, after the last fragment (complete) or
    after the finish; how: close is without the end of the body, end as if complete, hold silence.
    """

    at: Literal["arguments", "event", "complete", "finish"]
    how: Literal["reset", "close", "end", "hold"] = "reset"


class Change(StrictStruct, frozen=True, kw_only=True):
    """What an answer has besides what it says.

    finish_reason: in place of the usual one, null for none; done: whether [DONE] is sent; error: halfway, in
    an event of that name or in a chunk.
    """

    stream: Style = Style()
    edit: tuple[Edit, ...] | UnsetType = UNSET
    finish_reason: str | UnsetType | None = UNSET
    done: bool | UnsetType = UNSET
    error: Literal["event", "chunk"] | UnsetType = UNSET
    cut: Cut | UnsetType = UNSET


class ScenarioCall(StrictStruct, frozen=True, kw_only=True):
    """A call that the server makes, with an ID of its own unless one is given.

    In arguments the strings {page}, {private}, {target} and {report} stand for the task's own;
    arguments_text is sent as it is, JSON or not.
    """

    tool: str
    id: str | UnsetType = UNSET
    arguments: dict[str, Any] | UnsetType = UNSET
    arguments_text: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.arguments is UNSET) == (self.arguments_text is UNSET):
            raise ValueError("a call needs exactly one of arguments and arguments_text")


class Turn(Change, frozen=True, kw_only=True):
    """One answer of the server: a step of the task, calls, a text, chunks, or a body as it is.

    step read is as many answers as the pages need; attempts: what the 1st, 2nd, ... request for this turn
    gets besides, the last one repeated.
    """

    step: Literal["list", "read", "save", "finish"] | UnsetType = UNSET
    calls: Annotated[tuple[ScenarioCall, ...], Meta(min_length=1)] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    chunks: tuple[dict[str, Any], ...] | UnsetType = UNSET
    sse: str | UnsetType = UNSET
    attempts: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if sum(getattr(self, name) is not UNSET for name in _SENT) != 1:
            raise ValueError("a turn needs exactly one of step, calls, text, chunks and sse")


class Expect(StrictStruct, frozen=True, kw_only=True):
    """How the task must end under keep-established; refusals: of every refused response, in order."""

    status: Literal["done", "incomplete", "refused", "failed"]
    category: str | None = None
    refusals: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        named = {*(self.refusals or ()), *filter(None, [self.category])}
        if named - CATEGORIES.keys() - PROBLEMS.keys():
            raise ValueError("expect names a category that does not exist")


class Sizes(StrictStruct, frozen=True):
    """Sizes of the task that a scenario needs at least."""

    pages: _Count = 1
    parallel: _Count = 1


class Scenario(StrictStruct, frozen=True, kw_only=True, tag_field="schema", tag="fragmentlab-scenario-v1"):
    """What a model server streams, turn by turn, while an agent works on the task.

    A turn is chosen by the number of assistant messages in the request, so that a retry gets the same turn
    again (its next attempt) and a new conversation starts from the first. kind: target is the control with
    null in later fragments, variant another allowed form, negative must be refused without any effect,
    recovery is refused, then tried again. same_as: the scenario whose results, report and effects this one
    must repeat; allow: what the host permits, in place of its policy; stream: a turn may override it.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*\Z", max_length=60)]
    kind: Literal["control", "target", "variant", "negative", "recovery"]
    about: Annotated[str, Meta(min_length=1, max_length=300)]
    turns: Annotated[tuple[Annotated[Turn, Meta(extra_json_schema=_ONE_SENT)], ...], Meta(min_length=1)]
    expect: Expect
    same_as: str | None = None
    at_least: Sizes = Sizes()
    allow: Allow | None = None
    stream: Style = Style()

    def __post_init__(self) -> None:
        if self.kind == "negative" and self.same_as is not None:
            raise ValueError("a negative is not compared with another")
        if self.kind == "target" and self.same_as is None:
            raise ValueError("a target needs same_as, the control that it must repeat")
        if self.same_as == self.name:
            raise ValueError("same_as must name another scenario")

    def __repr__(self) -> str:
        return f"Scenario({self.name})"

    def sized(self, task: Task) -> Task:
        """Return the task, made large enough for this scenario."""
        return task.at_least(self.at_least.pages, self.at_least.parallel)


def merged(kind: type[_S], *parts: StrictStruct) -> _S:
    """Return one ``kind`` of what the parts say, the last word counting."""
    said = {
        name: value
        for part in parts
        for name in kind.__struct_fields__
        if (value := getattr(part, name)) is not UNSET
    }
    return kind(**said)


def find_scenario(name_or_file: str) -> Scenario:
    """Return a shipped scenario by name, or the one in a file; raise InputError that says what is wrong."""
    shipped = {path.stem: path for path in data_folder("scenarios").glob("*.json")}
    path = shipped.get(name_or_file, Path(name_or_file))
    if path.suffix != ".json" and not path.is_file():
        raise InputError(
            f"unknown scenario {for_terminal(name_or_file)}; use a scenario file or one of "
            f"{', '.join(sorted(shipped))}"
        )
    return load_scenario(path)


def load_scenarios(file_or_folder: str) -> list[Scenario]:
    """Return the scenarios of a folder or the one of a file, controls first (empty: the shipped ones).

    A scenario that is compared with one that is not among them brings the shipped one of that name along.
    Raises InputError for none, a bad one, two of one name and a comparison with an unknown one.
    """
    path = Path(file_or_folder) if file_or_folder else data_folder("scenarios")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"no scenario file in {for_terminal(file_or_folder)}")
    found: dict[str, Scenario] = {}
    for scenario in map(load_scenario, files):
        if scenario.name in found:
            raise InputError(f"two scenarios are named {scenario.name}")
        found[scenario.name] = scenario
    for scenario in list(found.values()):
        if scenario.same_as is not None and scenario.same_as not in found:
            found[scenario.same_as] = find_scenario(scenario.same_as)
    return sorted(found.values(), key=lambda s: (KINDS.index(s.kind), s.same_as or "", s.name))


def load_scenario(path: Path) -> Scenario:
    """Read and check one file; raise InputError with the place in it, never a value of it."""
    return decode(read_bytes(path, _MAX_BYTES), Scenario, f"scenario {for_terminal(path.name)}")
