"""Work and memory grow with the input and no faster, and one bad source never ends an import."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
import zstandard

from fragmentlab.corpus.importing.budget import Budget, Exhausted
from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.importing.values import check_size
from fragmentlab.files import WORKING
from tests.corpus.importing.bodies import BODY, CHUNKS, REQUEST, TEXT_BODY, URL

ATTACK = Path(__file__).resolve().parents[4] / "shared" / "attack"
SMALL = b'data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}\n\ndata: [DONE]\n\n'
CPU_SECONDS = 60
MEMORY_BYTES = 1 << 30


def exchange(number: int, request: object = REQUEST) -> dict[str, object]:
    return {"request": {"url": URL, "body": request}, "response": {"body": (SMALL % number).decode()}}


def lines(number: int, line: str) -> bytes:
    return (line + "\n").encode() * number


KNOBS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "an object of lists": ("a.json", lambda n: json.dumps({f"k{at}": [1, "a"] for at in range(n)}).encode()),
    "a list of unlike objects": ("a.json", lambda n: json.dumps([{f"k{at}": 1} for at in range(n)]).encode()),
    "exchanges": ("a.json", lambda n: json.dumps([exchange(at) for at in range(n // 8)]).encode()),
    "one request and many bodies": (
        "a.json",
        lambda n: json.dumps(
            {"request": REQUEST, "response": {"bodies": [(SMALL % at).decode() for at in range(n // 8)]}}
        ).encode(),
    ),
    "a request shared by aliases": (
        "a.yaml",
        lambda n: yaml.safe_dump([exchange(at, CHUNKS) for at in range(n // 32)]).encode(),
    ),
    "chunks": ("a.json", lambda n: json.dumps(CHUNKS * n).encode()),
    "log lines with a prefix": ("a.log", lambda n: lines(n, f"2025 INFO data: {json.dumps(CHUNKS[0])}")),
    "log lines of chunks": ("a.log", lambda n: lines(n, f"2025 INFO chunk: {json.dumps(CHUNKS[0])}")),
    "events that never close": ("a.log", lambda n: lines(n, 'INFO data: {"a":')),
    "lines that never close": ("a.log", lambda n: lines(n, 'x "choices" delta {"a": [')),
    "quotes that never close": ("a.log", lambda n: lines(n, "x 'data: {")),
    "strings of a program": ("a.ts", lambda n: lines(n, '"data: {\\"choices\\": []}\\n\\n",')),
    "records of a log": ("a.log", lambda n: lines(n, json.dumps({"level": 20, "raw": "data: {}"}))),
    "records that are no JSON": ("a.log", lambda n: b'{"a": 1}\n' + lines(n, '{"a":')),
    "HTTP messages": ("a.http", lambda n: (b"HTTP/1.1 200 OK\r\n\r\n" + SMALL % 1) * (n // 8)),
    "rows of a table": ("a.csv", lambda n: b"a,b\n" + lines(n, '1,"data: {""choices"": []}"')),
    "members of gzip": ("a.sse.gz", lambda n: gzip.compress(b"") * n + gzip.compress(BODY)),
    "members of ZIP": ("a.zip", lambda n: zipped([SMALL % at for at in range(n // 8)])),
    "elements of XML": ("a.xml", lambda n: b'<?xml version="1.0"?><items>' + b"<response>" * n),
}
"""What may grow in an input."""


def zipped(members: list[bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, member in enumerate(members):
            archive.writestr(f"{number}.sse", member)
    return file.getvalue()


def calls(path: Path) -> int:
    """Count the calls, of C functions too, that an import of one file makes."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        for _ in import_streams([str(path)], Summary()):
            pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("knob", KNOBS)
def test_work_grows_with_the_input(tmp_path, knob):
    """Twice as much more input takes at most a little more than twice as many more calls."""
    name, made = KNOBS[knob]
    counts = []
    for size in (64, 128, 256, 512):
        path = tmp_path / name
        path.write_bytes(made(size))
        counts.append(calls(path))
    grown = [after - before for before, after in pairwise(counts)]
    assert grown[2] < 2.4 * max(grown[1], 64), counts


