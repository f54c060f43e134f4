"""Faults that a synthetic stream can be given: each changes one thing and names its category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fragmentlab.corpus.synth.script import Script

INTERNAL_ERROR = '{"error":{"message":"The server had an error","type":"server_error","code":500}}'


@dataclass(frozen=True)
class SyntheticFault:
    """``apply`` gives a script of at least ``calls`` calls, continuation IDs omitted, this ``category``."""

    name: str
    category: str
    apply: Callable[[Script], None]
    calls: int = 1


def _first(script: Script, call: int = 0) -> dict[str, Any]:
    return script.fragments_of(call)[0]


def _null_then_id(script: Script) -> None:
    first, second = script.fragments_of(0)[:2]
    second["id"], first["id"] = first["id"], None


def _empty_then_null(script: Script) -> None:
    first, second = script.fragments_of(0)[:2]
    first["id"], second["id"] = "", None


def _second_call_null(script: Script) -> None:
    _first(script, 1)["id"] = None


def _id_changes(script: Script) -> None:
    script.fragments_of(0)[-1]["id"] = "call_other"


def _id_number(script: Script) -> None:
    script.fragments_of(0)[-1]["id"] = 7


def _id_never(script: Script) -> None:
    del _first(script)["id"]


def _id_duplicate(script: Script) -> None:
    _first(script, 1)["id"] = _first(script)["id"]


def _index_missing(script: Script) -> None:
    del script.fragments_of(0)[-1]["index"]


def _index_string(script: Script) -> None:
    script.fragments_of(0)[-1]["index"] = "0"


def _cut(script: Script) -> None:
    script.cut = True


def _no_finish(script: Script) -> None:
    script.finish_reason = None
    script.finish_beside = set()


def _length(script: Script) -> None:
    _drop_last_piece(script)
    script.finish_reason = "length"


def _content_filter(script: Script) -> None:
    script.finish_reason = "content_filter"


def _error_event(script: Script) -> None:
    script.finish_reason = None
    script.finish_beside = set()
    script.events_before_end.append(("", INTERNAL_ERROR))


def _after_finish(script: Script) -> None:
    fragment = dict(script.fragments_of(0)[-1])
    fragment["function"] = {"arguments": " "}
    script.after_finish.append(fragment)


def _drop_last_piece(script: Script) -> None:
    script.fragments_of(0)[-1]["function"]["arguments"] = ""


def _arguments_array(script: Script) -> None:
    fragments = script.fragments_of(0)
    first = next(fragment for fragment in fragments if fragment["function"].get("arguments"))
    first["function"]["arguments"] = "[" + first["function"]["arguments"]
    fragments[-1]["function"]["arguments"] += "]"


def _arguments_object(script: Script) -> None:
    script.fragments_of(0)[-1]["function"]["arguments"] = {}


def _name_unknown(script: Script) -> None:
    _first(script)["function"]["name"] += "_v2"


def _name_missing(script: Script) -> None:
    _first(script)["function"]["name"] = None


def _tool_type(script: Script) -> None:
    _first(script)["type"] = "custom"


FAULTS = (
    SyntheticFault("null-then-id", "identity.missing", _null_then_id),
    SyntheticFault("id-changes", "identity.conflict", _id_changes),
    SyntheticFault("cut", "completion.truncated", _cut),
    SyntheticFault("second-call-null", "identity.missing", _second_call_null, calls=2),
    SyntheticFault("length", "completion.length", _length),
    SyntheticFault("id-number", "identity.unsupported_type", _id_number),
    SyntheticFault("arguments-cut", "proposal.arguments_invalid_json", _drop_last_piece),
    SyntheticFault("id-never", "proposal.id_missing", _id_never),
    SyntheticFault("error-event", "completion.error_event", _error_event),
    SyntheticFault("empty-then-null", "identity.missing", _empty_then_null),
    SyntheticFault("id-duplicate", "proposal.id_duplicate", _id_duplicate, calls=2),
    SyntheticFault("index-missing", "fragment.index_missing", _index_missing),
    SyntheticFault("name-unknown", "proposal.name_unknown", _name_unknown),
    SyntheticFault("no-finish", "completion.no_finish_reason", _no_finish),
    SyntheticFault("arguments-array", "proposal.arguments_not_object", _arguments_array),
    SyntheticFault("content-filter", "completion.content_filter", _content_filter),
    SyntheticFault("index-string", "fragment.index_invalid", _index_string),
    SyntheticFault("name-missing", "proposal.name_missing", _name_missing),
    SyntheticFault("after-finish", "completion.fragment_after_finish", _after_finish),
    SyntheticFault("arguments-object", "fragment.arguments_type", _arguments_object),
    SyntheticFault("tool-type", "protocol.tool_type", _tool_type),
)
