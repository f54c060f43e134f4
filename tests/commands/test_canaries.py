"""Secrets put into everything that a command reads, and looked for in all that it prints and writes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

import fragmentlab.assembler
from fragmentlab.cli import main
from fragmentlab.wire.events import body, event

CANARY = "kanarienvogel"
NAMED = "zaunkoenig, a b"
"""In the names of files: a person's terminal may show those, nothing that is written may."""
HOST = f"{CANARY}.example"
GARBAGE = shlex.join([sys.executable, "-S", "-c", f"print({CANARY!r})"])
LOUD = shlex.join([sys.executable, "-S", "-c", f"import sys; sys.exit({CANARY!r})"])


def call(index: int, call_id: object, name: object, arguments: object) -> dict[str, object]:
    """A chunk with one fragment, every field as given, and secrets beside it."""
    function = {"name": name, "arguments": arguments}
    fragment = {"index": index, "id": call_id, "function": function, f"x-{CANARY}": CANARY}
    choice = {"index": 0, "delta": {"tool_calls": [fragment], "content": f"said {CANARY}"}}
    return {"id": f"chatcmpl-{CANARY}", "model": f"{CANARY}-70b", "choices": [choice]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
OPENED = call(0, f"call_{CANARY}", f"tool_{CANARY}", f'{{"{CANARY}":')
STREAMS = {
    "good": body([OPENED, call(0, None, None, f'"{CANARY}"}}'), END]),
    "changed-id": body([OPENED, call(0, f"{CANARY}-2", None, "1}"), END]),
    "number-as-id": body([OPENED, call(0, {CANARY: CANARY}, None, "1}"), END]),
    "broken-arguments": body([call(0, CANARY, CANARY, f'{{"{CANARY}": {CANARY}'), END]),
    "error-event": body([OPENED])
    + event({"error": {"message": f"key {CANARY} at https://{HOST}/"}}, "error"),
    "not-json": event(f'{{"choices": {CANARY}') + event(CANARY),
    "unknown-finish": body([OPENED, {"choices": [{"index": 0, "delta": {}, "finish_reason": CANARY}]}]),
    "named-event": event({CANARY: CANARY}, CANARY) + body([OPENED]),
    "twice": event(f'{{"choices": [], "choices": ["{CANARY}"]}}'),
    "cut": body([OPENED], done=False)[:-60],
}
HAR = {
    "log": {
        "entries": [
            {
                "startedDateTime": "2026-01-01T00:00:00Z",
                "request": {
                    "method": "POST",
                    "url": f"https://{HOST}/v1/chat/completions?key={CANARY}",
                    "headers": [{"name": f"x-{CANARY}", "value": f"Bearer {CANARY}"}],
                    "postData": {"text": json.dumps({"model": CANARY, "messages": [{"content": CANARY}]})},
                },
                "response": {
                    "status": 200,
                    "headers": [{"name": "content-type", "value": "text/event-stream"}],
                    "content": {"mimeType": "text/event-stream", "text": text},
                },
            }
            for text in (
                STREAMS["good"].decode(),
                STREAMS["changed-id"].decode(),
                f"<html>{CANARY}</html>",
                CANARY,
            )
        ]
    }
}
LOG = {"task": CANARY, "time": "2026-10-01T09:30:00Z", "outcome": "rejected", "category": "TOOL_FRAGMENT_ID"}
VECTOR = {"id": f"topic/{CANARY}", "source": "kit", "flags": [], "events": [OPENED, END]}
VECTORS = {"schema": "fragmentlab-vectors-v1", "notes": {}, "tools": [CANARY]}

COMMANDS: dict[str, tuple[int | None, tuple[str, ...]]] = {
    **{f"assemble {name}": (None, ("assemble", f"streams/{NAMED} {name}.sse")) for name in STREAMS},
    **{
        f"assemble {name} --json": (None, ("assemble", f"streams/{NAMED} {name}.sse", "--json"))
        for name in STREAMS
    },
    "assemble, other tools": (1, ("assemble", f"streams/{NAMED} good.sse", "--tools", "other")),
    "assemble, own rules": (0, ("assemble", f"streams/{NAMED} good.sse", "--rules", f"{NAMED}.json")),
    "assemble, bad rules": (2, ("assemble", f"streams/{NAMED} good.sse", "--rules", "bad.json")),
    "assemble a folder": (1, ("assemble", "streams")),
    "assemble a folder --json": (1, ("assemble", "streams", "--json")),
    "assemble a HAR": (1, ("assemble", f"{NAMED}.har")),
    "assemble binary": (2, ("assemble", "binary")),
    "assemble a page": (2, ("assemble", "page.html")),
    "vectors that disagree": (1, ("vectors", "disagree.json")),
    "vectors that disagree --json": (1, ("vectors", "disagree.json", "--json")),
    "bad vectors": (2, ("vectors", "bad.json")),
    "import": (
        None,
        ("import", f"{NAMED}.har", "streams", "binary", "page.html", "bad.json", "--out", "batch"),
    ),
    "import nothing": (1, ("import", "page.html", "--out", "none")),
    "import raw": (None, ("import", "streams", "--no-scrub", "--out", "raw")),
    "scrub": (None, ("scrub", "raw", "--out", "scrubbed")),
    "scrub a bad batch": (2, ("scrub", "badbatch", "--out", "other")),
    "minimize": (0, ("minimize", f"streams/{NAMED} changed-id.sse", "--category", "identity.conflict")),
    "minimize, other category": (
        2,
        ("minimize", f"streams/{NAMED} changed-id.sse", "--category", "completion.length"),
    ),
    "qualify": (0, ("qualify", "batch", "--revision", "one")),
    "qualify own rules": (0, ("qualify", "batch", "--revision", "two", "--rules", f"{NAMED}.json")),
    "qualify garbage": (0, ("qualify", "batch", "--revision", "three", "--exec", GARBAGE)),
    "qualify a loud crash": (0, ("qualify", "batch", "--revision", "four", "--exec", LOUD)),
    "qualify a raw batch": (2, ("qualify", "raw", "--revision", "five")),
    "qualify a bad batch": (2, ("qualify", "badbatch", "--revision", "six")),
    "compare": (
        None,
        ("compare", "one", "two", "--markdown", "c.md", "--junit", "c.xml", "--propose", "p.json"),
    ),
    "compare failures": (1, ("compare", "one", "three")),
    "runs list": (0, ("runs", "list", "--runs", "runs")),
    "runs verify": (0, ("runs", "verify", "--runs", "runs")),
    "runs import": (0, ("runs", "import", f"{NAMED}.jsonl", "--revision", "old")),
    "runs import, bad": (2, ("runs", "import", "bad.jsonl", "--revision", "old")),
    "note": (0, ("note", "--revision", "two", "--runs", "runs")),
    "a bad scenario": (2, ("provider", "--scenario", "bad.json")),
    "bad shapes": (2, ("synth", "--streams", "1", "--seed", "1", "--out", "made", "--shapes", "bad.json")),
    "counterexamples": (
        None,
        ("maintain", "counterexamples", "--rules", f"{NAMED}.json", "--out", "found.json"),
    ),
}
"""What is run, one after another in one folder: name -> exit status, where it is told, and arguments."""
OURS = ("batch", "scrubbed", "runs", "reports", "c.md", "c.xml", "p.json", "found.json")
"""What the commands wrote that may leave."""


def prepare(folder: Path) -> None:
    """Write the inputs: what they hold is secret throughout, and so is the name of the rule set."""
    (folder / "streams").mkdir()
    for name, stream in STREAMS.items():
        (folder / "streams" / f"{NAMED} {name}.sse").write_bytes(stream)
    shipped = Path(fragmentlab.assembler.__file__).with_name("rules") / "empty-continuation.json"
    rules = {**json.loads(shipped.read_bytes()), "name": CANARY, "note": CANARY}
    bad = {**VECTORS, "name": CANARY, "identity": {CANARY: CANARY}, "vectors": [{**VECTOR, "events": CANARY}]}
    expected = {"outcome": "accepted", "calls": [{"id": f"{CANARY}-x", "name": "n", "arguments": "{}"}]}
    written = {
        f"{NAMED}.json": rules,
        "bad.json": bad,
        "disagree.json": {**VECTORS, "vectors": [{**VECTOR, "id": "topic/one", "expect": expected}]},
        f"{NAMED}.har": HAR,
        f"{NAMED}.jsonl": LOG,
        "bad.jsonl": {**LOG, "outcome": CANARY},
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "binary").write_bytes(gzip.compress(os.urandom(99)) + CANARY.encode())
    (folder / "page.html").write_text(f"<!DOCTYPE html><title>{CANARY}</title>")
    (folder / "badbatch").mkdir()
    (folder / "badbatch" / "batch.json").write_text(json.dumps({"schema": CANARY, "name": CANARY}))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Every command's exit status and all that it printed, and under each written file's path its bytes."""
    folder = tmp_path_factory.mktemp("here")
    prepare(folder)
    found = {}
    with contextlib.chdir(folder):
        for name, (_, arguments) in COMMANDS.items():
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = main(arguments)
            found[name] = status, said.getvalue()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).parts[0] in OURS:
            content = (
                str(read_table(path).to_pylist())
                if path.suffix == ".parquet"
                else path.read_bytes().decode("latin-1")
            )
            found[str(path.relative_to(folder))] = 0, content
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_says_what_it_read(ended: dict[str, tuple[int, str]], name: str) -> None:
    """No ID, name, argument, content, header, key, host or rule set's name is printed, pass or fail."""
    status, said = ended[name]
    expected = COMMANDS[name][0]
    assert status == expected if expected is not None else status in (0, 1, 2)
    assert said
    assert CANARY not in said
    assert "internal error" not in said
    assert status != 2 or said.count("\n") == 1


def test_no_command_writes_what_it_read(ended: dict[str, tuple[int, str]]) -> None:
    """Scrubbed batches, runs, notes, summaries and counterexamples hold none of it."""
    written = {name: content for name, (_, content) in ended.items() if name not in COMMANDS}
    tops = {name.split("/")[0] for name in written}
    assert tops >= {"batch", "scrubbed", "runs", "reports", "c.md", "c.xml", "p.json"}
    said = [f"{name} {content}" for name, content in written.items() if name != "runs/.private/key"]
    assert [text[:99] for text in said if CANARY in text or NAMED[:10] in text] == []
