"""``fragmentlab import``: bad input is named and stops nothing, and nothing of a recording leaves with the
batch."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
import yaml

from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.importing.budget import MAX_BYTES
from fragmentlab.corpus.importing.sources import MAX_FILE_BYTES
from tests.corpus.importing.bodies import ANSWER, BODY, CHUNKS, REQUEST, TEXT_BODY, URL

CONTAINERS = Path(__file__).resolve().parents[3] / "shared" / "containers"
FOUND_MORE = {
    # It holds seven recorded exchanges with tool calls and one without; the index lists the first three.
    "opentelemetry-java-instrumentation--io.opentelemetry.instrumentation.openai.v1_1.abstractchattest"
    ".streamtoolcalls.yaml": 7
}
PICTURE = re.compile(r"base64,([A-Za-z0-9+/=]+)")
MEMORY_BYTES = 3 << 30
SECONDS = 120
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


BAD = {
    "a YAML bomb": ("bomb.yaml", BOMB.encode(), "each alias counted"),
    "an alias into itself": ("cycle.yaml", b"a: &a [*a]\n", "nested deeper"),
    "deep YAML": ("deep.yaml", b"[" * 500 + b"]" * 500, "nested"),
    "deep block YAML": ("deep.yml", b"".join(b" " * n + b"a:\n" for n in range(400)), "nested deeper"),
    "deep JSON": ("deep.json", b"[" * 200_000 + b"]" * 200_000, "nested too deeply"),
    "JSON that is too deep to search": ("deep.json", b"[" * 400 + b"]" * 400, "nested deeper"),
    "broken JSON": ("a.json", b'{"response": "data: ', "not valid JSON"),
    "broken YAML": ("a.yaml", b"a: 'data: {\nb: [", "not valid YAML"),
    "broken gzip": ("a.sse.gz", gzip.compress(BODY)[:30] + b"\xff" * 30, "does not unpack"),
    "UTF-16 that is none": ("a.json", b"\xff\xfe\x00\xd8\x00", "UTF-16"),
    "a HAR with a cut body": (
        "a.har",
        json.dumps({"log": {"entries": [{"request": {"url": URL}, "response": {
            "content": {"size": 5000, "text": BODY.decode()[:400]}}}]}}).encode(),
        "only a part of the body",
    ),
    "a packed body that does not unpack": (
        "a.yaml",
        yaml.safe_dump({"response": {"body": {"string": gzip.compress(BODY)[:20] + b"\xff" * 40}}}).encode(),
        "does not unpack",
    ),
    "assembled messages": ("t.json", json.dumps({"resourceSpans": []}).encode(), "only assembled messages"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_named_and_the_others_are_read(tmp_path, command, kind):
    """One line says which file and why; the good file beside it is imported; the exit status is 1."""
    name, data, why = BAD[kind]
    write(tmp_path / "in" / name, data)
    write(tmp_path / "in/good.sse", BODY)
    done = command("import", tmp_path / "in", "--out", tmp_path / "out")
    assert done.status == 1
    assert done.last_line == str(tmp_path / "out")
    assert open_batch(tmp_path / "out").count == 1
    (line,) = [line for line in done.err.splitlines() if line.startswith("skipped:")]
    assert name in line and why in line
    assert "Traceback" not in done.err


def limited(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that may not take more memory than it says."""
    return subprocess.run(
        [sys.executable, "-m", "fragmentlab", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )


@pytest.fixture(scope="module")
def gzip_bomb() -> bytes:
    """Zeros that unpack to more than the limit, packed twice over in members."""
    member = gzip.compress(b"data: " + b" " * (64 << 20))
    return member * (MAX_BYTES // (64 << 20) + 1)


def test_what_is_too_large_is_refused_within_memory(tmp_path, gzip_bomb):
    """A 2 GB file and a gzip bomb, plain and in Base64, are refused by a stated limit."""
    folder = tmp_path / "in"
    write(folder / "good.sse", BODY)
    write(folder / "bomb.sse.gz", gzip_bomb)
    write(folder / "bomb.yaml", yaml.safe_dump({"response": {"body": {"string": gzip_bomb}}}).encode())
    for name, start in (("huge.har", b'{"log": '), ("huge.yaml", b"interactions: "), ("huge.sse", b"data: ")):
        with write(folder / name, start).open("r+b") as file:
            file.truncate(2 << 30)
    done = limited(["import", str(folder), "--out", str(tmp_path / "out")])
    assert done.returncode == 1, done.stderr
    skipped = [line for line in done.stderr.splitlines() if line.startswith("skipped:")]
    assert len(skipped) == 5
    assert sum("times its size" in line for line in skipped) == 2
    assert sum("larger than 256 MiB" in line for line in skipped) == 2
    assert sum("a line of more than 256 MiB" in line for line in skipped) == 1
    assert open_batch(tmp_path / "out").count == 1


def test_long_json_lines_are_streamed(tmp_path):
    """JSON Lines of any size are read line by line."""
    line = (
        json.dumps({"request": {"url": URL}, "response": {"body": ANSWER, "padding": "x" * (1 << 20)}}) + "\n"
    )
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for _ in range((MAX_FILE_BYTES >> 20) + 2):
            file.write(line)
        file.write(json.dumps({"request": {"url": URL}, "response": {"body": BODY.decode()}}) + "\n")
    done = limited(["import", str(path), "--out", str(tmp_path / "out")])
    assert done.returncode == 0, done.stderr
    assert open_batch(tmp_path / "out").count == 1


def test_links_out_of_a_folder_are_not_followed(tmp_path, command):
    """A link that leaves the named folder is named and skipped; one that stays inside is the same file
    once."""
    write(tmp_path / "secret/other.sse", TEXT_BODY)
    write(tmp_path / "in/good.sse", BODY)
    os.symlink(tmp_path / "secret/other.sse", tmp_path / "in/link.sse")
    os.symlink(tmp_path / "secret", tmp_path / "in/linked")
    os.symlink(tmp_path / "in/good.sse", tmp_path / "in/same.sse")
    os.symlink("..", tmp_path / "in/loop")
    done = command("import", tmp_path / "in", "--out", tmp_path / "out")
    assert done.status == 1
    assert done.err.count("is a link that leaves the folder") == 3
    assert open_batch(tmp_path / "out").count == 1


def test_names_that_collide_stay_two_streams(tmp_path, command):
    """Files of one name in two folders are two streams; the same bytes twice get two ids."""
    write(tmp_path / "in/a/x.sse", BODY)
    write(tmp_path / "in/b/x.sse", TEXT_BODY)
    write(tmp_path / "in/c/x.sse", BODY)
    assert command("import", tmp_path / "in", "--out", tmp_path / "out").status == 0
    streams = list(open_batch(tmp_path / "out").streams())
    assert len({stream.id for stream in streams}) == 3


def test_sources_are_files_folders_and_globs(tmp_path, command):
    """A glob takes what it matches, a file is read once however it is named, a missing one is a fault."""
    first = write(tmp_path / "in/a.sse", BODY)
    write(tmp_path / "in/b.txt", TEXT_BODY)
    done = command("import", first, tmp_path / "in/*.sse", tmp_path / "in/**/a.*", "--out", tmp_path / "one")
    assert (done.status, open_batch(tmp_path / "one").count) == (0, 1)
    done = command("import", first, tmp_path / "none.sse", "--out", tmp_path / "two")
    assert (done.status, open_batch(tmp_path / "two").count) == (1, 1)
    assert "none.sse: is not there" in done.err


def test_nothing_found_writes_nothing(tmp_path, command):
    """Without a stream there is no batch, and the summary says what there was."""
    write(tmp_path / "in/answer.json", json.dumps({"response": ANSWER}).encode())
    done = command("import", tmp_path / "in", "--out", tmp_path / "out")
    assert (done.status, done.out) == (1, "")
    assert "answers that were not streamed: 1" in done.err
    assert not (tmp_path / "out").exists()


def test_an_existing_batch_is_never_overwritten(tmp_path, command):
    """The folder to write must not exist."""
    path = write(tmp_path / "a.sse", BODY)
    done = command("import", path, "--out", tmp_path)
    assert (done.status, done.err.count("\n")) == (2, 1)


def test_lost_blank_lines_and_stray_bytes_are_noted(tmp_path, command):
    """What is unusual but usable is kept as recorded, and said."""
    write(tmp_path / "in/lost.sse", BODY.replace(b"\n\n", b"\n"))
    write(tmp_path / "in/latin.sse", TEXT_BODY.replace(b"hello", b"h\xe9llo"))
    write(tmp_path / "in/wide.json", json.dumps({"response": BODY.decode()}).encode("utf-16"))
    done = command("import", tmp_path / "in", "--out", tmp_path / "out")
    assert done.status == 0
    for note in ("blank lines between events are missing, kept as recorded: 1", "read as UTF-16: 1"):
        assert note in done.err


def test_a_raw_batch_says_where_it_may_not_go(tmp_path, command):
    """--no-scrub marks the batch, hides it from git, warns, and alone keeps places and names."""
    path = write(
        tmp_path / "a.json", json.dumps({"interactions": [{"response": {"body": BODY.decode()}}]}).encode()
    )
    done = command("import", path, "--no-scrub", "--out", tmp_path / "raw")
    assert done.status == 0
    assert "not in git" in done.err
    batch = open_batch(tmp_path / "raw")
    assert not batch.manifest.scrubbed
    assert (tmp_path / "raw/.gitignore").read_text() == "*\n"
    (stream,) = batch.streams()
    assert stream.body == BODY
    assert batch.manifest.places[stream.id].endswith("interactions[0].response.body")
    assert command("import", path, "--out", tmp_path / "clean").status == 0
    assert not open_batch(tmp_path / "clean").manifest.places


def test_import_scrub_export_import_gives_the_same_batch(tmp_path, command):
    """Scrubbed while importing or afterwards, and imported again as a batch or as lines: the same streams."""
    write(tmp_path / "in/a.sse", BODY)
    write(tmp_path / "in/b.jsonl", b"".join(json.dumps(chunk).encode() + b"\n" for chunk in CHUNKS))
    write(tmp_path / "in/c.json", json.dumps(
        {"request": {"url": "https://llm.example.com/v1/chat/completions", "body": REQUEST},
         "response": {"body": TEXT_BODY.decode()}}).encode())  # fmt: skip
    steps = [
        ("import", tmp_path / "in", "--out", tmp_path / "one"),
        ("import", tmp_path / "in", "--no-scrub", "--out", tmp_path / "raw"),
        ("scrub", tmp_path / "raw", "--out", tmp_path / "two"),
        ("import", tmp_path / "one", "--out", tmp_path / "three"),
        ("import", tmp_path / "one/streams.jsonl", "--out", tmp_path / "four"),
        ("import", tmp_path / "in", "--parquet", "--out", tmp_path / "five"),
        ("import", tmp_path / "five", "--out", tmp_path / "six"),
    ]
    for step in steps:
        assert command(*step).status == 0
    wanted = list(open_batch(tmp_path / "one").streams())
    assert len(wanted) == 3
    for name in ("two", "three", "four", "five", "six"):
        assert list(open_batch(tmp_path / name).streams()) == wanted, name


def canary_capture(folder: Path) -> Path:
    """A cassette in which every text and key that could be private is a word of its own, its file name
    too."""
    planted = iter(f"Wq{number}Zj" for number in range(1000, 2000))
    literal = ("chat.completion.chunk", "function", "tool_calls", "assistant")

    def sow(value: object) -> object:
        if isinstance(value, dict):
            return {key: sow(item) for key, item in value.items()} | {next(planted): next(planted)}
        if isinstance(value, list):
            return [sow(item) for item in value]
        return next(planted) if isinstance(value, str) and value not in literal else value

    word = next(planted)
    events = "".join(f"data: {json.dumps(sow(chunk))}\n\n" for chunk in CHUNKS)
    body = f': {word}\nid: {word}\nevent: {word}\n{events}data: {{"error": "{word}\n\ndata: [DONE]\n\n'
    asked = {
        "model": word,
        "messages": [{"content": word}],
        "tools": [{"type": "function", "function": {"name": word}}],
    }
    exchange = {
        "request": {
            "url": f"https://{word}.example.com/v1/chat/completions",
            "headers": {word: word},
            "body": json.dumps(asked),
        },
        "response": {"headers": {word: word}, "body": {"string": body}, word: word},
        word: word,
    }
    return write(folder / f"{word}.json", json.dumps({"interactions": [exchange]}).encode())


def everything_under(folder: Path) -> str:
    """All text of the files, Parquet read and pictures decoded."""
    shown = []
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".parquet":
            shown.append(str(pyarrow.parquet.read_table(file).to_pylist()))
        elif file.is_file():
            text = file.read_bytes().decode("utf-8", "replace")
            shown.append(PICTURE.sub(lambda match: base64.b64decode(match[1]).decode(), text))
    return "\n".join(shown)


def test_no_canary_leaves(tmp_path, command):
    """No word planted in a capture and its container, nor a piece of one, is in the batch, in runs and
    reports made of it, or in what the commands print."""
    path = canary_capture(tmp_path / "in")
    out = tmp_path / "out"
    steps = [
        ["import", path, "--out", out / "batch"],
        ["qualify", out / "batch", "--revision", "r1", "--runs", out / "runs"],
        ["report", "--only", "05", "-p", f"batches={out / 'batch'}", "--out", out / "reports"],
    ]
    printed = ""
    for step in steps:
        done = limited([str(part) for part in step])
        assert done.returncode in (0, 1), done.stderr
        printed += done.stdout + done.stderr
    assert (out / "reports/05-provider-shapes.html").exists()
    # The names of the files that were named are printed; they leave with nothing else.
    shown = everything_under(out) + printed.replace(path.name, "")
    words = re.findall(r"Wq\d{4}Zj", path.read_text())
    pieces = {word[at : at + 4] for word in words for at in (0, 1, 3, 4)}
    assert len(pieces) > 50
    assert [piece for piece in pieces if piece in shown] == []


@pytest.mark.skipif(not CONTAINERS.is_dir(), reason="the recorded containers are not part of the checkout")
def test_recorded_containers_give_the_streams_that_their_index_counts(tmp_path, command):
    """Every container of the index is read, and what is imported can be scrubbed."""
    for number, line in enumerate((CONTAINERS / "index.jsonl").read_text().splitlines()):
        entry = json.loads(line)
        out = tmp_path / f"out-{number}"
        done = command("import", CONTAINERS / entry["file"], "--out", out)
        assert done.status == 0
        found = FOUND_MORE.get(entry["file"], entry["tool_streams_found"])
        assert f"{found} of them with tool calls" in done.err, entry["file"]
        streams = list(open_batch(out).streams())
        assert sum(b'"tool_calls"' in stream.body for stream in streams) >= found
