"""The three tools of the task: what the model is told of them, and what they do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fragmentlab.assembler import Call, Tools
from fragmentlab.runtime.workspace import ToolError, Workspace

_NAME = {"type": "string", "minLength": 1, "maxLength": 4096}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TOOL_SCHEMAS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "list_sources": ("List the names of the sources.", _object()),
    "read_source": ("Read one source as text.", _object(source=_NAME)),
    "save_report": (
        "Save the report once under a new name.",
        _object(target=_NAME, content={"type": "string"}),
    ),
}
"""Tool -> what the model is told of it, and the JSON Schema of its arguments."""
ARGUMENT_OF: Mapping[str, str | None] = {
    "list_sources": None,
    "read_source": "source",
    "save_report": "target",
}
"""Tool -> the argument that names what it touches; that is what the host's policy judges."""
EFFECTS = frozenset({"save_report"})
"""Tools that change something; these are never done twice for the same arguments."""
KNOWN_TOOLS = Tools({"name": name, "schema": schema} for name, (_, schema) in TOOL_SCHEMAS.items())
"""The tools as the assembler checks a proposal against them."""
DECLARATIONS = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
    for name, (text, schema) in TOOL_SCHEMAS.items()
]
"""The tools as a request declares them."""


@dataclass(frozen=True)
class Request:
    """One call of an accepted response, its arguments parsed; ``repr`` shows the tool alone."""

    tool: str
    id: str = field(repr=False)
    text: str = field(repr=False)
    arguments: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, call: Call) -> Request:
        """From an assembled call, whose arguments passed the tool's schema."""
        return cls(call.name, call.id, call.arguments, json.loads(call.arguments))

    @property
    def digest(self) -> str:
        """What makes two effects the same: SHA-256 over tool and arguments, however spelt as JSON."""
        return digest_of([self.tool, self.arguments])


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value in one canonical spelling."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def perform(request: Request, workspace: Workspace, may_read: Callable[[str], bool]) -> dict[str, Any]:
    """Do what an authorized call asks and return its result; raise ToolError where that is not possible.

    ``may_read`` keeps names of sources that may not be read out of the list.
    """
    arguments = request.arguments
    match request.tool:
        case "list_sources":
            return {"sources": [name for name in workspace.list_sources() if may_read(name)]}
        case "read_source":
            return {"source": arguments["source"], "text": workspace.read_source(arguments["source"])}
        case "save_report":
            workspace.save_report(arguments["target"], report_bytes(request))
            return effect_result(request)
    raise ToolError("unavailable")


def report_bytes(request: Request) -> bytes:
    """The bytes that a ``save_report`` call publishes."""
    return bytes(request.arguments["content"].encode())


def effect_result(request: Request) -> dict[str, Any]:
    """The result of a ``save_report`` call, from the call alone: a resumed run can give it again."""
    content = report_bytes(request)
    return {
        "saved": request.arguments["target"],
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
