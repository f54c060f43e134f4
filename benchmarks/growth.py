"""How the time of each kind of work grows with its input: one row per thing that can grow.

Run ``python benchmarks/growth.py``. Each row is timed at n, 2n and 4n by this process's own processor time,
the best of the rounds. A ratio near 2 means that the time grows as the input does, near 4 as its square; near
1 a limit ended the work or a fixed cost hides it, and a little above 2 is mostly memory that no cache holds.
``came to`` says what the largest input came to, as what is refused early costs little. It exits with 0
whatever it shows: the tests hold the growth, by counting work.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import io
import json
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from fragmentlab.assembler import Assembler, Limits
from fragmentlab.corpus.batches import write_batch
from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.minimize import minimized_vector
from fragmentlab.corpus.scrubbing.scrub import Scrubber
from fragmentlab.corpus.streams import Stream
from fragmentlab.reports.investigate import investigate
from fragmentlab.reports.provider_shapes import open_shapes
from fragmentlab.wire.events import body
from fragmentlab.wire.fragments import chunk, delta, fragment, pieces

Prepared = tuple[int, Callable[[], str]]
"""The bytes of an input, and the work that it is for, which returns what it came to."""
READ = 1 << 14
WIDE = Limits(event_bytes=1 << 26, arguments_bytes=1 << 26, schema_work=1 << 40)
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
ROW = b'1,"' + EVENT.replace(b'"', b'""') + b'"\n'
REQUEST = {"request": {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}}
NO_CHOICE: dict[str, Any] = {"choices": []}
ARRAY = {"type": "array", "items": {"$ref": "#/$defs/n"}}
DEFINITIONS = {"n": {"anyOf": [ARRAY, ARRAY | {"minItems": 1}]}}
EVIDENCE: Any = {"evidence": "captured", "provenance": "", "licence": "", "scrubbed": True}
PARTS_01 = "outcome figure timeline faults next_steps rule_sets conclusion minimized".split()
PARTS_05 = "overview table refusals sizes size_table upstream conclusion".split()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=100, help="per cent of the usual sizes (default 100)")
    parser.add_argument("--rounds", type=int, default=2, help="times that each is timed (default 2)")
    args = parser.parse_args()
    print(f"{'':46} {'seconds at':>23} {'last':>5} {'size':>8} {'seconds':>8}")
    print(f"work       what grows {'n':>24} {'n':>7} {'2n':>7} {'4n':>7} ratio      KiB  per MiB  came to")
    gc.freeze()  # or each collection would walk the libraries
    with tempfile.TemporaryDirectory() as folder:
        for prepare, knobs in KNOBS.items():
            for name, (usual, made) in knobs.items():
                n = max(1, usual * args.scale // 100)
                prepared = [prepare(made(size), Path(folder)) for size in (n, 2 * n, 4 * n)]
                print(row(f"{prepare.__name__:10} {name:25} {n:9,}", prepared, args.rounds), flush=True)
    gc.unfreeze()


def row(head: str, prepared: Sequence[Prepared], rounds: int) -> str:
    """Return a line of the table: the best time of each size, and what the largest came to."""
    came_to = prepared[0][1]()  # what is only done once is not timed
    best = []
    for _, work in prepared:
        seconds = []
        for _ in range(rounds):
            gc.collect()
            gc.disable()
            start = time.process_time()
            came_to = work()
            seconds.append(time.process_time() - start)
            gc.enable()
        best.append(min(seconds))
    shown = " ".join(f"{seconds:7.3f}" for seconds in best)
    size = prepared[-1][0]
    per_mib = best[2] / size * (1 << 20)
    return f"{head} {shown} {best[2] / best[1]:5.2f} {size / 1024:8,.1f} {per_mib:8.2f}  {came_to}"


def assembling(stream: Stream, _: Path) -> Prepared:
    """Assemble a stream as it is read from a server."""

    def work() -> str:
        assembler = Assembler(tools=stream.tools, limits=stream.limits)
        for at in range(0, len(stream.body), READ):
            assembler.feed(stream.body[at : at + READ])
        result = assembler.finish()
        return result.category or result.outcome

    return len(stream.body) + len(json.dumps(stream.tools)), work


def importing(file: tuple[str, Any], folder: Path) -> Prepared:
    """Import one file: its kind, and its bytes or a value for JSON."""
    kind, held = file
    data = held if isinstance(held, bytes) else json.dumps(held).encode()
    path = folder / f"{len(data)}.{kind}"
    path.write_bytes(data)

    def work() -> str:
        summary = Summary()
        found = sum(1 for _ in import_streams([str(path)], summary))
        return "; ".join([f"streams: {found:,}", *(why for _, why in summary.faults)])

    return len(data), work


def scrubbing(stream: Stream, _: Path) -> Prepared:
    """Scrub a stream and prove it."""
    return len(stream.body), lambda: f"bytes: {len(Scrubber().scrub(stream).body):,}"


def minimizing(stream: Stream, _: Path) -> Prepared:
    """Find the smallest stream that is refused for the same reason."""
    return len(stream.body), lambda: f"bytes: {len(json.dumps(minimized_vector(stream))):,}"


def notebook(streams: list[Stream], folder: Path) -> Prepared:
    """Compute what notebook 01 shows of a single stream, or notebook 05 of a batch of several."""
    batch = write_batch(Path(tempfile.mkdtemp(dir=folder)) / "b", streams, name="b", **EVIDENCE)
    parts, opened = (PARTS_05, open_shapes) if len(streams) > 1 else (PARTS_01, investigate)
    given = {"batches": str(batch), "batch": str(batch), "stream": streams[0].id, "file": "", "tools": ""}

    def work() -> str:
        page: Any = opened(SimpleNamespace(**given, rules="keep-established", reveal=False))
        for part in parts:
            getattr(page, part)()
        return f"streams: {len(page.streams_df()):,}; results: {len(page.results_df()):,}"

    return sum(len(stream.body) for stream in streams), work


def of_chunks(*chunks: Any, **known: Any) -> Stream:
    """Return a stream of these events and a finish."""
    return Stream("s", body([*chunks, chunk({}, "tool_calls")]), **known)


def called(arguments: str, size: int = 1 << 12, **known: Any) -> Stream:
    """Return a stream of one call, its arguments in pieces of a size."""
    texts = [fragment(0, {"arguments": piece}, id=None) for piece in pieces(arguments, size)]
    texts[0] |= {"id": "a", "function": {"name": "f", **texts[0]["function"]}}
    return of_chunks(*(chunk(delta(each)) for each in texts), **known)


def checked(schema: Any, value: Any, limits: Limits = WIDE) -> Stream:
    """Return a stream of one call whose tool has the schema for its only argument."""
    tool = {"name": "f", "schema": {"$defs": DEFINITIONS, "properties": {"v": schema}}}
    return called(json.dumps({"v": value}), tools=(tool,), limits=limits)


def keys(n: int, form: str = "k{}") -> str:
    """Return an object of n keys as JSON."""
    return json.dumps({form.format(number): number for number in range(n)})


def answers(n: int) -> list[str]:
    """Return n short recorded answers, each unlike the others."""
    return [body([chunk({"content": f"{number}"}, "stop")]).decode() for number in range(n)]


def archive(n: int) -> bytes:
    """Return a ZIP archive of n answers."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        for number, text in enumerate(answers(n)):
            members.writestr(f"{number}.sse", text)
    return file.getvalue()


