"""Faults that a synthetic stream can be given: each changes one thing and names its category."""

from __future__ import annotations

from dataclasses import dataclass

from fragmentlab.corpus.synth.draft import Draft

INTERNAL_ERROR = '{"error":{"message":"The server had an error","type":"server_error","code":500}}'


@dataclass(frozen=True)
class SyntheticFault:
    """``apply`` gives a draft of at least ``calls`` calls, continuation IDs omitted, this ``category``."""

    name: str
    category: str
    calls: int = 1

    def apply(self, draft: Draft) -> None:
        """Make the one change."""
        first, second, last = draft.calls[0][0], draft.calls[0][1], draft.calls[0][-1]
        functions = [fragment["function"] for fragment in draft.calls[0]]
        match self.name:
            case "null-then-id":
                first["id"], second["id"] = None, first["id"]
            case "empty-then-null":
                first["id"], second["id"] = "", None
            case "id-never":
                del first["id"]
            case "id-changes":
                last["id"] = "call_other"
            case "id-number":
                last["id"] = 7
            case "second-call-null":
                draft.calls[1][0]["id"] = None
            case "id-duplicate":
                draft.calls[1][0]["id"] = first["id"]
            case "index-missing":
                del last["index"]
            case "index-string":
                last["index"] = "0"
            case "name-missing":
                functions[0]["name"] = None
            case "name-unknown":
                functions[0]["name"] += "_v2"
            case "tool-type":
                first["type"] = "custom"
            case "arguments-cut":
                functions[-1]["arguments"] = ""
            case "arguments-object":
                functions[-1]["arguments"] = {}
            case "arguments-array":
                begun = next(function for function in functions if function.get("arguments"))
                begun["arguments"] = "[" + begun["arguments"]
                functions[-1]["arguments"] += "]"
            case "cut":
                draft.cut = True
            case "length":
                functions[-1]["arguments"], draft.finish_reason = "", "length"
            case "content-filter":
                draft.finish_reason = "content_filter"
            case "no-finish":
                draft.finish_reason, draft.finish_beside = None, set()
            case "error-event":
                draft.finish_reason, draft.finish_beside, draft.error = None, set(), INTERNAL_ERROR
            case "after-finish":
                draft.after_finish.append(last | {"function": {"arguments": " "}})


FAULTS = (
    SyntheticFault("null-then-id", "identity.missing"),
    SyntheticFault("id-changes", "identity.conflict"),
    SyntheticFault("cut", "completion.truncated"),
    SyntheticFault("second-call-null", "identity.missing", calls=2),
    SyntheticFault("length", "completion.length"),
    SyntheticFault("id-number", "identity.unsupported_type"),
    SyntheticFault("arguments-cut", "proposal.arguments_invalid_json"),
    SyntheticFault("id-never", "proposal.id_missing"),
    SyntheticFault("error-event", "completion.error_event"),
    SyntheticFault("empty-then-null", "identity.missing"),
    SyntheticFault("id-duplicate", "proposal.id_duplicate", calls=2),
    SyntheticFault("index-missing", "fragment.index_missing"),
    SyntheticFault("name-unknown", "proposal.name_unknown"),
    SyntheticFault("no-finish", "completion.no_finish_reason"),
    SyntheticFault("arguments-array", "proposal.arguments_not_object"),
    SyntheticFault("content-filter", "completion.content_filter"),
    SyntheticFault("index-string", "fragment.index_invalid"),
    SyntheticFault("name-missing", "proposal.name_missing"),
    SyntheticFault("after-finish", "completion.fragment_after_finish"),
    SyntheticFault("arguments-object", "fragment.arguments_type"),
    SyntheticFault("tool-type", "protocol.tool_type"),
)
"""In the order in which a batch goes round them."""
