"""Pages 01 and 05 do work that grows with their input, never with its square: operations are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fragmentlab.corpus.batches import write_batch
from fragmentlab.corpus.streams import Stream
from fragmentlab.reports.investigate import investigate
from fragmentlab.reports.provider_shapes import open_shapes
from fragmentlab.wire.events import body
from fragmentlab.wire.fragments import chunk, delta, fragment

SIZES = (100, 200, 400)
FINISH = chunk({}, "tool_calls")


def part(text: str = "1", index: int = 0, **said: Any) -> dict[str, Any]:
    """Return a chunk of one fragment."""
    return chunk(delta(fragment(index, {"name": None, "arguments": text}, **said)))


CONTENTS: dict[str, Callable[[int], list[Any]]] = {
    "like fragments": lambda n: [part("{", id="a"), *[part(id=None)] * n],
    "changing fragments": lambda n: [part("{", id="a"), *[part(id=None), part()] * (n // 2)],
    "faults": lambda n: [part("{", id="a"), *[part(id="")] * n],
    "fresh ids": lambda n: [part(id=f"c{number}") for number in range(n)],
    "texts": lambda n: [chunk({"content": "x"})] * n,
    "broken events": lambda n: ["x"] * n,
}
BATCHES: dict[str, Callable[[int], list[Stream]]] = {
    "sources": lambda n: [
        Stream(f"s{number}", body([part("{}", id="a"), FINISH]), provider=f"own {number}", pair=f"{number}")
        for number in range(n // 5)
    ],
    "fragments": lambda n: [Stream("s", body([*CONTENTS["changing fragments"](n), FINISH]))],
}


def operations(work: Callable[[], object]) -> int:
    """Count the calls and returns, of Python and of C, that the work takes."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def growth(work: Callable[[int], Callable[[], object]]) -> float:
    """How much more the second doubling of the input adds than the first: 2 where the work is linear."""
    works = [work(size) for size in SIZES]
    works[0]()  # what is only done once is not counted
    small, middle, large = map(operations, works)
    return (large - middle) / (middle - small)


@pytest.mark.parametrize("kind", CONTENTS)
def test_page_01_is_linear_in_the_recording(kind: str, tmp_path: Path) -> None:
    """Assembling, tables, alt text, explanations and the smallest stream like it."""
    given = {"batch": "", "stream": "", "tools": "", "rules": "keep-established", "reveal": False}

    def page(size: int) -> Callable[[], object]:
        file = tmp_path / f"{size}.sse"
        file.write_bytes(body([*CONTENTS[kind](size), FINISH]))

        def work() -> None:
            found = investigate(SimpleNamespace(**given, file=str(file)))
            for name in ("outcome", "figure", "timeline", "faults", "next_steps", "rule_sets", "conclusion"):
                getattr(found, name)()
            found.minimized()

        return work

    assert growth(page) < 2.2


@pytest.mark.parametrize("kind", BATCHES)
def test_page_05_is_linear_in_the_batch(kind: str, tmp_path: Path) -> None:
    """Every table, whatever the number of streams, sources, pairs and fragments."""
    facts = {"evidence": "captured", "provenance": "", "licence": "", "scrubbed": True}

    def page(size: int) -> Callable[[], object]:
        folder = write_batch(tmp_path / f"{size}", BATCHES[kind](size), name="b", **facts)  # type: ignore[arg-type]

        def work() -> None:
            found = open_shapes(SimpleNamespace(batches=str(folder), rules="keep-established"))
            for name in ("overview", "table", "refusals", "sizes", "size_table", "upstream", "conclusion"):
                getattr(found, name)()
            found.by_source("captured")

        return work

    assert growth(page) < 2.2


def test_counting_notices_a_square() -> None:
    """Work that looks at each pair is not taken for linear."""
    assert growth(lambda size: lambda: [len("") for _ in range(size) for _ in range(size)]) > 3.9