RUNS = {
    "blank lines after a log": lambda n: 'INFO data: {"choices":[]}\n' + "\n" * n,
    "blank lines after a stream": lambda n: BODY.decode() + "\n" * n,
    "a word before data": lambda n: 'id,body\n1,"' + "x" * n + 'data: {""choices"":[]}"\n',
    "digits before data": lambda n: "1" * n + "data: {}\n",
    "words before data": lambda n: "x " * (n // 2) + "data: {}\n",
    "backslashes": lambda n: "INFO choices " + "\\" * n + "\n",
    "a constructor's name": lambda n: "choices A" + "Chunk" * (n // 5),
    "escaped quotes after values": lambda n: "[" + "1," * 10_001 + '\\"' * n,
    "commas": lambda n: "choices" + ", " * (n // 2),
    "braces after a head": lambda n: "HTTP/1.1 200 OK\r\n\r\n" + BODY.decode() + "}" * n,
}
"""What may stand many times in a row: a pattern that backtracks reads it again from each place."""


@pytest.mark.parametrize("run", RUNS)
def test_runs_are_matched_in_linear_time(tmp_path, run):
    """Ten times as long takes no forty times the processor time; where matching backtracks, a hundred."""
    taken = []
    for size in (20_000, 200_000):
        path = tmp_path / "a.log"
        path.write_text(RUNS[run](size))
        started = time.process_time()
        for _ in import_streams([str(path)], Summary()):
            pass
        taken.append(time.process_time() - started)
    assert taken[1] < 40 * max(taken[0], 0.01), taken


def nested(data: bytes, times: int) -> bytes:
    for _ in range(times):
        data = zipped([data] * 10)
    return data


def tarred(members: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for number in range(members):
            archive.addfile(tarfile.TarInfo(f"{number}.sse"))
    return file.getvalue()


def hostile() -> dict[str, tuple[bytes, str | None]]:
    """Files that are small and could take long or much, and what is said of them."""
    lists = b"[" + b"[]," * (5 << 20) + b"[]]"
    no_recording = "times its size"
    return {
        "lists.json.gz": (gzip.compress(lists), no_recording),
        "lists.json.bz2": (bz2.compress(lists), no_recording),
        "lists.json.xz": (lzma.compress(lists), no_recording),
        "lists.json.zst": (zstandard.compress(lists), no_recording),
        "lists.json": (lists[: 6 << 20] + b"[]]", "values; split it"),
        "zeros.sse.gz": (gzip.compress(b"data: " + b" " * (64 << 20)), no_recording),
        "nested.zip": (nested(b" " * 100_000, 6), "size could hold"),
        "members.tar.gz": (tarred(20_000), "more than 10,000 members"),
        "members.zip": (zipped([b""] * 10_001), "more than 10,000 members"),
        "empty.sse.gz": (gzip.compress(b"") * 80_000, None),
        "alias.yaml": (
            b"a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 10))
                for name in b"bcdefghi"
            ),
            "each alias counted",
        ),
        "flow.yaml": (b"a: [" + b"[]," * 2_000_000 + b"]", "values"),
        "blanks.sse": (b'data: {"id":"x"' + b" " * (4 << 20) + b"}\n\n", None),
        "blanks.log": (b"INFO data:" + b" " * (2 << 20) + b'{"id":\n', None),
        "line.txt": (b"a" * (32 << 20), None),
        "word.log": (b"a" * (1 << 20) + b' data: {"choices":[]}\n', None),
        "braces.log": (b'x "choices" delta\n' + b"{\n" * 100_000, "values; split it"),
        "digits.json": (b'{"' + b"1" * 5000 + b'": "data: {}"}', None),
        "number.json": (b"[" + b"1" * 5_000_000 + b"]", None),
    }


def limited(arguments: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that may take no more time and memory than it says."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    command = [sys.executable, "-m", "fragmentlab", *arguments]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, **options)


def test_small_files_cannot_take_long_or_much(tmp_path):
    """Bombs and inputs made for backtracking end within the limits, named; the good file is imported."""
    files = hostile()
    folder = tmp_path / "in"
    folder.mkdir()
    for name, (data, _) in files.items():
        (folder / name).write_bytes(data)
    (folder / "zz-good.sse").write_bytes(BODY)
    done = limited(["import", str(folder), "--json", "--out", str(tmp_path / "out")])
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    said = {Path(item["file"]).name: item["reason"] for item in report["skipped"]}
    assert {name for name, (_, why) in files.items() if why} <= said.keys()
    for name, (_, why) in files.items():
        assert why is None or why in said[name], name
    assert [Path(row["file"]).name for row in report["streams"]][-1] == "zz-good.sse"


@pytest.mark.skipif(not ATTACK.is_dir(), reason="needs ../shared/attack, which is not part of the kit")
def test_attacks_are_imported_within_limits(tmp_path):
    """The files of an earlier attack; an exchange that gave the same answer as another counts each time."""
    for file in sorted(ATTACK.iterdir()):
        done = limited(["import", str(file), "--out", str(tmp_path / file.name)])
        assert done.returncode in (0, 1)
        assert "Traceback" not in done.stderr
        assert "CANARY" not in done.stderr + done.stdout
    written = set()
    for number in range(3):
        out = tmp_path / f"again-{number}"
        assert limited(["import", str(ATTACK / "dup_log.json"), "--out", str(out)]).returncode == 0
        written.add((out / "streams.jsonl").read_bytes())
        assert len((out / "streams.jsonl").read_bytes().splitlines()) == 40
    assert len(written) == 1


def test_a_value_that_a_database_computes_costs_nothing(tmp_path):
    """A generated column of 100 MB in a file of 12 KB is not made; what is stored is read."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE a (x, y TEXT AS (printf('%.*c', 100000000, 'x')) VIRTUAL)")
        database.executemany("INSERT INTO a (x) VALUES (?)", [(BODY.decode(),)] * 2)
        database.commit()
    summary = Summary()
    assert len(list(import_streams([str(tmp_path / "a.db")], summary))) == 2
    assert summary.faults == []


def test_wide_and_deep_sources_are_named(tmp_path):
    """Many columns, and answers in answers, end their source alone; blanks before a stream end nothing."""
    files = {
        "a.csv": "," * 100_000 + '\ndata: {"choices":1}\n',
        "b.json": '{"response":' * 240 + '["data: {}"]' + "}" * 240,
        "c.sse": "\n" * 100_000 + BODY.decode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    summary = Summary()
    found = list(import_streams([str(tmp_path)], summary))
    assert [item.file.name for item in found] == ["c.sse"]
    assert [Path(where).name for where, _ in summary.faults][:1] == ["a.csv"]


def test_a_source_says_which_budget_it_passed():
    """Bytes and values are counted, and passing either is an end of the source with its reason."""
    budget = Budget(1)
    with pytest.raises(Exhausted, match="size could hold"):
        budget.take(b"x" * (64 << 20))
    with pytest.raises(Exhausted, match="values"):
        budget.visit(1 << 40)


SMALL_AND_MANY = {
    "broken events in a list": ("a.json", b"[" + b",".join([b'"data: {"'] * 200_000) + b"]", "values", 0),
    "broken events": ("a.sse", b"data: {x\n\n" * 200_000, "shorter events", 0),
    "bodies of one request": (
        "a.json",
        json.dumps(
            {"request": REQUEST, "response": {f"b{at}": (SMALL % at).decode() for at in range(5000)}}
        ).encode(),
        "shorter events",
        3750,
    ),
    "empty texts": ("a.json", b"[" + b",".join([b'""'] * 900_000) + b"]", "values", 0),
    "lists of numbers": ("a.json", b"[" + b",".join([b"[1]"] * 330_000) + b"]", "values", 0),
}
"""Files of a few megabytes, what is said to be too many in each, and how many streams may come before."""


@pytest.mark.parametrize("kind", SMALL_AND_MANY)
def test_many_small_things_pass_the_budget(tmp_path, kind):
    """The work of a file is bounded by its size: the budget ends it and says of what there were too many."""
    name, data, why, streams = SMALL_AND_MANY[kind]
    (tmp_path / name).write_bytes(data)
    summary = Summary()
    assert sum(1 for _ in import_streams([str(tmp_path / name)], summary)) <= streams
    assert [(why in said, "split it" in said) for _, said in summary.faults] == [(True, True)]


def test_no_recording_passes_the_budget_of_events():
    """Events of the size that servers send, and lists of octets, are taken in any number."""
    budget = Budget(1)
    for _ in range(100):
        budget.judge((b"data: " + b"x" * 100 + b"\n\n") * 20_000)
    check_size(json.dumps([100] * 400_000), Budget(1 << 20))


def test_pipes_sockets_and_files_that_vanish_are_named(tmp_path, command, monkeypatch):
    """What is no file is not waited for; a file that is gone when its turn comes is named."""
    folder = tmp_path / "in"
    folder.mkdir()
    os.mkfifo(folder / "a.fifo")
    with socket.socket(socket.AF_UNIX) as server:
        # Its name would be too long for a socket in a deep folder.
        monkeypatch.chdir(folder)
        server.bind("b.socket")
        (folder / "c.sse").write_bytes(TEXT_BODY)
        (folder / "d.sse").write_bytes(BODY)
        summary = Summary()
        found = import_streams([str(folder), "/dev/zero"], summary)
        first = next(found)
        (folder / "d.sse").unlink()
        rest = list(found)
    assert (first.file.name, rest) == ("c.sse", [])
    assert {Path(where).name for where, _ in summary.faults} == {"a.fifo", "b.socket", "d.sse", "zero"}
    [pipe] = [why for where, why in summary.faults if where.endswith("a.fifo")]
    assert pipe.startswith("is a pipe; let `assemble -` read it as standard input")


def test_a_closed_folder_does_not_end_what_it_stands_in(tmp_path, monkeypatch):
    """A folder that may not be read is named with the reason, and everything beside it is read."""
    folder = tmp_path / "in"
    (folder / "closed").mkdir(parents=True)
    (folder / "open").mkdir()
    (folder / "open" / "a.sse").write_bytes(BODY)
    listed, asked = os.scandir, os.stat

    def denied(call: Callable[..., object]) -> Callable[..., object]:
        def checked(path: object = ".", *arguments: object, **options: object) -> object:
            name = str(path)
            if (name.endswith("/closed") and call is listed) or "/closed/" in name:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
            return call(path, *arguments, **options)

        return checked

    monkeypatch.setattr(os, "scandir", denied(listed))
    monkeypatch.setattr(os, "stat", denied(asked))
    summary = Summary()
    found = list(import_streams([str(folder)], summary))
    assert [item.file.name for item in found] == ["a.sse"]
    assert summary.faults == [(str(folder / "closed"), "cannot be read: Permission denied")]


def test_a_link_to_a_batch_elsewhere_is_not_followed(tmp_path):
    """A batch is read where it stands, not by a link that leaves the folder; a dead link is named."""
    batch, folder = tmp_path / "batch", tmp_path / "in"
    batch.mkdir()
    folder.mkdir()
    (batch / "batch.json").write_text("{}")
    (folder / "a").symlink_to(batch)
    (folder / "b").symlink_to(tmp_path / "in" / "nothing")
    summary = Summary()
    assert list(import_streams([str(folder)], summary)) == []
    assert [why for _, why in summary.faults] == [
        "is a link that leaves the folder",
        "is a link that leads nowhere",
    ]


def test_a_killed_import_leaves_nothing_raw(tmp_path):
    """What a killed import had written is removed by the next one, which says so."""
    script = (
        "import os, signal, sys\n"
        "from fragmentlab.corpus.importing import streams\n"
        "from fragmentlab.cli import main\n"
        "read = streams.import_streams\n"
        "def killed(*args, **options):\n"
        "    for number, item in enumerate(read(*args, **options)):\n"
        "        if number == 1:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield item\n"
        "streams.import_streams = killed\n"
        "main(sys.argv[1:])\n"
    )
    for name, body in (("a.sse", BODY), ("b.sse", TEXT_BODY)):
        (tmp_path / name).write_bytes(body)
    arguments = ["import", str(tmp_path / "a.sse"), str(tmp_path / "b.sse"), "--no-scrub"]
    out = tmp_path / "batches" / "out"
    done = subprocess.run([sys.executable, "-c", script, *arguments, "--out", str(out)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert [path.name.startswith(WORKING) for path in out.parent.iterdir()] == [True]
    again = limited([*arguments, "--out", str(out)])
    assert again.returncode == 0, again.stderr
    assert "interrupted" in again.stderr
    assert list(out.parent.iterdir()) == [out]
    assert (out / ".gitignore").read_text() == "*\n"
