"""The task that control and target share: read some pages, save one report, finish.

All of it follows from the seed.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from fragmentlab.errors import InputError

REPORT_NAME = "report.md"
PRIVATE_SOURCE = "private.txt"
"""A source that every workspace of the task holds and that the host's policy never allows."""
SIZES = {"pages": (1, 99), "kilobytes": (1, 900), "parallel": (1, 64), "seed": (0, 2**63 - 1)}
"""Smallest and largest value of each size; 900 KiB of report stay below the assembler's argument limit."""
_WORDS = (
    "assembly bräuche chunk délai event fragment gateway hôte index journal køb limit měření null observed "
    "повтор quoi response stream 数据 tool 未知 verdict 🧩🪢🧵🔧 🔎🧪🧭 zone"
).split()


@dataclass(frozen=True)
class Task:
    """Sizes of the task: pages, KiB of report, reads asked for in one response; and every text's seed."""

    pages: int = 3
    kilobytes: int = 8
    parallel: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        for name, (low, high) in SIZES.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} must be from {low} to {high}")

    def at_least(self, pages: int = 1, parallel: int = 1) -> Task:
        """The same task, made large enough for a scenario that needs several pages or parallel calls."""
        return Task(max(self.pages, pages), self.kilobytes, max(self.parallel, parallel), self.seed)

    def page_names(self) -> list[str]:
        """Names of the sources to read, in order."""
        return [f"page-{number:02}.txt" for number in range(1, self.pages + 1)]

    def sources(self) -> dict[str, str]:
        """Every source of the workspace: the pages, and the private one."""
        return {name: self._text(name, 24) for name in [*self.page_names(), PRIVATE_SOURCE]}

    def report(self, results: Sequence[str]) -> str:
        """The report that a model writes from the tool results of its reads, ``kilobytes`` KiB long.

        It depends on every result and on their order, so that a result that reached the
        wrong call changes it.
        """
        texts = [_text_of(result) for result in results] or [self._text("report", 24)]
        head = ["# Report", *(f"- {number}: {_digest(text)}" for number, text in enumerate(texts, 1)), ""]
        lines = [line for text in texts for line in text.splitlines()] or [""]
        wanted, size = self.kilobytes << 10, len("\n".join(head).encode())
        order = random.Random(f"{self.seed} order")
        while size < wanted:
            head.append(order.choice(lines)[:200] or "-")
            size += len(head[-1].encode()) + 1
        return "\n".join(head) + "\n"

    def prompt(self) -> list[dict[str, str]]:
        """The messages that open the conversation; plain enough for a small real model."""
        work = (
            f"First call list_sources. Then read {', '.join(self.page_names())} with read_source. "
            f"Then write a short report with save_report, target {REPORT_NAME}. Then answer: done."
        )
        system = "You work with tools. Call one tool at a time unless several are needed."
        return [{"role": "system", "content": system}, {"role": "user", "content": work}]

    def _text(self, name: str, lines: int) -> str:
        words = random.Random(f"{self.seed} {name}")
        return "\n".join(" ".join(words.choices(_WORDS, k=9)) for _ in range(lines)) + "\n"


def _text_of(result: str) -> str:
    """The text inside this kit's own tool result, or the result itself where another client answers."""
    try:
        data = json.loads(result)
    except ValueError:
        return result
    text = data.get("text") if isinstance(data, dict) else None
    return text if isinstance(text, str) else result


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
