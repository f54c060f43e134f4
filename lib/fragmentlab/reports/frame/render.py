"""Turn executed notebooks into self-contained pages: no script, no network, code behind a toggle."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fragmentlab import __version__
from fragmentlab.disclosure import for_html
from fragmentlab.reports.frame.execute import Execution
from fragmentlab.reports.frame.parameters import Parameter

_TEMPLATES = Path(__file__).parent / "templates"
_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class ShownParameter:
    name: str
    value: str
    help: str


@dataclass(frozen=True)
class PageSection:
    title: str
    anchor: str


@dataclass(frozen=True)
class Page:
    """What the templates show of one run; every text is escaped there."""

    name: str
    title: str
    question: str
    passed: bool
    reason: str | None
    duration: str
    parameters: list[ShownParameter]
    sections: list[PageSection]


def page_of(execution: Execution, declared: Mapping[str, Parameter]) -> Page:
    """Describe one execution for its own page and for the index."""
    notebook = execution.job.notebook
    return Page(
        notebook.name,
        notebook.title,
        notebook.question,
        execution.passed,
        execution.reason,
        f"{execution.seconds:.1f} s",
        [ShownParameter(name, execution.job.shown[name], p.help) for name, p in declared.items()],
        _sections(execution.content),
    )


def notebook_html(page: Page, content: dict[str, Any]) -> str:
    """One executed, sanitized notebook as one HTML page."""
    import nbformat
    from nbconvert.exporters import HTMLExporter

    exporter = HTMLExporter(
        template_name="fragmentlab", extra_template_basedirs=[str(_TEMPLATES)], exclude_anchor_links=True
    )
    exporter.register_filter("shown", for_html)
    anchors = iter([section.anchor for section in page.sections])
    exporter.register_filter("anchored", lambda html: _anchored(html, anchors))
    body = {**content, "cells": _without_title(content["cells"])}
    html, _ = exporter.from_notebook_node(
        nbformat.reads(json.dumps(body), as_version=4), {"run": page, "version": __version__}
    )
    return html


def index_html(pages: Sequence[Page], notebooks_in_folder: int) -> str:
    """The overview of all runs of this report."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES / "fragmentlab"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.filters["shown"] = for_html
    template = environment.get_template("overview.html.j2")
    return template.render(runs=pages, summary=ran_line(pages, notebooks_in_folder), version=__version__)


def ran_line(pages: Sequence[Page], notebooks_in_folder: int) -> str:
    """One sentence on how the run went."""
    failed = sum(not page.passed for page in pages)
    ran = (
        f"{len(pages)} of {notebooks_in_folder} notebooks ran"
        if len(pages) < notebooks_in_folder
        else (f"{len(pages)} notebooks ran" if len(pages) > 1 else "One notebook ran")
    )
    return f"{ran}: {len(pages) - failed} passed, {failed} failed."


def _sections(content: dict[str, Any]) -> list[PageSection]:
    sources = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "markdown"]
    titles = [title.replace("`", "") for source in sources for title in _HEADING.findall(source)]
    return [PageSection(title, f"{number}-{_slug(title)}") for number, title in enumerate(titles, 1)]


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _anchored(html: str, anchors: Iterator[str]) -> str:
    """Rendered Markdown whose headings are what the list of sections links to, in the order of both."""
    return re.sub(r"<h2(?=>)", lambda _: f'<h2 id="{for_html(next(anchors, ""))}"', html)


def _without_title(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first text cell without the title and question that head the page."""
    if not cells or cells[0]["cell_type"] != "markdown":
        return cells
    rest = "".join(cells[0]["source"]).split("\n\n", 2)[2:]
    return [*([{**cells[0], "source": rest[0]}] if rest else []), *cells[1:]]
