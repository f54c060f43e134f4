"""What stands in a traceback that shows local variables: no object of ours prints what it holds raw."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import fragmentlab
from fragmentlab.assembler import Assembler, assemble
from fragmentlab.assembler.rules import load_rules
from fragmentlab.assembler.strictjson import parse
from tests.assembler.wire import call, fragment, response

CANARY = "kanarienvogel"
RAW = frozenset("body arguments schema data pieces record chunks reads".split())
"""Names of fields that hold what came over the wire, whatever their type."""
FACTS = frozenset({"Shape"})
"""Kinds whose fields of such a name say only how a provider writes."""


def dataclasses_of_the_kit() -> Iterator[type]:
    for module in pkgutil.walk_packages(fragmentlab.__path__, "fragmentlab."):
        if not module.name.endswith("__main__"):
            for member in vars(importlib.import_module(module.name)).values():
                is_own = inspect.isclass(member) and member.__module__ == module.name
                if is_own and dataclasses.is_dataclass(member):
                    yield member


def test_no_generated_repr_prints_bytes_or_raw_fields() -> None:
    """A dataclass that holds bytes or a raw field has a repr of its own, or leaves the field out."""
    kinds = [kind for kind in dataclasses_of_the_kit() if hasattr(kind.__repr__, "__wrapped__")]
    assert len(kinds) > 30
    for kind in kinds:
        for field in dataclasses.fields(kind) if kind.__name__ not in FACTS else ():
            is_raw = "bytes" in str(field.type) or field.name in RAW
            is_size = str(field.type).startswith(("int", "dict", "Callable"))
            assert not (field.repr and is_raw and not is_size), (
                f"{kind.__module__}.{kind.__qualname__}.{field.name}"
            )


def test_what_a_gateway_holds_prints_nothing_raw() -> None:
    """The state of a response in the middle of a call, tools with schemas, rules and results."""
    body = response(call(0, f"{CANARY}-id", f"{CANARY}_tool", ""), *[fragment(0, None, None, CANARY)] * 9)
    assembler = Assembler(tools=[{"name": f"{CANARY}_tool", "schema": {"title": CANARY}}])
    assembler.feed(body[: len(body) // 2])
    held = [assembler, *vars(assembler).values()]
    held += [value for part in held for value in getattr(part, "__dict__", {}).values()]
    held += [load_rules("reject-null"), parse(f'["{CANARY}"]', 9)]
    ours = [part for part in held if type(part).__module__.startswith("fragmentlab")]
    assert len(ours) > 6
    assert CANARY not in "".join(map(repr, ours))
    assert CANARY not in repr(assemble(body)) + repr(assemble(body, diagnose=True))
