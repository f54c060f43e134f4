"""What the pages of the project say exists: links, paths, commands, options, formats and sections."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fragmentlab.cli import COMMANDS, _parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")
PLACE = re.compile(r"`((?:lib|tests|data|docs|notebooks|benchmarks|examples|\.github|\.ci)/[\w./-]*\w)/?`")
COMMAND = re.compile(r"(?:^|[`\s;|(])fragmentlab ((?:[a-z]+)(?: [^\n`#;|]*)?)", re.MULTILINE)
SECTION = re.compile(r"docs/design\.md, sections?\s+(\d)(?: (?:and|to) (\d))?")
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pages
def test_every_link_and_path_exists(page: Path) -> None:
    """A link inside the project leads to a file, and a path in code marks is one of the tree."""
    text = page.read_text("utf-8")
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [
        place
        for place in PLACE.findall(text)
        if not ((ROOT / place).exists() or (page.parent / place).exists() or is_example(place))
    ]
    assert missing == []


def is_example(place: str) -> bool:
    """Whether a path stands for many, such as a numbered notebook."""
    return "NN" in place


@pages
def test_every_command_and_option_exists(page: Path) -> None:
    """Each command that a page shows is one of the kit's, with options that it has."""
    unknown = [
        f"{command}: {word}"
        for line in COMMAND.findall(page.read_text("utf-8").replace("\\\n", " "))
        for command, word in unknown_words(line)
    ]
    assert unknown == []


def unknown_words(line: str) -> Iterator[tuple[str, str]]:
    command, *words = line.split()
    if command not in COMMANDS:
        if words or command not in PROSE:
            yield command, ""
        return
    known = _parser(command).format_usage() and options_of(command)
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(words)):
        if option not in known:
            yield command, option


PROSE = {"alone", "is"}
"""Words that may follow the name of the kit in a sentence."""


def options_of(command: str) -> set[str]:
    waiting = [action.choices[command] for action in _parser(command)._actions if action.dest == "command"]  # type: ignore[index]
    found: set[str] = set()
    while waiting:
        parser = waiting.pop()
        for action in parser._actions:
            found.update(action.option_strings)
            waiting += action.choices.values() if isinstance(action.choices, dict) else []
    return found


def test_the_design_names_every_command() -> None:
    """Section 8 of the design lists each command that a user has."""
    section = (ROOT / "docs" / "design.md").read_text("utf-8").partition("\n## 8.")[2].partition("\n## 9.")[0]
    named = set(
        re.findall(r"(?:fragmentlab|\|) ([a-z]+)\b", section.partition("```\n")[2].partition("```")[0])
    )
    assert named >= COMMANDS.keys()


def test_the_design_names_every_notebook_and_package() -> None:
    """Sections 6 and 9 list what is in the tree, and nothing else."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    listed = re.findall(r"^\| (\d\d-[a-z-]+) \|", text, re.MULTILINE)
    assert listed == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    tree = text.partition("\n## 6.")[2].partition("```\n")[2].partition("```")[0]
    packages = {path.parent.name for path in (ROOT / "lib" / "fragmentlab").glob("*/__init__.py")}
    assert {name for name in packages if not re.search(rf"^\s+{name}/", tree, re.MULTILINE)} == set()


def test_the_code_refers_to_sections_that_exist() -> None:
    """A comment that refers to the design names a section of it by the page's path."""
    sections = set(re.findall(r"^## (\d)\.", (ROOT / "docs" / "design.md").read_text("utf-8"), re.MULTILINE))
    files = [path for folder in ("lib", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    for path in files:
        text = path.read_text("utf-8")
        assert {number for pair in SECTION.findall(text) for number in pair if number} <= sections, path
        assert not re.search(r"\bDESIGN (section|\d)", text), path


def test_the_pages_hold_no_trace_of_a_machine() -> None:
    """No page names a folder of somebody's machine."""
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(home|root|work|Users|tmp)/", page.read_text("utf-8")), page.name


def test_pages_are_committed() -> None:
    """Every page that is checked here is one of the project's own."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = listing.splitlines()
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/design.md"} <= set(listed)
