"""Fragments to calls: the state of one response, kept by index (docs/design.md, sections 3 and 4)."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from .limits import Limits
from .proposal import join_surrogates
from .result import Fault, FragmentRow, alias
from .rules import Identity, IncomingKind, RuleSet, identity_of

MAX_INDEX = 127
"""The largest index (docs/design.md, section 4)."""
_MISSING: Any = object()
_REPLACEMENT = chr(0xFFFD)
_KIND_BY_TYPE: dict[type, IncomingKind] = {
    bool: "boolean", int: "number", float: "number", str: "string", list: "array", type(None): "null",
}  # fmt: skip

_Seen = tuple["CallState", Any, Identity, int]
"""A fragment's call, what it says of the ID, the identity before it, and its event."""


class FirstFault(Exception):
    """Raised at a fault where nothing after it matters."""


class Diagnosis:
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


class PiecedText:
    """A text that arrives in pieces; ``size`` is its length in UTF-8 bytes."""

    __slots__ = ("_ends_high", "_pieces", "is_full", "size")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ends_high = False
        self.size = 0
        self.is_full = False
        """Whether its limit was passed, after which no piece is kept."""

    def add(self, piece: str, limit: int) -> bool:
        """Add a piece; return whether it is the one that passes the limit."""
        if piece.isascii():
            self.size += len(piece)
            self._ends_high = False
        else:
            self.size += _utf8_size(piece)
            if self._ends_high and _is_half(piece[0], 0xDC00):
                self.size -= 2  # two halves of three bytes each join to one character of four
            self._ends_high = _is_half(piece[-1], 0xD800)
        if self.is_full:
            return False
        self._pieces.append(piece)
        self.is_full = self.size > limit
        return self.is_full

    def __str__(self) -> str:
        """Return the concatenated text, surrogate halves joined."""
        return join_surrogates("".join(self._pieces))


class CallState:
    """What one index has received so far."""

    __slots__ = ("arguments", "id", "index", "is_faulty", "names", "ordinal", "typed")

    def __init__(self, ordinal: int, index: int) -> None:
        self.ordinal = ordinal
        self.index = index
        self.id: str | None = None
        self.names = PiecedText()
        self.arguments = PiecedText()
        self.typed = False
        self.is_faulty = False
        """Whether its function or arguments were refused, so that missing arguments are no news."""

    @property
    def name(self) -> str:
        """The name as far as it is known."""
        return str(self.names)


def incoming_kind(value: Any) -> IncomingKind:
    """Name the kind of what a fragment says of its ID (docs/design.md, section 2)."""
    if value is _MISSING:
        return "omitted"
    if value == "" and type(value) is str:
        return "empty_string"
    return _KIND_BY_TYPE.get(type(value), "object")


