"""The workspace: what is inside can be read and published, and nothing else can be reached."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fragmentlab.errors import InputError
from fragmentlab.formats import decode
from fragmentlab.runtime.policy import DEFAULT_POLICY, Policy
from fragmentlab.runtime.tools import Request
from fragmentlab.runtime.workspace import ToolError, Workspace, is_plain_name

OUTSIDE = "outside"
BAD_NAMES = [
    "", ".", "..", "../outside.txt", "/etc/passwd", "a/b", "a\\b", "\0", "a\0b", ".hidden", "a\nb", "x" * 129,
    "é" * 100, "\ud800", "\u202egnp.txt", "a/../b", "..\\x", "\x7f",
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "outside.txt").write_text(OUTSIDE, encoding="utf-8")
    return Workspace.create(tmp_path / "w", {"page-01.txt": "one", "page-02.txt": "zwei – 二"})


def _kind(act: object, *args: object) -> str:
    with pytest.raises(ToolError) as caught:
        act(*args)  # type: ignore[operator]
    return caught.value.kind


def test_plain_names_work(workspace: Workspace) -> None:
    """Sources are listed and read, a report is published whole and leaves nothing beside it."""
    assert workspace.list_sources() == ["page-01.txt", "page-02.txt"]
    assert workspace.read_source("page-02.txt") == "zwei – 二"
    workspace.save_report("bericht-é.md", b"text")
    assert workspace.reports() == ["bericht-é.md"]
    assert workspace.read_report("bericht-é.md") == b"text"


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_name_leads_out(workspace: Workspace, name: str) -> None:
    """Separators, dots, control and bidirectional characters, NUL and long names are refused."""
    assert not is_plain_name(name)
    assert _kind(workspace.read_source, name) == "bad_name"
    assert _kind(workspace.save_report, name, b"x") == "bad_name"
    assert workspace.reports() == []


def test_links_are_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    """A symbolic or a second hard link inside the sources is neither listed nor read."""
    sources = tmp_path / "w" / "sources"
    (tmp_path / "other.txt").write_text(OUTSIDE, encoding="utf-8")
    (sources / "soft.txt").symlink_to(tmp_path / "other.txt")
    os.link(tmp_path / "outside.txt", sources / "hard.txt")
    (sources / "loop.txt").symlink_to(sources / "loop.txt")
    assert workspace.list_sources() == ["page-01.txt", "page-02.txt"]
    assert {_kind(workspace.read_source, n) for n in ("soft.txt", "hard.txt", "loop.txt")} == {"not_a_file"}


@pytest.mark.parametrize("folder", ["sources", "reports"])
def test_linked_parent_is_refused(workspace: Workspace, tmp_path: Path, folder: str) -> None:
    """A folder that is replaced by a link is refused at once, and later for a workspace already open."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "page-01.txt").write_text(OUTSIDE, encoding="utf-8")
    (tmp_path / "w" / folder).rename(tmp_path / "w" / "moved")
    (tmp_path / "w" / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"needs a folder {folder}, not a link"):
        Workspace(tmp_path / "w")
    if folder == "sources":
        assert _kind(workspace.read_source, "page-01.txt") == "unavailable"
    else:
        assert _kind(workspace.save_report, "r.md", b"x") == "unavailable"
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["page-01.txt"]


def test_report_is_never_overwritten(workspace: Workspace, tmp_path: Path) -> None:
    """A taken name is refused and kept, whether a file, a folder, a link or a dangling link has it."""
    reports = tmp_path / "w" / "reports"
    workspace.save_report("file.md", b"first")
    (reports / "folder.md").mkdir()
    (reports / "link.md").symlink_to(tmp_path / "outside.txt")
    (reports / "dangling.md").symlink_to(tmp_path / "made.txt")
    before = workspace.reports()
    for name in before:
        assert _kind(workspace.save_report, name, b"second") == "exists"
    assert workspace.reports() == before
    assert workspace.read_report("file.md") == b"first"
    assert (tmp_path / "outside.txt").read_text(encoding="utf-8") == OUTSIDE
    assert not (tmp_path / "made.txt").exists()


def test_a_source_that_goes_meanwhile_is_not_listed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is removed between the listing and the look at it is left out."""
    listed = os.listdir

    def early(folder: int) -> list[str]:
        return [*listed(folder), "gone.txt"]

    monkeypatch.setattr(os, "listdir", early)
    assert "gone.txt" not in workspace.list_sources()


def test_odd_sources_are_told_apart(workspace: Workspace, tmp_path: Path) -> None:
    """A missing, huge, binary or special file gives its own kind, and a FIFO does not block."""
    sources = tmp_path / "w" / "sources"
    (sources / "binary.txt").write_bytes(b"\xff\xfe")
    (sources / "huge.txt").write_bytes(b"x" * ((1 << 20) + 1))
    (sources / "folder.txt").mkdir()
    os.mkfifo(sources / "fifo.txt")
    names = ("missing.txt", "binary.txt", "huge.txt", "folder.txt", "fifo.txt")
    kinds = [_kind(workspace.read_source, name) for name in names]
    assert kinds == ["not_found", "not_text", "too_large", "not_a_file", "not_a_file"]


def test_leftovers_are_removed(workspace: Workspace, tmp_path: Path) -> None:
    """What a killed run left beside the reports goes, and a report stays."""
    workspace.save_report("r.md", b"x")
    (tmp_path / "w" / "reports" / ".part-0123").write_bytes(b"half")
    workspace.remove_leftovers()
    assert workspace.reports() == ["r.md"]


@pytest.mark.parametrize(
    "name", ["page-../x.txt", "page-/../../x.txt", "private.txt", "Page-01.txt", "page-01.txt\0"]
)
def test_patterns_do_not_reach_further(name: str) -> None:
    """A pattern matches plain names alone, so that no separator hides behind its star."""
    assert not DEFAULT_POLICY.allows(Request("read_source", "id", "", {"source": name}))
    assert DEFAULT_POLICY.allows(Request("read_source", "id", "", {"source": "page-01.txt"}))


@pytest.mark.parametrize(
    "change",
    [
        {"allow": {"shell": True}},
        {"allow": {"read_source": True}},
        {"allow": {"list_sources": ["*"]}},
        {"retry": {"times": 11, "categories": []}},
        {"retry": {"times": True, "categories": []}},
        {"retry": {"times": 1, "categories": ["authorization.denied"]}},
        {"retry": {"times": 1, "categories": ["nope"]}},
        {"more": 1},
    ],
)
def test_bad_policy_is_refused(change: dict[str, object]) -> None:
    """A policy with an unknown tool, field or category, or that retries a denial, is not taken."""
    good = {"schema": "fragmentlab-policy-v1", "allow": {}, "retry": {"times": 0, "categories": []}}
    policy = decode(json.dumps(good), Policy, "policy.json")
    assert policy.first_denied([Request("list_sources", "id", "{}", {})]) == 1
    with pytest.raises(InputError, match="policy"):
        decode(json.dumps({**good, **change}), Policy, "policy.json")
