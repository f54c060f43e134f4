"""The guide for pandas prints what it says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

BLOCKS = re.compile(r"```python\n(?P<code>.*?)```\n(?:```text\n(?P<printed>.*?)```)?", re.DOTALL)


def test_each_question_is_answered_as_printed(root: Path) -> None:
    """All blocks run in order; each prints what stands below it, and answers in at most three lines."""
    names: dict[str, Any] = {}
    guide = (root / "docs/pandas.md").read_text(encoding="utf-8")
    blocks = list(BLOCKS.finditer(guide))
    assert sum(bool(block["printed"]) for block in blocks) == guide.count("```text") == 5
    for block in blocks:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(block["code"], names)  # noqa: S102 - the guide's own code
        lines = [line.rstrip() for line in output.getvalue().splitlines()]
        assert lines == (block["printed"] or "").splitlines(), block["code"]
        assert len(block["code"].splitlines()) <= 3
