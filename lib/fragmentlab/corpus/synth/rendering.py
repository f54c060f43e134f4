"""A draft to bytes: the chunks, padding, comments and end marker of one provider shape."""

from __future__ import annotations

import json
from typing import Any

from fragmentlab.corpus.synth.draft import IN_WORDS, Draft, Fragment
from fragmentlab.corpus.synth.provider_shapes import Shape
from fragmentlab.wire.events import DONE, event
from fragmentlab.wire.fragments import delta, pieces

MODEL = "syn-model"
_CREATED = 1_700_000_000
_TEXT_PIECE = 12
_CUT = 9
"""Bytes that a body lacks which ends inside its last fragment."""


def render(shape: Shape, draft: Draft, response_id: str, ascii_only: bool) -> bytes:
    """Return the body of one response: SSE text as the shape sends it."""
    wire = _Body(shape, response_id, ascii_only)
    if shape.comments:
        wire.parts.append(b": PROCESSING\n\n")
    if shape.first_chunk == "empty_choices":
        wire.chunk([])
    elif shape.first_chunk == "role":
        wire.delta({"role": "assistant", "content": "" if shape.content == "empty_string" else None})
    for piece in pieces(draft.text, _TEXT_PIECE):
        wire.delta({"content": piece})
    for number, group in enumerate(draft.groups):
        wire.fragments(group, draft.finish_reason if number in draft.finish_beside else None)
    if draft.cut:
        return b"".join(wire.parts)[:-_CUT]
    if not draft.finish_beside and draft.finish_reason is not None:
        if shape.finish == "repeated":
            wire.delta({}, draft.finish_reason)
        wire.delta({}, draft.finish_reason, usage=shape.usage == "last_chunk")
    if draft.after_finish:
        wire.fragments(draft.after_finish, None)
    if draft.error is not None:
        wire.parts.append(event(draft.error))
    if shape.usage == "empty_choices":
        wire.chunk([], usage=True)
    if shape.done:
        wire.parts.append(DONE)
    return b"".join(wire.parts)


class _Body:
    def __init__(self, shape: Shape, response_id: str, ascii_only: bool) -> None:
        self.parts: list[bytes] = []
        self._shape, self._id, self._ascii = shape, response_id, ascii_only
        self._chunks = self._deltas = 0

    def chunk(self, choices: list[dict[str, Any]], usage: bool = False) -> None:
        shape, number = self._shape, self._chunks
        self._chunks += 1
        chunk_id = {"same": self._id, "changes": f"{self._id}-{number}", "empty": ""}[shape.chunk_id]
        chunk: dict[str, Any] = {"id": chunk_id}
        if shape.object:
            chunk["object"] = "chat.completion.chunk"
        chunk |= {"created": _CREATED, "model": MODEL, "choices": choices}
        self._pad(chunk, "chunk")
        if usage:
            chunk["usage"] = {"prompt_tokens": 64, "completion_tokens": number, "total_tokens": 64 + number}
        self.parts.append(event(json.dumps(chunk, ensure_ascii=self._ascii, separators=(",", ":"))))

    def delta(self, said: dict[str, Any], finish: str | None = None, usage: bool = False) -> None:
        shape = self._shape
        if shape.role == "never" or (shape.role == "first" and self._deltas):
            said.pop("role", None)
        else:
            said = {"role": None if shape.role == "null_after" and self._deltas else "assistant"} | said
        self._deltas += 1
        self._pad(said, "delta")
        choice: dict[str, Any] = {"index": 0, "delta": said}
        if finish is not None or shape.finish_key == "null":
            choice["finish_reason"] = finish
        self._pad(choice, "choice")
        self.chunk([choice], usage)

    def fragments(self, group: list[Fragment], finish: str | None) -> None:
        said = self._shape.content
        content = {"content": IN_WORDS[said]} if said in IN_WORDS else {}
        usage = finish is not None and self._shape.usage == "last_chunk"
        self.delta(delta(*group, **content), finish, usage)

    def _pad(self, holder: dict[str, Any], place: str) -> None:
        for path in self._shape.padding:
            where, _, name = path.partition(".")
            if where == place:
                holder.setdefault(name, None)
