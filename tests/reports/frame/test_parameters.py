"""Parameters: what a notebook declares, what may be set, what a kernel may hold, what is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragmentlab.errors import InputError
from fragmentlab.reports.frame.catalog import FOLDER_VARIABLE
from fragmentlab.reports.frame.parameters import (
    NOT_SHOWN,
    Parameter,
    check_parameters,
    declared_parameters,
    parse_assignments,
    shown_value,
    typed,
)
from tests.reports.frame.notebooks import write_notebook

DECLARATION = """
batch: str = "captured-local"  # a batch
label: str = ""  # [shown] the revision
count: int = 3
share: float = 0.5  # a share
reveal: bool = False  # raw values
"""
OF_IPYTHON = {
    "In": ["", "x = 1"],
    "Out": {},
    "_": "",
    "__": "",
    "_i1": "x",
    "_ih": [],
    "_dh": [],
    "__name__": "__main__",
}


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return write_notebook(tmp_path, "01-asks", parameters=DECLARATION)


def kernel(**values):
    defaults = {"batch": "captured-local", "label": "", "count": 3, "share": 0.5, "reveal": False}
    return {**OF_IPYTHON, "check_parameters": check_parameters, **defaults, **values}


def test_declaration_is_read_from_the_cell(notebook):
    """Names, exact types, defaults and help come from the parameters cell alone."""
    declared = declared_parameters(notebook)
    assert list(declared) == ["batch", "label", "count", "share", "reveal"]
    assert declared["label"] == Parameter("label", str, "", "the revision", True)
    assert declared["count"] == Parameter("count", int, 3, "", False)
    assert declared["batch"].help == "a batch"


def test_declared_values_pass(notebook):
    """The defaults, and a whole number for a float, pass and come back by name."""
    assert vars(check_parameters("01-asks", kernel(share=1)))["share"] == 1


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"bacth": "x"}, "unknown parameter bacth, did you mean batch?"),
        ({"_bacth": "x"}, "unknown parameter _bacth"),
        ({"other": None}, "unknown parameter other"),
        ({"nested": {"a": [1]}}, "unknown parameter nested"),
        ({"x" * 60: 1}, "unknown parameter (no valid name)"),
        ({"batch": 7}, "batch must be text"),
        ({"batch": None}, "batch must be text"),
        ({"count": True}, "count must be a whole number"),
        ({"count": 3.0}, "count must be a whole number"),
        ({"reveal": 1}, "reveal must be true or false"),
        ({"reveal": "true"}, "papermill takes True and False"),
        ({"share": "0.5"}, "share must be a number"),
    ],
)
def test_wrong_names_and_types_fail(notebook, values, told):
    """A name that was injected without a declaration and a value of another type are named."""
    with pytest.raises(InputError, match="01-asks") as failure:
        check_parameters("01-asks", kernel(**values))
    assert told in str(failure.value)


def test_a_failed_check_keeps_failing(notebook):
    """Running the cell again does not make an unknown parameter known."""
    namespace = kernel(bacth="x")
    for _ in range(2):
        with pytest.raises(InputError):
            check_parameters("01-asks", namespace)


def test_running_the_cell_again_ignores_later_variables(notebook):
    """In an open notebook the variables of later cells are not mistaken for parameters."""
    namespace = kernel()
    check_parameters("01-asks", namespace)
    namespace["rows"] = [1, 2]
    check_parameters("01-asks", namespace)


@given(st.text())
def test_values_never_reach_a_message(value):
    """A mistyped value is not quoted."""
    secret = f"CANARY{value}"
    parameter = Parameter("count", int, 3, "", False)
    with pytest.raises(InputError) as failure:
        typed(parameter, secret)
    assert "CANARY" not in str(failure.value)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_is_never_converted(value):
    """A text parameter keeps what was typed, 007 and true included."""
    assert typed(Parameter("batch", str, "", "", False), value) == value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "007", 7),
        (int, "-2", -2),
        (float, "1", 1.0),
        (float, "2.5e3", 2500.0),
        (bool, "True", True),
        (bool, "false", False),
    ],
)
def test_text_becomes_the_declared_type(kind, text, value):
    """The command line's text is read as the declared type."""
    result = typed(Parameter("p", kind, kind(), "", False), text)
    assert result == value and type(result) is kind


@pytest.mark.parametrize(
    ("kind", "text"),
    [(int, "1.0"), (int, ""), (int, "1_0"), (int, "٣"), (int, "9" * 5000), (float, "nan"), (float, "inf"),
     (float, "1e999"), (bool, "1"), (bool, ""), (str, "\udcff")],
)  # fmt: skip
def test_text_of_another_type_is_refused(kind, text):
    """Nothing is guessed: each of these is one line for the person who typed it."""
    with pytest.raises(InputError, match="parameter p must be"):
        typed(Parameter("p", kind, kind(), "", False), text)


@pytest.mark.parametrize("assignment", ["batch", "=x", "bacth=x", "a b=x", "-p=1"])
def test_assignments_need_a_declared_name(notebook, assignment):
    """Another form or an undeclared name is refused."""
    with pytest.raises(InputError):
        parse_assignments([assignment], declared_parameters(notebook))


def test_assignments_are_taken_once(notebook):
    """The first equals sign parts name and value; a second assignment of one name is refused."""
    declared = declared_parameters(notebook)
    assert parse_assignments(["batch=a=b", "count="], declared) == {"batch": "a=b", "count": ""}
    with pytest.raises(InputError, match="given twice"):
        parse_assignments(["batch=a", "batch=a"], declared)


@pytest.mark.parametrize(
    "cell",
    [
        "a = 1", "a: list = []", "a: int = 'x'", "a: str = b", "import os", "a: int", "a: int = (",
        "a: int = True", "api_key: str = ''", "base_url: str = ''",
    ],
)  # fmt: skip
def test_bad_declarations_are_refused(tmp_path, cell):
    """A parameters cell holds typed literals only, and never what belongs in the environment."""
    with pytest.raises(InputError, match="01-bad"):
        declared_parameters(write_notebook(tmp_path, "01-bad", parameters=cell))


@pytest.mark.parametrize(
    ("name", "value", "printed"),
    [
        ("batch", "captured-local", "captured-local"),
        ("batch", "keep-established", "keep-established"),
        ("batch", "s-0123456789abcdef", "s-0123456789abcdef"),
        ("batch", "/home/someone/secret", NOT_SHOWN),
        ("batch", "my_tool", NOT_SHOWN),
        ("label", "v1.2", "v1.2"),
        ("label", "", "(empty)"),
        ("count", 7, "7"),
        ("reveal", True, "true"),
    ],
)
def test_only_public_values_are_printed(notebook, name, value, printed):
    """A path or a tool's name given as parameter is never printed; shipped names and stream ids are."""
    assert shown_value(declared_parameters(notebook)[name], value) == printed