KNOBS: dict[Callable[[Any, Path], Prepared], dict[str, tuple[int, Callable[[int], Any]]]] = {
    assembling: {
        "fragments": (5_000, lambda n: called(json.dumps({"a": "x" * n}), 1)),
        "bytes of arguments": (2 << 20, lambda n: called(json.dumps({"a": "x" * n}), limits=WIDE)),
        "keys of a chunk": (10_000, lambda n: of_chunks(keys(n)[:-1] + ',"choices":[]}', limits=WIDE)),
        "levels of nesting": (50_000, lambda n: of_chunks('{"a":' * n + "1" + "}" * n, limits=WIDE)),
        "a line without end": (4 << 20, lambda n: Stream("s", b"data: " + b"x" * n, limits=WIDE)),
        "schema: uniqueItems": (9_000, lambda n: checked({"uniqueItems": True}, [[i] for i in range(n)])),
        "schema: pattern": (2 << 20, lambda n: checked({"pattern": "^(a+)+$"}, "a" * n + "!")),
        "schema: branching": (13, lambda n: checked(ARRAY, json.loads("[" * n + "1" + "]" * n), Limits())),
    },
    importing: {
        "blanks in a data line": (4 << 20, lambda n: ("sse", b'data: {"id":"x"' + b" " * n + b"}\n\n")),
        "object of lists": (5_000, lambda n: ("json", {f"k{i}": [1, "a"] for i in range(n)})),
        "list of unlike objects": (10_000, lambda n: ("json", [{f"k{i}": 1} for i in range(n)])),
        "bodies of one request": (500, lambda n: ("json", REQUEST | {"response": {"bodies": answers(n)}})),
        "members of gzip": (10_000, lambda n: ("gz", gzip.compress(b"\n") * n + gzip.compress(EVENT))),
        "log lines with a prefix": (3_000, lambda n: ("log", (b"2025 INFO " + EVENT) * n)),
        "rows of CSV": (2_000, lambda n: ("csv", b"id,response\n" + ROW * n)),
        "members of ZIP": (300, lambda n: ("zip", archive(n))),
        "nodes of YAML": (300, lambda n: ("yaml", yaml.safe_dump(answers(n)).encode())),
        "broken events in a list": (2_500, lambda n: ("json", ["data: {"] * n)),
    },
    scrubbing: {
        "characters of a key": (500_000, lambda n: of_chunks('{"' + "ab" * n + '":1}', limits=WIDE)),
        "keys": (2_000, lambda n: of_chunks(keys(n, "//{}"))),
        "nested broken objects": (2_000, lambda n: of_chunks('{"a":[' * n)),
        "fragments": (300, lambda n: called("{" + " " * n + "}", 1)),
    },
    minimizing: {
        "events past limit.events": (2_000, lambda n: of_chunks(*[NO_CHOICE] * n, limits=Limits(events=n))),
        "keys of broken arguments": (1_500, lambda n: called(keys(n)[:-1] + ",,}")),
    },
    notebook: {
        "01: fragments of a stream": (500, lambda n: [called("{" + " " * n, 1)]),
        "05: streams of a batch": (120, lambda n: [called(f'{{"a":{i}}}', 1) for i in range(n + 1)]),
    },
}
"""How an input is prepared -> what grows -> its usual n, and the input of a given n."""


if __name__ == "__main__":
    main()
