"""The repository's notebooks: how they are committed, and how they run under plain papermill and nbval."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from fragmentlab.files import kit_folder
from fragmentlab.reports.frame.catalog import list_notebooks, read_notebook
from fragmentlab.reports.frame.parameters import declared_parameters
from fragmentlab.reports.frame.refresh import CHECKED, committed_form
from fragmentlab.reports.frame.sanitize import FOOTER_TYPE

NOTEBOOKS = list_notebooks(kit_folder() / "notebooks")
TIME_LIMIT = 300
LINES_OF_A_CELL = 10
all_notebooks = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)


def run(*command, cwd):
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )


@all_notebooks
def test_committed_without_what_a_run_leaves(notebook):
    """Only checked tables keep outputs; counts, times and machine metadata are not in git."""
    content = read_notebook(notebook.path)
    assert content == committed_form(content)


@all_notebooks
def test_title_question_parameters_check_end(notebook):
    """A notebook opens with a title and a question, checks its parameters next, and ends with a heading."""
    content = read_notebook(notebook.path)
    code = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    assert notebook.title and notebook.question
    assert declared_parameters(notebook.path)
    assert f'check_parameters("{notebook.name}", globals())' in code[1]


@all_notebooks
def test_cells_hold_no_logic(notebook):
    """Cells are short and call the library: no function, class, loop or branch of their own."""
    logic = (
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Lambda,
        ast.If,
        ast.For,
        ast.While,
        ast.Try,
    )
    for cell in read_notebook(notebook.path)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "parameters" not in cell["metadata"].get("tags", []):
            assert len(source.splitlines()) <= LINES_OF_A_CELL
            assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, logic)]


def test_plain_papermill_runs_the_defaults(tmp_path):
    """Anyone's papermill runs the notebook as it is, and its last cell leaves the footer."""
    ended = run("papermill", NOTEBOOKS[0].path, "out.ipynb", "--no-progress-bar", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    last = json.loads((tmp_path / "out.ipynb").read_text("utf-8"))["cells"][-1]
    assert FOOTER_TYPE in last["outputs"][0]["data"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["-p", "ruels", "reject-null"], "unknown parameter ruels, did you mean rules?"),
        (["-p", "stream", "007"], "stream must be text"),
    ],
    ids=["misspelt", "mistyped"],
)
def test_plain_papermill_fails_on_a_wrong_parameter(tmp_path, given, told):
    """A parameter that papermill would ignore or turn into a number fails the run in its first cell."""
    ended = run("papermill", NOTEBOOKS[0].path, "out.ipynb", "--no-progress-bar", *given, cwd=tmp_path)
    assert ended.returncode == 1
    assert told in ended.stderr


@all_notebooks
def test_checked_tables_are_current(notebook):
    """nbval finds the committed tables again."""
    tags = [tag for cell in read_notebook(notebook.path)["cells"] for tag in cell["metadata"].get("tags", [])]
    if CHECKED not in tags:
        pytest.skip("no cell of this notebook is tagged nbval-check-output")
    ended = run("pytest", "-q", "-p", "no:cacheprovider", "--nbval-lax", notebook.path, cwd=kit_folder())
    assert ended.returncode == 0, ended.stdout[-2000:]
