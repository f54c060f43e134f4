"""From a source's bytes to the bodies in it: each container kind opens its documents until none is left."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any, Protocol

from fragmentlab.corpus.importing.budget import Budget, Exhausted, OtherKind, Unreadable
from fragmentlab.corpus.importing.exchanges import NO_EXCHANGE, Exchange
from fragmentlab.corpus.importing.values import as_body, as_text
from fragmentlab.wire.events import looks_like_events

MAX_NESTING = 8
"""How many containers may stand in each other: an archive in an archive, a text in a text."""
_WIDE_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEAD = 1 << 16
_HALF = re.compile("[\ud800-\udfff]")
_BLANKS = re.compile(r"[ \t\r\n\ufeff]*+")


@dataclass(frozen=True, repr=False)
class Document:
    """Something that may hold recordings: bytes, a text, or a value that was parsed already."""

    content: Any
    name: str = ""
    """The name of the file or archive member that it is all of; empty for what stood inside one."""
    place: str = ""
    exchange: Exchange = NO_EXCHANGE
    notes: tuple[str, ...] = ()
    fidelity: str = "events"
    is_joined: bool = False
    """Whether it was put together from pieces, so that it may hold more than one response."""

    @cached_property
    def data(self) -> bytes:
        """The content as bytes."""
        if isinstance(self.content, str):
            return as_body(self.content)
        return self.content if isinstance(self.content, bytes) else b""

    @cached_property
    def text(self) -> str:
        """The content as text, empty where it is none."""
        return self.content if isinstance(self.content, str) else _decoded(self.data)

    @property
    def head(self) -> str:
        """The first characters of the text, without blanks before them."""
        start = _BLANKS.match(self.text).end()  # type: ignore[union-attr]
        return self.text[start : start + _HEAD]

    @cached_property
    def suffix(self) -> str:
        """The last suffix of the name in lower case, ``.har`` for instance."""
        return PurePath(self.name).suffix.lower()

    @property
    def is_wide(self) -> bool:
        """Whether the content is a text in UTF-16."""
        return isinstance(self.content, bytes) and _wide_encoding(self.content) is not None

    def inner(self, content: Any, place: str = "", *notes: str, name: str = "", **facts: Any) -> Document:
        """Return a document that was found in this one."""
        path = f"{self.place}{place}" if place[:1] in ("", "[") or not self.place else f"{self.place}.{place}"
        facts = {"content": content, "name": name, "place": path, "notes": self.notes + notes} | facts
        return replace(self, **facts)

    def body(self, data: bytes, *notes: str, fidelity: str | None = None) -> Body:
        """Return a body that this document is; what was undone lowers the fidelity."""
        lowered = "chunks" if notes or self.notes else self.fidelity
        return Body(
            data, fidelity or lowered, self.place, self.exchange, self.notes + notes, is_file=bool(self.name)
        )


@dataclass(frozen=True, repr=False)
class Body:
    """The bytes of one response as recorded, and what is known of them."""

    data: bytes
    fidelity: str
    place: str = ""
    exchange: Exchange = NO_EXCHANGE
    notes: tuple[str, ...] = ()
    record: dict[str, Any] | None = field(default=None)
    """The kit's own stream record, where the body came from one."""
    is_file: bool = False
    """Whether it is all of a file, an archive member or an HTTP answer."""


@dataclass(frozen=True)
class Refusal:
    """Something that holds no stream that could be judged, and why."""

    reason: str
    """A key of REASONS, or what a reader said of data that is broken."""
    is_fault: bool = True
    """Whether something is lost by it, or it is only no streamed answer."""


Item = Document | Body | Refusal


class ContainerKind(Protocol):
    """A container kind: a module of the registry in ``containers``."""

    def recognise(self, document: Document) -> bool:
        """Return whether the document is of this kind, by its name and its first bytes."""

    def read(self, document: Document, budget: Budget) -> Iterable[Item]:
        """Yield what stands in it; raise Unreadable where it is broken, OtherKind where it is none."""


def open_all(
    document: Document, kinds: tuple[ContainerKind, ...], budget: Budget, depth: int = 0
) -> Iterator[Body | Refusal]:
    """Yield every body of a document and every reason why something in it is none."""
    if depth > MAX_NESTING:
        raise Unreadable(f"has more than {MAX_NESTING} containers in each other")
    budget.visit()
    for kind in kinds:
        if not kind.recognise(document):
            continue
        try:
            for item in kind.read(document, budget):
                if isinstance(item, Document):
                    yield from _inside(item, kinds, budget, depth + 1)
                else:
                    yield item
        except OtherKind:
            continue
        return


def _inside(
    document: Document, kinds: tuple[ContainerKind, ...], budget: Budget, depth: int
) -> Iterator[Body | Refusal]:
    """Open a part; one that is broken does not end what it stands in."""
    try:
        yield from open_all(document, kinds, budget, depth)
    except Exhausted:
        raise
    except Unreadable as error:
        yield Refusal(f"a part {error}")


def _decoded(data: bytes) -> str:
    if (encoding := _wide_encoding(data)) is not None:
        # A recording may be cut in the middle of a character, and hold half of a pair.
        text = data[: len(data) // 2 * 2].decode(encoding, "surrogatepass")
        if "data:" not in text and "choices" not in text and _HALF.search(text):
            raise Unreadable("begins as UTF-16 and is not")
        return text.removeprefix("\ufeff")
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data[:_HEAD] and not looks_like_events(data[:_HEAD]):
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Of bytes that are no text only what could be an event stream is worth a look.
        return as_text(data) if b"data:" in data or b"choices" in data else ""


def _wide_encoding(data: bytes) -> str | None:
    """Return which UTF-16 a text is in, by its mark or by the zero bytes of its first letters."""
    for mark, encoding in _WIDE_MARKS:
        if data.startswith(mark):
            return encoding
    head = data[:512]
    for high, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = head[high::2].count(0), head[1 - high :: 2].count(0)
        if len(head) >= 16 and zeros * 8 > len(head) * 3 and others * 32 < len(head):
            return encoding
    return None
