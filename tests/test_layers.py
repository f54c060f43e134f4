"""Installed in layers: the wheel holds all that the kit needs, and its base runs without the kit.

Each environment here is new and holds the built wheel alone, installed by pip, beside what its layer may use:
jiter and msgspec for the base, every package of this environment for the kit. Nothing of the checkout is on
its path, and commands run in a folder of their own. It is not shown that pip finds every dependency.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from fragmentlab.cli import COMMANDS
from fragmentlab.wire.events import body

CALL = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
BASE = {"assemble", "explain"}
"""What the base is for."""
WORKING_WITHOUT = {"import", "scrub", "minimize", "subjects", "synth"}
"""Commands that happen to need nothing of the kit's."""
MINIMAL = {
    "import": ("ok.sse", "--out", "batch"),
    "scrub": ("missing", "--out", "batch"),
    "minimize": ("ok.sse", "--category", "identity.missing"),
    "synth": ("--streams", "1", "--seed", "1", "--out", "batch"),
    "qualify": ("captured-local", "--revision", "x"),
    "compare": ("keep-established", "reject-null-reconstruction"),
    "runs": ("list",),
    "note": ("--revision", "x"),
    "provider": ("--scenario", "target"),
    "record": ("--upstream", "http://127.0.0.1:9", "--out", "recorded"),
    "subjects": ("list",),
    "maintain": ("schemas", "--out", "."),
}
"""Command -> arguments with which it would do its work."""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, root)
    return next(folder.glob("*.whl"))


def pip(python: str | Path, *words: str | Path) -> None:
    """Run this environment's pip for another interpreter."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", *map(str, words)]
    subprocess.run([*command, "--no-index"], check=True, timeout=120, capture_output=True)


def environment(folder: Path, wheel: Path) -> Path:
    """A new environment that holds the wheel alone; return its site-packages."""
    venv.create(folder, symlinks=True)
    pip(folder / "bin/python", "install", "--no-deps", wheel)
    return next(folder.glob("lib/python*/site-packages"))


def write_stream(folder: Path) -> None:
    """Leave a recorded stream with one good call."""
    chunks = [{"delta": {"tool_calls": [CALL]}}, {"delta": {}, "finish_reason": "stop"}]
    (folder / "ok.sse").write_bytes(body({"choices": [choice]} for choice in chunks))


class Layer:
    """An installed command line, run in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.command, self.here = folder / "env/bin/fragmentlab", folder / "here"
        self.here.mkdir()
        write_stream(self.here)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [self.command, *words],
            cwd=self.here, env=clean, text=True, timeout=120, capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Layer:
    """The command line where only the base dependencies are installed."""
    folder = tmp_path_factory.mktemp("base")
    packages = environment(folder / "env", wheel)
    for name in ("jiter", "msgspec"):
        spec = importlib.util.find_spec(name)
        assert spec and spec.origin
        (packages / name).symlink_to(Path(spec.origin).parent)
    return Layer(folder)


@pytest.fixture(scope="module")
def kit(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Layer:
    """The command line where every dependency is installed and the kit itself is not editable."""
    folder = tmp_path_factory.mktemp("kit")
    packages = environment(folder / "env", wheel)
    # The .pth file of an editable kit in that folder is not followed: it lies in no site directory.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Layer(folder)


def test_the_wheel_carries_the_data_and_the_notebooks(root: Path, wheel: Path) -> None:
    """Whatever stands in lib, data and notebooks is in the wheel, and nothing else is."""
    folders = {"lib/fragmentlab": "fragmentlab", "data": "fragmentlab/kit/data"}
    folders["notebooks"] = "fragmentlab/kit/notebooks"
    expected = {
        f"{place}/{path.relative_to(root / folder).as_posix()}"
        for folder, place in folders.items()
        for path in (root / folder).rglob("*")
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)
    }
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected


def test_the_base_assembles_and_explains(base: Layer) -> None:
    """The assembler alone needs no more than its own dependency."""
    assembled = base("assemble", "ok.sse")
    assert (assembled.returncode, assembled.stderr) == (0, "")
    assert assembled.stdout.startswith("accepted")
    assert base("assemble", "ok.sse", "--json", "--rules", "data/rules/empty-clears.json").returncode == 0
    (base.here / "cassette.yaml").write_text("http_interactions: []\n")
    triaged = base("assemble", "ok.sse", "cassette.yaml")
    (base.here / "cassette.yaml").unlink()
    assert triaged.returncode == 1 and triaged.stdout.startswith("accepted")
    assert "cassette.yaml: needs the kit to be read: pip install 'fragmentlab[kit]'" in triaged.stderr
    explained = base("explain", "identity.conflict")
    assert (explained.returncode, explained.stderr) == (0, "")


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - BASE))
def test_every_other_command_says_what_it_needs(base: Layer, command: str) -> None:
    """In one line and exit 2 before anything is written, unless it works without; its help is shown."""
    before = os.listdir(base.here)
    done = base(command, *MINIMAL.get(command, ()))
    if command not in WORKING_WITHOUT:
        assert done.stderr == f"fragmentlab {command}: needs the kit: pip install 'fragmentlab[kit]'\n"
        assert (done.returncode, done.stdout, os.listdir(base.here)) == (2, "", before)
    assert "internal error" not in done.stderr
    assert base(command, "--help").returncode == 0


def test_an_installed_kit_works_from_any_folder(kit: Layer) -> None:
    """Its own vectors, batches and runs are found; what it makes goes to the folder it runs in."""
    checked = kit("vectors", "identity.json", "name.json")
    assert checked.returncode == 0, checked.stderr
    made = kit("synth", "--streams", "5", "--seed", "1", "--out", "made")
    assert (made.returncode, made.stdout) == (0, "made\n"), made.stderr
    sources = ("captured-local", "data/batches/synthetic-identity", "data/vectors")
    recorded = kit("qualify", *sources, "--revision", "x")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.startswith("runs/x-")
    compared = kit("compare", "keep-established", "x")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "keep-established" in kit("runs", "list").stdout
    planned = kit("report", "--only", "01", "-p", "no_such_parameter=1")
    assert (planned.returncode, planned.stderr.count("\n")) == (2, 1)
    assert "no_such_parameter" in planned.stderr


STARTED = [["--help"], ["--version"], ["explain", "completion.length"], ["assemble", "ok.sse"]]


@pytest.mark.parametrize("words", STARTED, ids=" ".join)
def test_the_assembler_starts_without_the_kit(words: list[str], tmp_path: Path) -> None:
    """Where everything is installed, assemble and explain load jiter and msgspec alone."""
    write_stream(tmp_path)
    script = (
        "import sys, jiter, msgspec; before = set(sys.modules)\n"
        "from fragmentlab.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert set(done.stderr.split()) - sys.stdlib_module_names == {"fragmentlab"}
