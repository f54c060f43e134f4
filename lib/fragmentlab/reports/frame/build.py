"""From the options of ``fragmentlab report`` to a folder of pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fragmentlab.files import write_whole
from fragmentlab.reports.frame.catalog import list_notebooks, notebooks_folder, select_notebooks
from fragmentlab.reports.frame.execute import Execution, Job, execute
from fragmentlab.reports.frame.parameters import (
    Parameter,
    declared_parameters,
    parse_assignments,
    shown_value,
    typed,
)
from fragmentlab.reports.frame.render import index_html, notebook_html, page_of, ran_line


@dataclass(frozen=True)
class Plan:
    """The jobs of one report, checked before any kernel starts."""

    jobs: Sequence[Job]
    declared: Mapping[str, Mapping[str, Parameter]]
    notebooks_in_folder: int


def plan_report(folder: str | None, only: Sequence[str], assignments: Sequence[str]) -> Plan:
    """Choose the notebooks and give each the parameters that it declares.

    Raises InputError for a missing folder, an unknown notebook, and a parameter that no chosen notebook
    declares or whose text does not fit the declared type.
    """
    available = list_notebooks(notebooks_folder(folder))
    chosen = select_notebooks(available, only)
    declared = {notebook.name: declared_parameters(notebook.path) for notebook in chosen}
    given = parse_assignments(assignments, {name: p for own in declared.values() for name, p in own.items()})
    jobs = []
    for notebook in chosen:
        own = declared[notebook.name]
        values = {name: typed(own[name], text) for name, text in given.items() if name in own}
        shown = {name: shown_value(p, values.get(name, p.default)) for name, p in own.items()}
        jobs.append(Job(notebook, values, shown))
    return Plan(jobs, declared, len(available))


def build_report(plan: Plan, out: Path, scratch: Path, say: Callable[[str], None]) -> int:
    """Run the plan's notebooks and write their pages, then the index; return how many notebooks failed.

    Raises InputError where a page cannot be written.
    """
    say(f"notebooks to run: {len(plan.jobs)}")
    ended: list[Execution] = []

    def write(execution: Execution) -> None:
        ended.append(execution)
        name = execution.job.notebook.name
        page = page_of(execution, plan.declared[name])
        write_whole(out / f"{name}.ipynb", json.dumps(execution.content, indent=1, ensure_ascii=False) + "\n")
        write_whole(out / f"{name}.html", notebook_html(page, execution.content))
        how = "passed" if execution.passed else f"FAILED ({execution.reason})"
        say(f"{len(ended)}/{len(plan.jobs)} {name} {how} in {page.duration}")

    executions = execute(plan.jobs, scratch, write)
    pages = [page_of(execution, plan.declared[execution.job.notebook.name]) for execution in executions]
    write_whole(out / "index.html", index_html(pages, plan.notebooks_in_folder))
    say(ran_line(pages, plan.notebooks_in_folder))
    return sum(not execution.passed for execution in executions)
