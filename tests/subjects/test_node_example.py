"""The Node example of the five-minute page, against a stand-in for the client package."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fragmentlab.corpus.streams import Stream
from fragmentlab.subjects.command import CommandSubject

CLIENT = """
export default class OpenAI {
  constructor(options) { this.options = options; }
  chat = { completions: { stream: () => ({ finalChatCompletion: async () => {
    const text = await (await this.options.fetch()).text();
    if (text.includes("fail")) throw new SyntaxError(text);
    const call = { id: "a", function: { name: "n", arguments: text } };
    return { choices: [{ message: { tool_calls: text ? [call] : [] } }] };
  } }) } };
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("extra", [(), ("--long-lived",)], ids=["one process a stream", "long-lived"])
def test_the_node_example_speaks_the_protocol(root: Path, tmp_path: Path, extra: tuple[str, ...]) -> None:
    """Bytes go in whole, calls come out, errors are named, in either mode."""
    example = shutil.copy(root / "docs/examples/gateway_openai.mjs", tmp_path)
    package = tmp_path / "node_modules" / "openai"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "openai", "type": "module", "exports": "./index.js"}')
    (package / "index.js").write_text(CLIENT)
    subject = CommandSubject(("node", example, *extra), long_lived=bool(extra))
    bodies = [b"one", "zwölf\n".encode() * 50_000, b"fail", b""]
    seen = [subject.observe(Stream("s", body)) for body in bodies]
    cut = subject.observe(Stream("s", b"one", end="aborted"))
    subject.close()
    assert [o.outcome for o in seen] == ["accepted", "accepted", "rejected", "no_calls"]
    assert [o.calls[0][2].encode() for o in seen[:2]] == bodies[:2]
    assert seen[2].category == "event.invalid_json"
    assert cut.outcome == "rejected"
