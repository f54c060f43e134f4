"""A small naive assembler, right by default, with faults that client libraries have as switches."""

from __future__ import annotations

import json
from typing import Any

from fragmentlab.assembler import Call, Result
from tests.assembler.oracle import DESIGN_TABLE, _column

FAULTS = {
    "by_position": {"merged"},
    "one_buffer": {"merged"},
    "invents": {"invented", "executed"},
    "borrows": {"invented", "executed"},
    "clears_on_null": {"refused"},
    "last_wins": {"cleared", "executed"},
    "first_wins": {"cleared", "executed"},
    "accepts_every_null": {"executed"},
    "stringifies": {"invented", "executed"},
    "ignores_the_finish": {"executed"},
    "returns_calls_of_refused": {"executed"},
    "keeps_what_was_good": {"executed"},
    "refuses_every_null": {"refused"},
}
"""Fault -> promises that the suite must find broken, at least."""


def naive(body: bytes, *faults: str) -> Result:
    """Assemble one response the short way, with the faults named."""
    calls: dict[int, dict[str, Any]] = {}
    finish, refused = None, False
    for line in body.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        choice = json.loads(line[6:])["choices"][0]
        finish = choice.get("finish_reason") or finish
        for position, fragment in enumerate(choice["delta"].get("tool_calls", [])):
            index = position if "by_position" in faults else fragment["index"]
            call = calls.setdefault(index, {"id": None, "name": "", "arguments": ""})
            refused |= _identify(call, fragment, faults)
            function = fragment.get("function", {})
            call["name"] += function.get("name") or ""
            target = calls[min(calls)] if "one_buffer" in faults else call
            target["arguments"] += function.get("arguments") or ""
    if "ignores_the_finish" not in faults:
        refused |= finish not in ("stop", "tool_calls")
    refused |= _settle(calls, faults)
    proposal = tuple(Call(i, str(c["id"]), c["name"], c["arguments"], "A") for i, c in sorted(calls.items()))
    kept = proposal if not refused or "returns_calls_of_refused" in faults else ()
    if refused and "keeps_what_was_good" in faults and len(proposal) > 1:
        kept = tuple(call for call in proposal if call.id not in ("None", ""))
    outcome = (
        "rejected" if refused and "keeps_what_was_good" not in faults else "accepted" if kept else "rejected"
    )
    return Result(outcome, "x" if outcome == "rejected" else None, "naive", False, (), kept, {}, {})


def _identify(call: dict[str, Any], fragment: dict[str, Any], faults: tuple[str, ...]) -> bool:
    """Apply what the fragment says; return whether it is refused."""
    known = call["id"]
    identity = "absent" if known is None else "established" if known else "empty"
    column = _column(fragment, known)
    says = fragment.get("id")
    if column == "null":
        if "refuses_every_null" in faults:
            return True
        if "clears_on_null" in faults:
            call["id"] = None
            return identity != "established"
        if {"accepts_every_null", "invents", "borrows"} & set(faults):
            return False
    if column == "other_string" and "last_wins" in faults:
        call["id"] = says
        return False
    if column == "other_string" and "first_wins" in faults and identity == "established":
        return False
    if isinstance(says, (int, list, dict)) and "stringifies" in faults:
        call["id"] = call["id"] or json.dumps(says)
        return False
    action = DESIGN_TABLE[identity, column]
    if action == "set":
        call["id"] = says
    return action.startswith("reject:")


def _settle(calls: dict[int, dict[str, Any]], faults: tuple[str, ...]) -> bool:
    """Judge the IDs at the end; return whether the response is refused."""
    for number, call in enumerate(calls.values()):
        if not call["id"] and "invents" in faults:
            call["id"] = f"call_{number}"
        if not call["id"] and "borrows" in faults:
            call["id"] = next((c["id"] for c in calls.values() if c["id"]), None)
    ids = [call["id"] for call in calls.values()]
    if "accepts_every_null" in faults:
        return len(set(ids)) < len(ids)
    if "borrows" in faults:
        return not all(ids)
    return not all(ids) or len(set(ids)) < len(ids)
