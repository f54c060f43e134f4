"""The repository's notebooks: how they are committed, and how they run under plain papermill and nbval."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import papermill
import pytest

from fragmentlab.cli import main
from fragmentlab.files import kit_folder
from fragmentlab.reports.frame.catalog import list_notebooks, read_notebook
from fragmentlab.reports.frame.parameters import declared_parameters
from fragmentlab.reports.frame.refresh import CHECKED, committed_form
from fragmentlab.reports.frame.sanitize import FOOTER_TYPE
from tests.reports.frame.notebooks import CLOSE, code, write_notebook

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
    sources = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    assert notebook.title and notebook.question
    assert declared_parameters(notebook.path)
    assert f'check_parameters("{notebook.name}", globals())' in sources[1]


@all_notebooks
def test_papermill_reads_the_same_declaration(notebook):
    """``papermill --help-notebook`` shows each parameter with the type and help that the kit reads."""
    found = papermill.inspect_notebook(notebook.path)
    declared = declared_parameters(notebook.path)
    assert {name: facts["inferred_type_name"] for name, facts in found.items()} == {
        name: parameter.type.__name__ for name, parameter in declared.items()
    }
    helps = {name: facts["help"].removeprefix("[shown] ") for name, facts in found.items()}
    assert helps == {name: parameter.help for name, parameter in declared.items()}


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


def test_the_suite_runs_every_notebook(pytestconfig):
    """nbval is on and the notebooks are among the tests: their checked tables are compared there."""
    assert "notebooks" in pytestconfig.getini("testpaths")
    assert pytestconfig.getoption("nbval_lax")
    checked = [tag for notebook in NOTEBOOKS for tag in tags_of(read_notebook(notebook.path))]
    assert checked.count(CHECKED) >= len(NOTEBOOKS)


def tags_of(content):
    return [tag for cell in content["cells"] for tag in cell["metadata"].get("tags", [])]


def test_refreshed_as_it_is_committed(tmp_path):
    """``maintain notebooks`` runs a notebook and keeps the outputs of its checked cells only."""
    path = write_notebook(tmp_path, "01-kept", code("1 + n", CHECKED), code("2 + n"), code(CLOSE))
    assert main(["maintain", "notebooks", str(path)]) == 0
    content = read_notebook(path)
    assert content == committed_form(content)
    outputs = [cell["outputs"] for cell in content["cells"] if cell.get("outputs")]
    assert [output["data"]["text/plain"] for [output] in outputs] == [["4"]]


def test_a_failing_notebook_is_left_alone(tmp_path, capsys):
    """``maintain notebooks`` names a notebook that fails and does not touch its file."""
    path = write_notebook(tmp_path, "01-fails", code("1 / 0", CHECKED))
    before = path.read_bytes()
    assert main(["maintain", "notebooks", str(path)]) == 1
    assert path.read_bytes() == before
    assert capsys.readouterr().err.startswith("01-fails: ZeroDivisionError")
