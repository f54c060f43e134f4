"""Write a notebook back as it is committed: ``fragmentlab maintain notebooks``.

Runs each notebook with its defaults and keeps only the outputs of cells tagged ``nbval-check-output``;
everything else that a machine or a run leaves in a notebook goes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fragmentlab.files import scratch_folder, write_whole
from fragmentlab.reports.frame.build import plan_report
from fragmentlab.reports.frame.execute import execute

CHECKED = "nbval-check-output"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def committed_form(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """The notebook as git holds it: only checked outputs, no counts, the same metadata everywhere."""
    cells: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags", [])
        kept = {**cell, "metadata": {"tags": tags} if tags else {}}
        if cell["cell_type"] == "code":
            # nbval takes a cell without a count for one that was never run.
            count = sum(other["cell_type"] == "code" for other in cells) + 1 if CHECKED in tags else None
            kept["execution_count"] = count
            kept["outputs"] = [{**output, "execution_count": count} for output in cell["outputs"] if count]
        cells.append(kept)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def refresh(path: Path) -> str | None:
    """Run a notebook and write it back as it is committed; where it fails, leave it alone and say why."""
    plan = plan_report(str(path.parent), [path.stem], [])
    with scratch_folder() as scratch:
        [execution] = execute(plan.jobs, scratch, lambda _: None)
    if execution.passed:
        text = json.dumps(committed_form(execution.content), indent=1, ensure_ascii=False, sort_keys=True)
        write_whole(path, text + "\n")
    return execution.reason
