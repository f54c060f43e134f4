"""Fragments to calls: the state of one response, kept by index (docs/design.md, sections 3 and 4)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from fragmentlab.assembler.limits import Limits
from fragmentlab.assembler.proposal import join_surrogates
from fragmentlab.assembler.result import Fault, FragmentRow, alias
from fragmentlab.assembler.rules import RuleSet

MAX_INDEX = 127
"""The largest index (docs/design.md, section 4)."""
_MISSING: Any = object()
_KIND_BY_TYPE: dict[type, str] = {
    bool: "boolean", int: "number", float: "number", str: "string", list: "array", type(None): "null",
}  # fmt: skip


class FirstFault(Exception):
    """Raised at a fault where nothing after it matters."""


class Journal:
    """Collects faults and timeline rows; outside diagnosing mode the first fault ends the response."""

    def __init__(self, diagnose: bool, limits: Limits) -> None:
        self.diagnose = diagnose
        self.faults: list[Fault] = []
        self.omitted_faults = 0
        self.rows: list[FragmentRow] = []
        self.omitted_rows = 0
        self._limits = limits

    def report(self, fault: Fault) -> None:
        """Keep the fault; raise FirstFault unless diagnosing."""
        if len(self.faults) < max(1, self._limits.diagnosed_faults):
            self.faults.append(fault)
        else:
            self.omitted_faults += 1
        if not self.diagnose:
            raise FirstFault

    def add_row(self, row: FragmentRow) -> None:
        """Keep one row of the timeline."""
        if len(self.rows) < self._limits.timeline_rows:
            self.rows.append(row)
        else:
            self.omitted_rows += 1


class CallState:
    """What one index has received so far."""

    __slots__ = (
        "ordinal",
        "index",
        "id",
        "names",
        "arguments",
        "arguments_bytes",
        "typed",
        "ends_high",
        "is_full",
    )

    def __init__(self, ordinal: int, index: int) -> None:
        self.ordinal = ordinal
        self.index = index
        self.id: str | None = None
        self.names: list[str] = []
        self.arguments: list[str] = []
        self.arguments_bytes = 0
        self.typed = False
        self.ends_high = False
        self.is_full = False

    @property
    def name(self) -> str:
        """The concatenated name, surrogate halves joined."""
        return join_surrogates("".join(self.names))

    @property
    def arguments_text(self) -> str:
        """The concatenated argument text, surrogate halves joined."""
        return join_surrogates("".join(self.arguments))


def incoming_kind(value: Any) -> str:
    """Name the kind of what a fragment says of its ID (docs/design.md, section 2)."""
    if value is _MISSING:
        return "omitted"
    if value == "" and type(value) is str:
        return "empty_string"
    return _KIND_BY_TYPE.get(type(value), "object")


class Calls:
    """All calls of one response. Nothing outlives it, and nothing is shared between indices."""

    def __init__(self, rules: RuleSet, limits: Limits, journal: Journal, tolerances: Counter[str]) -> None:
        self._cells = rules.cells
        self._limits = limits
        self._journal = journal
        self._tolerances = tolerances
        self.by_index: dict[int, CallState] = {}
        self.aliases: dict[str, str] = {}
        self.fragments = 0
        self.null_continuations = 0
        self.last: CallState | None = None
        """The call that the last fragment belonged to."""

    def extend(self, call: CallState, pieces: list[str]) -> bool:
        """Add whole characters of arguments that are known to be all that their fragments do; False if a
        limit would be passed."""
        text = "".join(pieces)
        size = _utf8_size(text)
        if call.arguments_bytes + size > self._limits.arguments_bytes:
            return False
        if text:
            self._add_arguments(call, text)
        return True

    def add(self, fragment: Any, event: int, finished: bool) -> None:
        """Take one fragment in the order of checks: object, after the finish, index, ID, type, function,
        name, arguments."""
        self.fragments += 1
        if type(fragment) is not dict and not isinstance(fragment, dict):
            self._refuse_whole("fragment.invalid", "fragment", event, None, None)
            return
        incoming = fragment.get("id", _MISSING)
        index = fragment.get("index")
        if finished:
            self._refuse_whole("completion.fragment_after_finish", "fragment", event, index, incoming)
            return
        if type(index) is not int or not 0 <= index <= MAX_INDEX:
            self._refuse_whole(_index_category(index), "fragment", event, index, incoming)
            return
        call = self.by_index.get(index)
        if call is None:
            if len(self.by_index) >= self._limits.calls:
                self._refuse_whole("limit.calls", "fragment", event, index, incoming)
                return
            call = self.by_index[index] = CallState(len(self.by_index) + 1, index)
        self._take(call, fragment, incoming, event)

    def _take(self, call: CallState, fragment: dict[str, Any], incoming: Any, event: int) -> None:
        self.last = call
        known = call.id
        previous = "absent" if known is None else "established" if known else "empty"
        decision = self._identify(call, incoming, previous)
        context = (call, incoming, previous, event)
        first = None
        if decision not in ("keep", "set"):
            first = decision.removeprefix("reject:")
            self._refuse(first, context)
        kind = fragment.get("type")
        if kind is not None and kind != "":
            call.typed = True
            if type(kind) is not str or kind.lower() != "function":
                first = self._refuse("protocol.tool_type", context, first)
        function = fragment.get("function")
        name_bytes = arguments_bytes = 0
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
            if type(name) is str:
                if name:
                    call.names.append(name)
                    name_bytes = _utf8_size(name)
            elif name is not None:
                first = self._refuse("fragment.name_type", context, first)
            if type(arguments) is str:
                if arguments:
                    arguments_bytes = self._add_arguments(call, arguments)
                    if call.arguments_bytes > self._limits.arguments_bytes and not call.is_full:
                        call.is_full = True
                        first = self._refuse("limit.arguments_bytes", context, first)
            elif arguments is not None:
                first = self._refuse("fragment.arguments_type", context, first)
            if None in function.values():
                self._count_padding(function, ("name", "arguments"))
        elif function is not None:
            first = self._refuse("fragment.invalid", context, first)
        if None in fragment.values():
            self._count_padding(fragment, ("id", "type", "function"))
        if self._journal.diagnose:
            self._add_row(
                context, decision if first is None else "reject", first, name_bytes, arguments_bytes
            )

    def _identify(self, call: CallState, incoming: Any, previous: str) -> str:
        """Apply the rule table's cell and return its action."""
        if incoming is _MISSING:
            column = "omitted"
        elif type(incoming) is str:
            column = (
                "empty_string" if not incoming else "same_string" if incoming == call.id else "other_string"
            )
        else:
            column = incoming_kind(incoming)
            if column == "null" and previous == "established":
                self.null_continuations += 1
        action = self._cells[previous][column]
        if action == "set":
            call.id = _as_identity(incoming)
            if call.id:
                self._alias(call.id)
        elif column == "same_string":
            self._tolerances["repeated_id"] += 1
        return action

    def _add_arguments(self, call: CallState, piece: str) -> int:
        if piece.isascii():
            size = len(piece)
            call.ends_high = False
        else:
            size = _utf8_size(piece)
            if call.ends_high and "\udc00" <= piece[0] <= "\udfff":
                size -= 2  # two halves of three bytes each join to one character of four
            call.ends_high = "\ud800" <= piece[-1] <= "\udbff"
            if "\ufffd" in piece:
                self._tolerances["replacement_character"] += piece.count("\ufffd")
        call.arguments_bytes += size
        if not call.is_full:
            call.arguments.append(piece)
        return size

    def _count_padding(self, holder: dict[str, Any], names: tuple[str, ...]) -> None:
        for name in names:
            if holder.get(name, "") is None:
                self._tolerances[f"null_padding.{name}"] += 1

    def _refuse(
        self, category: str, context: tuple[CallState, Any, str, int], first: str | None = None
    ) -> str:
        """Report a fault of a fragment whose call is known; return the fragment's first category."""
        call, incoming, previous, event = context
        self._journal.report(
            Fault(
                category,
                "fragment",
                event=event,
                fragment=self.fragments,
                call=call.ordinal,
                incoming_kind=incoming_kind(incoming),
                incoming_empty=type(incoming) is str and not incoming,
                had_id=previous == "established",
                previous_identity=previous,
                next_identity="absent" if call.id is None else "established" if call.id else "empty",
            )
        )
        return first or category

    def _refuse_whole(self, category: str, stage: str, event: int, index: Any, incoming: Any) -> None:
        """Report a fault of a fragment that belongs to no call."""
        kind = (
            None
            if incoming is None and index is None and category == "fragment.invalid"
            else incoming_kind(incoming)
        )
        empty = None if kind is None else kind == "empty_string"
        self._journal.report(
            Fault(
                category,
                stage,
                event=event,
                fragment=self.fragments,
                incoming_kind=kind,
                incoming_empty=empty,
            )
        )
        shown = index if type(index) is int and abs(index) < 1 << 31 else None
        self._journal.add_row(
            FragmentRow(event, self.fragments, shown, kind, None, None, "reject", category, 0, 0, None, None)
        )

    def _add_row(
        self,
        context: tuple[CallState, Any, str, int],
        decision: str,
        category: str | None,
        name_bytes: int,
        arguments_bytes: int,
    ) -> None:
        call, incoming, previous, event = context
        self._journal.add_row(
            FragmentRow(
                event,
                self.fragments,
                call.index,
                incoming_kind(incoming),
                previous,
                "absent" if call.id is None else "established" if call.id else "empty",
                decision,
                category,
                name_bytes,
                arguments_bytes,
                self._alias(call.id) if call.id else None,
                self._alias(incoming) if incoming and type(incoming) is str else None,
            )
        )

    def _alias(self, call_id: str) -> str:
        return self.aliases.setdefault(call_id, alias(len(self.aliases)))


def _index_category(index: Any) -> str:
    if index is None:
        return "fragment.index_missing"
    if type(index) is not int or index < 0:
        return "fragment.index_invalid"
    return "fragment.index_out_of_range"


def _as_identity(incoming: Any) -> str | None:
    """What a ``set`` takes from the fragment; anything but a string is what no executable table does."""
    if incoming is _MISSING or incoming is None:
        return None
    return incoming if type(incoming) is str else json.dumps(incoming)


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