class Calls:
    """All calls of one response. Nothing outlives it, and nothing is shared between indices."""

    def __init__(
        self, rules: RuleSet, limits: Limits, diagnosis: Diagnosis, tolerances: defaultdict[str, int]
    ) -> None:
        self._cells = rules.cells
        self._limits = limits
        self._diagnosis = diagnosis
        self._tolerances = tolerances
        self.by_index: dict[int, CallState] = {}
        self.aliases: dict[str, str] = {}
        self.fragments = 0
        self.null_continuations = 0

    def add(self, fragment: Any, event: int, finished: bool) -> None:
        """Take one fragment, checked in the order of docs/design.md, section 4."""
        self.fragments += 1
        if not isinstance(fragment, dict):
            self._refuse_whole("fragment.invalid", event, None, None, {"field": "fragment"})
            return
        incoming = fragment.get("id", _MISSING)
        index = fragment.get("index")
        if finished:
            self._refuse_whole("completion.fragment_after_finish", event, index, incoming)
            return
        if type(index) is not int or not 0 <= index <= MAX_INDEX:
            self._refuse_whole(_index_category(index), event, index, incoming)
            return
        call = self.by_index.get(index)
        if call is None:
            if len(self.by_index) >= self._limits.calls:
                self._refuse_whole("limit.calls", event, index, incoming)
                return
            call = self.by_index[index] = CallState(len(self.by_index) + 1, index)
        self._take(call, fragment, incoming, event)

    def _take(self, call: CallState, fragment: dict[str, Any], incoming: Any, event: int) -> None:
        previous = identity_of(call.id)
        decision = self._identify(call, incoming, previous)
        seen: _Seen = (call, incoming, previous, event)
        category: str | None = None
        if decision not in ("keep", "set"):
            category = self._refuse(decision.removeprefix("reject:"), seen)
        kind = fragment.get("type")
        if kind is not None and kind != "":
            call.typed = True
            if type(kind) is not str or kind.lower() != "function":
                category = self._refuse("protocol.tool_type", seen, category)
        function = fragment.get("function")
        sizes = call.names.size, call.arguments.size
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
            if type(name) is str:
                if name and call.names.add(name, self._limits.name_bytes):
                    category = self._refuse("limit.name_bytes", seen, category)
            elif name is not None:
                category = self._refuse("fragment.name_type", seen, category)
            if type(arguments) is str:
                if arguments:
                    if not arguments.isascii() and _REPLACEMENT in arguments:
                        self._tolerances["replacement_character"] += arguments.count(_REPLACEMENT)
                    if call.arguments.add(arguments, self._limits.arguments_bytes):
                        category = self._refuse("limit.arguments_bytes", seen, category)
            elif arguments is not None:
                call.is_faulty = True
                category = self._refuse("fragment.arguments_type", seen, category)
            if None in function.values():
                self._count_padding(function, ("name", "arguments"))
        elif function is not None:
            call.is_faulty = True
            category = self._refuse("fragment.invalid", seen, category, {"field": "function"})
        if None in fragment.values():
            self._count_padding(fragment, ("id", "type", "function"))
        if self._diagnosis.diagnose:
            added = call.names.size - sizes[0], call.arguments.size - sizes[1]
            self._add_row(seen, "reject" if category else decision, category, *added)

    def _identify(self, call: CallState, incoming: Any, previous: Identity) -> str:
        """Apply the rule table's cell and return its action."""
        if incoming is _MISSING:
            column = "omitted"
        elif type(incoming) is not str:
            column = incoming_kind(incoming)
            self.null_continuations += column == "null" and previous == "established"
        elif not incoming:
            column = "empty_string"
        else:
            column = "same_string" if incoming == call.id else "other_string"
        action = self._cells[previous][column]
        if action == "set":
            call.id = _as_identity(incoming)
            if call.id:
                self._alias(call.id)
        elif column == "same_string":
            self._tolerances["repeated_id"] += 1
        return action

    def _count_padding(self, holder: dict[str, Any], names: tuple[str, ...]) -> None:
        for name in names:
            if holder.get(name, "") is None:
                self._tolerances[f"null_padding.{name}"] += 1

    def _refuse(
        self, category: str, seen: _Seen, first: str | None = None, flags: dict[str, Any] | None = None
    ) -> str:
        """Report a fault of a fragment whose call is known; return the fragment's first category."""
        call, incoming, previous, event = seen
        self._diagnosis.report(
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
                next_identity=identity_of(call.id),
                flags=flags or {},
            )
        )
        return first or category

    def _refuse_whole(
        self, category: str, event: int, index: Any, incoming: Any, flags: dict[str, Any] | None = None
    ) -> None:
        """Report a fault of a fragment that belongs to no call."""
        kind = None if category == "fragment.invalid" else incoming_kind(incoming)
        self._diagnosis.report(
            Fault(
                category,
                "fragment",
                event=event,
                fragment=self.fragments,
                incoming_kind=kind,
                incoming_empty=None if kind is None else kind == "empty_string",
                flags=flags or {},
            )
        )
        shown = index if type(index) is int and abs(index) < 1 << 31 else None
        self._diagnosis.add_row(
            FragmentRow(event, self.fragments, shown, kind, None, None, "reject", category, 0, 0, None, None)
        )

    def _add_row(
        self, seen: _Seen, decision: str, category: str | None, name_bytes: int, arguments_bytes: int
    ) -> None:
        call, incoming, previous, event = seen
        self._diagnosis.add_row(
            FragmentRow(
                event,
                self.fragments,
                call.index,
                incoming_kind(incoming),
                previous,
                identity_of(call.id),
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


def _is_half(character: str, first: int) -> bool:
    """Whether the character is a high (from 0xD800) or low (from 0xDC00) half of a surrogate pair."""
    return first <= ord(character) < first + 0x400


def _utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
