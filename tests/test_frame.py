"""The frame: one set of versions, a bare top level, a standalone assembler, a plain-spoken Makefile."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP_LEVEL = {
    "lib",
    "notebooks",
    "data",
    "tests",
    "docs",
    "benchmarks",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "environment.yml",
    "constraints.txt",
    "pyproject.toml",
    "Makefile",
    "LICENSE",
    ".ci",
    ".github",
}
"""docs/design.md, section 6; other dot files are allowed."""


def direct_dependencies(root: Path) -> set[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert extras["test"][0] == "fragmentlab[kit]"
    listed = project["dependencies"] + extras["kit"] + extras["test"][1:]
    return {canonicalize_name(Requirement(line).name) for line in listed}


def pins(lines: list[str]) -> dict[str, str]:
    """Read ``name==version`` lines, refusing anything looser and any name given twice."""
    found: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)", line)
        assert match, f"not an exact version: {line}"
        name = canonicalize_name(match[1])
        assert name not in found, f"pinned twice: {name}"
        found[name] = match[2]
    return found


@pytest.fixture(scope="module")
def constraints(root: Path) -> dict[str, str]:
    lines = (root / "constraints.txt").read_text().splitlines()
    return pins([line for line in lines if line and not line.startswith("#")])


@pytest.fixture(scope="module")
def environment(root: Path) -> dict:
    return yaml.safe_load((root / "environment.yml").read_text())


def pip_lines(environment: dict) -> list[str]:
    (section,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    return section


def test_direct_dependencies_are_pinned(root, constraints):
    """Every package that pyproject.toml names has one exact version in constraints.txt."""
    assert direct_dependencies(root) <= constraints.keys()


def test_conda_gets_the_same_packages(root, constraints, environment):
    """environment.yml lists the direct dependencies, at the same versions, and nothing else."""
    listed = pins([line for line in pip_lines(environment) if not line.startswith("-")])
    assert listed == {name: constraints[name] for name in direct_dependencies(root)}


def test_conda_is_held_to_the_constraints(environment):
    """environment.yml installs the kit itself, with the transitive versions of constraints.txt."""
    options = [line for line in pip_lines(environment) if line.startswith("-")]
    assert options == ["-c constraints.txt", "-e ."]


def test_conda_brings_the_supported_python(root, environment):
    """environment.yml and pyproject.toml allow the same Python versions."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    plain = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    assert plain == [f"python{project['requires-python']}", "pip"]


def test_everything_installed_is_pinned(constraints):
    """Every package that the kit and its tests pull in here is installed at its pinned version."""
    waiting, seen = [("fragmentlab", "test")], set()
    while waiting:
        name, extra = waiting.pop()
        for line in importlib.metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker and not need.marker.evaluate({"extra": extra}):
                continue
            wanted = [(canonicalize_name(need.name), each) for each in ("", *sorted(need.extras))]
            waiting += [pair for pair in wanted if pair not in seen]
            seen.update(wanted)
    installed = {name: importlib.metadata.version(name) for name, _ in seen if name != "fragmentlab"}
    assert installed == {name: constraints.get(name) for name in installed}


def test_top_level_is_bare(root):
    """The top folder holds only what docs/design.md, section 6 names, and dot files."""
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    tops = {path.split("/")[0]: "/" in path for path in listing.split("\0") if path}
    strangers = {name for name in tops.keys() - TOP_LEVEL if tops[name] or not name.startswith(".")}
    assert not strangers


def test_assembler_stands_alone():
    """Importing the assembler loads the standard library, jiter and no other part of the kit."""
    script = (
        "import sys, jiter; before = set(sys.modules); import fragmentlab.assembler; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    allowed = sys.stdlib_module_names | {"fragmentlab"}
    loaded = done.stdout.split()
    strangers = {name for name in loaded if name.split(".")[0] not in allowed}
    others = {
        name for name in loaded if name.startswith("fragmentlab.") and name.split(".")[1] != "assembler"
    }
    assert not strangers | others


LAYERS = (
    "errors assembler files formats disclosure wire corpus runtime subjects qualification reports commands "
    "cli __main__"
).split()
"""docs/design.md, section 6: each imports only what stands before it."""


def test_data_flows_one_way(root):
    """No package imports one that builds on it, at the top of a module or inside a function."""
    package = root / "lib" / "fragmentlab"
    upward = []
    for path in package.rglob("*.py"):
        layer = path.relative_to(package).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_bytes())) if layer in LAYERS else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fragmentlab."):
                used = node.module.split(".")[1]
                if used != layer and LAYERS.index(used) > LAYERS.index(layer):
                    upward.append(f"{path.relative_to(package)} imports {used}")
    assert not upward
    assert {path.name.removesuffix(".py") for path in package.iterdir() if path.suffix in ("", ".py")} <= {
        *LAYERS, "__init__", "__pycache__",
    }  # fmt: skip


def copy_of_makefile(root: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "a folder with blanks"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, folder)
    return folder


def make(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    outer = ("PYTHON", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    clean = {key: value for key, value in os.environ.items() if key not in outer}
    return subprocess.run(
        ["make", *words], cwd=folder, env=clean | environment, capture_output=True, text=True, timeout=60
    )


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@needs_make
def test_one_line_without_a_usable_python(root, tmp_path):
    """Where every Python on PATH is a shim that fails, make says so in one line and leaves nothing behind."""
    shims = tmp_path / "shims"
    shims.mkdir()
    for name in ("python3.13", "python3.12", "python3.11", "python3", "python"):
        (shims / name).write_text("#!/bin/sh\necho not found >&2\nexit 127\n")
        (shims / name).chmod(0o755)
    folder = copy_of_makefile(root, tmp_path)
    done = make(folder, "env", PATH=f"{shims}:{os.environ['PATH']}")
    message = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode == 2
    assert len(message) == 1
    assert message[0].startswith("No usable Python")
    assert not (folder / ".venv").exists()


@needs_make
def test_interrupted_install_leaves_no_stamp(root, tmp_path):
    """An install that fails is tried again, since only a finished one is stamped."""
    folder = copy_of_makefile(root, tmp_path)
    (folder / "pyproject.toml").write_text("not toml")
    done = make(folder, "env", f"PYTHON={sys.executable}", PIP_NO_INDEX="1")
    assert done.returncode == 2
    assert (folder / ".venv" / "pyvenv.cfg").exists()
    assert not (folder / ".venv" / ".installed").exists()
