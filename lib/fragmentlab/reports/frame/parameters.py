"""Parameters of a notebook: declared in its ``parameters`` cell, and checked against it.

They are checked before a kernel starts and again inside it. A declaration is
``name: type = default  # help``, with ``str``, ``int``, ``float`` or ``bool``. A help text that begins with
``[shown]`` marks a string that a report may print; any other string is printed only when it is the default,
a name that this repository ships, or a stream id, because it may be a path or a tool's name.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from fragmentlab.disclosure import shown_name
from fragmentlab.errors import InputError
from fragmentlab.reports.frame.catalog import code_cells, find_notebook, read_notebook

NOT_SHOWN = "given, not shown"
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_BELONGS_IN_ENVIRONMENT = set("key token secret password credential header url host address".split())
_PLAIN_DATA = (str, int, float, bool, type(None), list, dict, tuple)
_OF_IPYTHON = re.compile(r"In|Out|__\w*|_+|_[i\d]+|_(dh|ih|oh|exit_code)")
_STREAM_ID = re.compile(r"s-[0-9a-f]{16}")
_SEEN = "_fragmentlab_seen"


@dataclass(frozen=True)
class Parameter:
    """One declared parameter: its name, exact Python type, default and one line of help."""

    name: str
    type: type
    default: str | int | float | bool
    help: str
    always_shown: bool


def declared_parameters(notebook: Path) -> dict[str, Parameter]:
    """Return what the notebook's ``parameters`` cell declares, by name and in order.

    Raises InputError where the cell holds anything but declarations, or declares what belongs in the
    environment.
    """
    source = "\n".join(code_cells(read_notebook(notebook), tag="parameters"))
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        raise InputError(f"{notebook.stem}: the parameters cell is not valid Python") from None
    lines = source.splitlines()
    found = [_declaration(each, lines[(each.end_lineno or 1) - 1], notebook.stem) for each in statements]
    return {parameter.name: parameter for parameter in found}


def check_parameters(notebook: str, namespace: MutableMapping[str, object]) -> SimpleNamespace:
    """Check a kernel's ``globals()`` against the notebook's declaration and return the checked values.

    ``notebook`` is its file name without ``.ipynb``. Raises InputError, which fails the run, for a name that
    was injected but never declared, a value of another type, and a declared name that is gone.
    """
    declared = declared_parameters(find_notebook(notebook))
    problems = [_unknown(name, declared) for name in _undeclared(namespace, declared)]
    for parameter in declared.values():
        value = namespace.get(parameter.name)
        if not _fits(value, parameter.type):
            hint = " (papermill takes True and False)" if parameter.type is bool else ""
            problems.append(f"{parameter.name} must be {_WORDS[parameter.type]}{hint}")
    if problems:
        raise InputError(f"{notebook}: {'; '.join(problems)}")
    return SimpleNamespace(**{name: namespace[name] for name in declared})


def parse_assignments(assignments: Iterable[str], declared: Mapping[str, Parameter]) -> dict[str, str]:
    """Split ``name=value`` texts; InputError for another form, an undeclared name or a repeated one."""
    given: dict[str, str] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator:
            raise InputError("-p takes name=value")
        if name not in declared:
            raise InputError(_unknown(name, declared))
        if name in given:
            raise InputError(f"parameter {name} is given twice")
        given[name] = text
    return given


def names_in(text: str) -> list[str]:
    """The names that a parameter lists with commas, in order; blanks around them are dropped."""
    return [name for part in text.split(",") if (name := part.strip())]


def typed(parameter: Parameter, text: str) -> str | int | float | bool:
    """Convert the text of a command line to the declared type; text stays as it is, ``007`` included."""
    value = _converted(parameter.type, text)
    if value is None:
        raise InputError(f"parameter {parameter.name} must be {_WORDS[parameter.type]}")
    return value


def shown_value(parameter: Parameter, value: str | int | float | bool) -> str:
    """What a report may print of a value: never a path or anything else that could be private."""
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if value == "":
        return "(empty)"
    public = value == parameter.default or parameter.always_shown or value == shown_name(value, "")
    return value if public or _STREAM_ID.fullmatch(value) else NOT_SHOWN


def _declaration(statement: ast.stmt, line: str, notebook: str) -> Parameter:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind), value=ast.expr() as value):
            wanted = _TYPES.get(kind)
        case _:
            raise InputError(f"{notebook}: the parameters cell only holds lines like: name: str = 'default'")
    try:
        default = ast.literal_eval(value)
    except ValueError:
        default = None
    if wanted is None or not _fits(default, wanted):
        raise InputError(
            f"{notebook}: parameter {name} needs a type (str, int, float, bool) and a default of it"
        )
    if _BELONGS_IN_ENVIRONMENT & set(name.lower().split("_")):
        raise InputError(
            f"{notebook}: parameter {name} belongs in an environment variable, since parameters are stored"
        )
    # What follows the statement on its last line is nothing but a comment.
    told = line.encode()[statement.end_col_offset :].decode().lstrip("# ")
    return Parameter(name, wanted, default, told.removeprefix("[shown]").strip(), told.startswith("[shown]"))


def _undeclared(namespace: MutableMapping[str, object], declared: Mapping[str, Parameter]) -> list[str]:
    """Plain values that no declaration made: papermill's unknown parameters.

    Only what was there at the first check counts, so that running the cell again in an open notebook does not
    mistake the notebook's own variables for parameters.
    """
    extra = [
        name
        for name, value in namespace.items()
        if name not in {*declared, _SEEN}
        and isinstance(value, _PLAIN_DATA)
        and not _OF_IPYTHON.fullmatch(name)
    ]
    first = namespace.setdefault(_SEEN, tuple(extra))
    return [name for name in extra if name in first] if isinstance(first, tuple) else extra


def _unknown(name: str, declared: Mapping[str, Parameter]) -> str:
    harmless = name.isascii() and name.isidentifier() and len(name) <= 40
    close = difflib.get_close_matches(name, declared, n=1) if harmless else []
    hint = f", did you mean {close[0]}?" if close else ""
    known = ", ".join(declared) or "none"
    return f"unknown parameter {name if harmless else '(no valid name)'}{hint} (known: {known})"


def _fits(value: object, wanted: type) -> bool:
    return type(value) is wanted or (wanted is float and type(value) is int)


def _converted(wanted: type, text: str) -> str | int | float | bool | None:
    if wanted is str:
        return None if re.search("[\ud800-\udfff]", text) else text
    if wanted is bool:
        return {"true": True, "false": False}.get(text.lower())
    pattern = r"[+-]?\d{1,18}" if wanted is int else r"[+-]?\d{1,18}(\.\d{1,18})?([eE][+-]?\d{1,3})?"
    if not re.fullmatch(pattern, text, re.ASCII):
        return None
    value = wanted(text)
    return value if math.isfinite(value) else None
