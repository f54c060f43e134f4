"""Scenarios: data files that say what a model server streams, turn by turn
(data/schemas/scenario.schema.json)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from fragmentlab.assembler import CATEGORIES
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import data_folder
from fragmentlab.runtime.problems import PROBLEMS
from fragmentlab.runtime.task import Task

KINDS = ("control", "target", "variant", "negative", "recovery")
_MAX_BYTES = 1 << 22


@dataclass(frozen=True)
class Scenario:
    """One checked scenario file; the fields are explained in the schema. ``turns`` are as in the file."""

    name: str
    kind: str
    about: str
    turns: tuple[Mapping[str, Any], ...] = field(repr=False)
    expect: Mapping[str, Any]
    same_as: str | None = None
    at_least: Mapping[str, int] = field(default_factory=dict)
    allow: Mapping[str, Any] | None = None
    stream: Mapping[str, Any] = field(default_factory=dict)

    def sized(self, task: Task) -> Task:
        """The task, made large enough for this scenario."""
        return task.at_least(**self.at_least)


def find_scenario(name_or_file: str) -> Scenario:
    """A shipped scenario by name, or the one in a file; InputError that says what is wrong with it."""
    path = Path(name_or_file)
    if len(path.parts) == 1 and path.suffix != ".json" and not path.exists():
        shipped = data_folder("scenarios") / f"{name_or_file}.json"
        if shipped.parent != data_folder("scenarios") or not _is_file(shipped):
            names = ", ".join(sorted(known.stem for known in data_folder("scenarios").glob("*.json")))
            raise InputError(
                f"unknown scenario {for_terminal(name_or_file)}; use a scenario file or one of {names}"
            )
        path = shipped
    return load_scenario(path)


def load_scenarios(file_or_folder: str) -> list[Scenario]:
    """The scenarios of a folder or the one of a file, controls first (empty: the shipped ones).

    A scenario that is compared with one that is not among them brings the shipped one of that name along.
    Raises InputError for none, a bad one, two of one name and a comparison with an unknown one.
    """
    path = Path(file_or_folder) if file_or_folder else data_folder("scenarios")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"no scenario file in {for_terminal(file_or_folder)}")
    found: dict[str, Scenario] = {}
    for file in files:
        scenario = load_scenario(file)
        if scenario.name in found:
            raise InputError(f"two scenarios are named {scenario.name}")
        found[scenario.name] = scenario
    for scenario in list(found.values()):
        if scenario.same_as is not None and scenario.same_as not in found:
            found[scenario.same_as] = find_scenario(scenario.same_as)
    return sorted(found.values(), key=lambda s: (KINDS.index(s.kind), s.same_as or "", s.name))


def load_scenario(path: Path) -> Scenario:
    """Read and check one file; InputError with the place in it, never a value of it."""
    shown = for_terminal(path.name)
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = (
            os.strerror(error.errno)
            if isinstance(error, OSError) and error.errno
            else "the path is not valid"
        )
        raise InputError(f"scenario {shown} cannot be read: {why}") from None
    if len(text) > _MAX_BYTES:
        raise InputError(f"scenario {shown} is larger than {_MAX_BYTES >> 20} MiB")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"scenario {shown} is not JSON") from None
    _check(data, shown)
    return Scenario(**{**{k: v for k, v in data.items() if k != "schema"}, "turns": tuple(data["turns"])})


def _check(data: Any, shown: str) -> None:
    try:
        # A bad field makes those beside it count as unevaluated: that complaint tells least.
        errors = sorted(_validator().iter_errors(data), key=lambda e: e.validator == "unevaluatedProperties")
    except RecursionError:
        raise InputError(f"scenario {shown} is nested too deeply") from None
    if errors:
        raise InputError(f"scenario {shown}: {_place(errors[0].absolute_path)} {_complaint(errors[0])}")
    expect = data["expect"]
    for category in [*expect.get("refusals", ()), *filter(None, [expect.get("category")])]:
        if category not in CATEGORIES and category not in PROBLEMS:
            raise InputError(f"scenario {shown}: expect names a category that does not exist")
    for number, turn in enumerate(data["turns"], 1):
        for call in turn.get("calls", ()):
            if ("arguments" in call) == ("arguments_text" in call):
                raise InputError(f"scenario {shown}: turn {number}: a call needs arguments or arguments_text")
    if data["kind"] == "negative" and "same_as" in data:
        raise InputError(f"scenario {shown}: a negative is not compared with another")
    if data["kind"] == "target" and "same_as" not in data:
        raise InputError(f"scenario {shown}: a target needs same_as, the control that it must repeat")
    if data.get("same_as") == data["name"]:
        raise InputError(f"scenario {shown}: same_as must name another scenario")


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(data_folder("schemas/scenario.schema.json").read_bytes()))


def _place(path: Iterable[str | int]) -> str:
    """Where in the file: only names that the schema knows are repeated."""
    known = _known_names()
    steps = [
        str(step + 1) if isinstance(step, int) else step if step in known else "(unknown name)"
        for step in path
    ]
    return " / ".join(steps) or "the file"


@cache
def _known_names() -> frozenset[str]:
    def names(part: Any) -> Iterable[str]:
        if isinstance(part, dict):
            yield from part.get("properties", {})
            for inner in part.values():
                yield from names(inner)
        elif isinstance(part, list):
            for inner in part:
                yield from names(inner)

    return frozenset(names(_validator().schema))


def _complaint(error: Any) -> str:
    wanted = error.validator_value
    match error.validator:
        case "enum":
            return f"must be one of {', '.join(map(str, wanted))}"
        case "const":
            return f"must be {wanted}"
        case "type":
            return f"must be of type {' or '.join(_listed(wanted))}"
        case "required":
            return f"needs {', '.join(_listed(wanted))}"
        case "oneOf":
            return "needs exactly one of step, calls, text, chunks and sse"
        case "additionalProperties" | "unevaluatedProperties":
            return "has a field that a scenario does not have"
        case "pattern":
            return "must be lower-case letters, digits and hyphens"
    return f"breaks the schema's {error.validator}"


def _listed(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
