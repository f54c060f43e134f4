"""A second, deliberately plain implementation of the identity rules, written from the table and
the prose of docs/design.md.

It shares nothing with the assembler: it works on decoded fragments, one at a time, until the first fault.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

MISSING, CONFLICT, TYPE = (
    "reject:identity.missing",
    "reject:identity.conflict",
    "reject:identity.unsupported_type",
)
_WRONG_TYPES = {"number": TYPE, "boolean": TYPE, "array": TYPE, "object": TYPE}
_ROWS = {
    "absent": {"omitted": "keep", "null": MISSING, "empty_string": "set", "other_string": "set"},
    "empty": {"omitted": "keep", "null": MISSING, "empty_string": "keep", "other_string": "set"},
    "established": {
        "omitted": "keep",
        "null": "keep",
        "empty_string": CONFLICT,
        "same_string": "keep",
        "other_string": CONFLICT,
    },
}
DESIGN_TABLE = {(i, c): action for i, row in _ROWS.items() for c, action in (row | _WRONG_TYPES).items()}


@dataclass
class Oracle:
    """What docs/design.md says of one response, given its fragments in order."""

    tools: list[str] | None = None
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    category: str | None = None
    finish: str | None = None

    def add(self, fragment: dict[str, Any]) -> None:
        """Take one fragment whose function, if any, is an object of strings."""
        if self.category is None:
            self.category = self._fault_of(fragment)

    def _fault_of(self, fragment: dict[str, Any]) -> str | None:
        if self.finish is not None:
            return "completion.fragment_after_finish"
        index = fragment.get("index")
        if index is None:
            return "fragment.index_missing"
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            return "fragment.index_invalid"
        if index > 127:
            return "fragment.index_out_of_range"
        call = self.calls.setdefault(index, {"name": "", "arguments": ""})
        known = call.get("id")
        identity = "absent" if known is None else "empty" if known == "" else "established"
        action = DESIGN_TABLE[identity, _column(fragment, known)]
        if action.startswith("reject:"):
            return action.removeprefix("reject:")
        if action == "set":
            call["id"] = fragment["id"]
        function = fragment.get("function", {})
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""
        return None

    def end(self, done: bool, end: str) -> tuple[str, str | None, list[tuple[int, str, str, str]]]:
        """Return (outcome, category, calls as (index, id, name, arguments))."""
        category = self.category or self._fault_at_end(done, end)
        if category:
            return "rejected", category, []
        calls = [(i, c["id"], c["name"], c["arguments"]) for i, c in sorted(self.calls.items())]
        return ("accepted" if calls else "no_calls"), None, calls

    def _fault_at_end(self, done: bool, end: str) -> str | None:
        if end == "aborted" and not done:
            return "completion.transport_error"
        if self.finish is None:
            return "completion.no_finish_reason" if done else "completion.truncated"
        if self.finish == "tool_calls" and not self.calls:
            return "completion.no_calls"
        seen: list[str] = []
        for _, call in sorted(self.calls.items()):
            if not call.get("id"):
                return "proposal.id_missing"
            if call["id"] in seen:
                return "proposal.id_duplicate"
            seen.append(call["id"])
            if not call["name"]:
                return "proposal.name_missing"
            if self.tools is not None and call["name"] not in self.tools:
                return "proposal.name_unknown"
            if not call["arguments"]:
                return "proposal.arguments_empty"
            try:
                value = json.loads(call["arguments"])
            except ValueError:
                return "proposal.arguments_invalid_json"
            if not isinstance(value, dict):
                return "proposal.arguments_not_object"
        return None


def _column(fragment: dict[str, Any], known: str | None) -> str:
    if "id" not in fragment:
        return "omitted"
    value = fragment["id"]
    if value is None:
        return "null"
    if isinstance(value, str):
        return "empty_string" if value == "" else "same_string" if value == known else "other_string"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else "array" if isinstance(value, list) else "object"
