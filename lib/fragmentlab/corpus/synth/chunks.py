"""A script to bytes: the chunks, padding, comments and end marker of one provider shape."""

from __future__ import annotations

import json
from typing import Any

from fragmentlab.corpus.synth.provider_shapes import Shape
from fragmentlab.corpus.synth.script import Script

MODEL = "syn-model"
_CREATED = 1_700_000_000


def render(shape: Shape, script: Script, response_id: str, ascii_only: bool) -> bytes:
    """Return the body of one response: SSE text as the shape sends it."""
    wire = _Wire(shape, response_id, ascii_only)
    if shape.comments:
        wire.lines.append(": PROCESSING\n\n")
    if shape.first_chunk == "empty_choices":
        wire.chunk([])
    elif shape.first_chunk == "role":
        wire.delta({"role": "assistant", "content": "" if shape.content == "empty_string" else None})
    for start in range(0, len(script.text), 12):
        wire.delta({"content": script.text[start : start + 12]})
    for number, group in enumerate(script.groups):
        finish = script.finish_reason if number in script.finish_beside else None
        wire.fragments(group, finish)
    if script.cut:
        return wire.body()[:-9]
    if not script.finish_beside and script.finish_reason is not None:
        wire.finish(script.finish_reason)
    if script.after_finish:
        wire.fragments(script.after_finish, None)
    for kind, data in script.events_before_end:
        wire.lines.append(f"event: {kind}\ndata: {data}\n\n" if kind else f"data: {data}\n\n")
    if shape.usage == "empty_choices":
        wire.chunk([], usage=True)
    if shape.done:
        wire.lines.append("data: [DONE]\n\n")
    return wire.body()


class _Wire:
    def __init__(self, shape: Shape, response_id: str, ascii_only: bool) -> None:
        self.lines: list[str] = []
        self._shape = shape
        self._id = response_id
        self._ascii = ascii_only
        self._chunks = 0
        self._deltas = 0

    def body(self) -> bytes:
        return "".join(self.lines).encode()

    def chunk(self, choices: list[dict[str, Any]], usage: bool = False) -> None:
        shape, number = self._shape, self._chunks
        self._chunks += 1
        chunk: dict[str, Any] = {
            "id": {"same": self._id, "changes": f"{self._id}-{number}", "empty": ""}[shape.chunk_id]
        }
        if shape.object:
            chunk["object"] = "chat.completion.chunk"
        chunk |= {"created": _CREATED, "model": MODEL, "choices": choices}
        self._pad(chunk, "chunk")
        if usage:
            chunk["usage"] = {"prompt_tokens": 64, "completion_tokens": number, "total_tokens": 64 + number}
        data = json.dumps(chunk, ensure_ascii=self._ascii, separators=(",", ":"))
        self.lines.append(f"data: {data}\n\n")

    def delta(self, delta: dict[str, Any], finish: str | None = None, usage: bool = False) -> None:
        shape = self._shape
        role = shape.role
        if role == "never" or (role == "first" and self._deltas):
            delta = {name: value for name, value in delta.items() if name != "role"}
        else:
            delta = {"role": "assistant" if role != "null_after" or not self._deltas else None} | delta
        self._deltas += 1
        self._pad(delta, "delta")
        choice: dict[str, Any] = {"index": 0, "delta": delta}
        if finish is not None or shape.finish_key == "null":
            choice["finish_reason"] = finish
        self._pad(choice, "choice")
        self.chunk([choice], usage)

    def fragments(self, group: list[dict[str, Any]], finish: str | None) -> None:
        delta: dict[str, Any] = {}
        if self._shape.content != "omitted":
            delta["content"] = None if self._shape.content == "null" else ""
        delta["tool_calls"] = [
            {name: value for name, value in fragment.items() if name != "call"} for fragment in group
        ]
        self.delta(delta, finish, usage=finish is not None and self._shape.usage == "last_chunk")

    def finish(self, reason: str) -> None:
        repeats = 2 if self._shape.finish == "repeated" else 1
        for number in range(repeats):
            last = number == repeats - 1
            self.delta({}, reason, usage=last and self._shape.usage == "last_chunk")

    def _pad(self, holder: dict[str, Any], place: str) -> None:
        for path in self._shape.padding:
            where, _, name = path.partition(".")
            if where == place:
                holder.setdefault(name, None)
