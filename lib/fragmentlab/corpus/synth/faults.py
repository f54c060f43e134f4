"""Faults that a synthetic stream can be given: each changes one thing and names its category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fragmentlab.corpus.synth.draft import Draft

INTERNAL_ERROR = '{"error":{"message":"The server had an error","type":"server_error","code":500}}'
Alteration = Callable[[Draft], None]


@dataclass(frozen=True)
class SyntheticFault:
    """``apply`` gives a draft of at least ``calls`` calls, continuation IDs omitted, this ``category``."""

    name: str
    category: str
    apply: Alteration
    calls: int = 1


def _said(name: str, value: Any, fragment: int = 0, call: int = 0) -> Alteration:
    """Let one fragment say another value; ``...`` leaves the field out."""

    def change(draft: Draft) -> None:
        holder = draft.calls[call][fragment]
        if name in ("name", "arguments"):
            holder = holder["function"]
        if value is ...:
            del holder[name]
        else:
            holder[name] = value

    return change


def _finish(reason: str | None) -> Alteration:
    def change(draft: Draft) -> None:
        draft.finish_reason, draft.finish_beside = reason, draft.finish_beside if reason else set()

    return change


def _all(*changes: Alteration) -> Alteration:
    def change(draft: Draft) -> None:
        for one in changes:
            one(draft)

    return change


def _null_then_id(draft: Draft) -> None:
    first, second = draft.calls[0][:2]
    second["id"], first["id"] = first["id"], None


def _id_duplicate(draft: Draft) -> None:
    draft.calls[1][0]["id"] = draft.calls[0][0]["id"]


def _cut(draft: Draft) -> None:
    draft.cut = True


def _error_event(draft: Draft) -> None:
    draft.error = INTERNAL_ERROR


def _after_finish(draft: Draft) -> None:
    draft.after_finish.append(draft.calls[0][-1] | {"function": {"arguments": " "}})


def _arguments_array(draft: Draft) -> None:
    functions = [fragment["function"] for fragment in draft.calls[0]]
    first = next(function for function in functions if function.get("arguments"))
    first["arguments"] = "[" + first["arguments"]
    functions[-1]["arguments"] += "]"


def _name_unknown(draft: Draft) -> None:
    draft.calls[0][0]["function"]["name"] += "_v2"


_DROP_LAST_PIECE = _said("arguments", "", -1)
_EMPTY_THEN_NULL = _all(_said("id", ""), _said("id", None, 1))

FAULTS = (
    SyntheticFault("null-then-id", "identity.missing", _null_then_id),
    SyntheticFault("id-changes", "identity.conflict", _said("id", "call_other", -1)),
    SyntheticFault("cut", "completion.truncated", _cut),
    SyntheticFault("second-call-null", "identity.missing", _said("id", None, call=1), calls=2),
    SyntheticFault("length", "completion.length", _all(_DROP_LAST_PIECE, _finish("length"))),
    SyntheticFault("id-number", "identity.unsupported_type", _said("id", 7, -1)),
    SyntheticFault("arguments-cut", "proposal.arguments_invalid_json", _DROP_LAST_PIECE),
    SyntheticFault("id-never", "proposal.id_missing", _said("id", ...)),
    SyntheticFault("error-event", "completion.error_event", _all(_finish(None), _error_event)),
    SyntheticFault("empty-then-null", "identity.missing", _EMPTY_THEN_NULL),
    SyntheticFault("id-duplicate", "proposal.id_duplicate", _id_duplicate, calls=2),
    SyntheticFault("index-missing", "fragment.index_missing", _said("index", ..., -1)),
    SyntheticFault("name-unknown", "proposal.name_unknown", _name_unknown),
    SyntheticFault("no-finish", "completion.no_finish_reason", _finish(None)),
    SyntheticFault("arguments-array", "proposal.arguments_not_object", _arguments_array),
    SyntheticFault("content-filter", "completion.content_filter", _finish("content_filter")),
    SyntheticFault("index-string", "fragment.index_invalid", _said("index", "0", -1)),
    SyntheticFault("name-missing", "proposal.name_missing", _said("name", None)),
    SyntheticFault("after-finish", "completion.fragment_after_finish", _after_finish),
    SyntheticFault("arguments-object", "fragment.arguments_type", _said("arguments", {}, -1)),
    SyntheticFault("tool-type", "protocol.tool_type", _said("type", "custom")),
)
