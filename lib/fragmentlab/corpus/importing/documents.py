"""The bytes of a file to the documents in it: event streams, JSON, several JSON texts, JSON Lines, YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fragmentlab.corpus.importing.finder import is_chunk_lines
from fragmentlab.corpus.importing.sources import MAX_FILE_BYTES, content_of, head_of, lines_of
from fragmentlab.corpus.importing.unpack import Budget, Unreadable, as_body
from fragmentlab.corpus.importing.yaml_events import yaml_documents
from fragmentlab.corpus.streams import MAX_FILE_BYTES as MAX_BODY_BYTES
from fragmentlab.wire.events import looks_like_events

_YAML_START = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:---|%YAML|- |[A-Za-z_][\w.-]*:(?:\s|$))")
_YAML_NAMES = (".yaml", ".yml")
_JSON_NAMES = (".json", ".jsonl", ".ndjson", ".har")
_AS_UTF16 = "files read as UTF-16"
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
_DECODER = json.JSONDecoder()
_END = "[DONE]"
_BLANKS = re.compile(r"[ \t\r\n]*")


@dataclass(repr=False)
class Contents:
    """What a file holds: one raw ``body``, or ``documents`` to search; ``notes`` say what was unusual."""

    body: bytes | None = None
    documents: Iterator[Any] = field(default_factory=lambda: iter(()))
    notes: list[str] = field(default_factory=list)


def read_contents(path: Path, budget: Budget) -> Contents:
    """Read one file; raise Unreadable with the reason where that cannot be done."""
    head = head_of(path)
    if _is_long(path) and head.lstrip()[:1] == b"{":
        return Contents(documents=_long_lines(path))
    data = content_of(path, budget)
    if not data.strip():
        raise Unreadable("is empty")
    text, note = _decoded(data)
    notes = [note] if note else []
    if text is None:
        raise Unreadable("is binary")
    body = as_body(text) if note == _AS_UTF16 else data
    if _is_event_file(body):
        return Contents(body=_checked_body(body), notes=notes)
    if text.lstrip()[:1] == "{" and is_chunk_lines(text) and _is_json_lines(text):
        return Contents(body=_checked_body(body), notes=notes)
    return Contents(documents=_documents(path, text), notes=notes)


def _is_long(path: Path) -> bool:
    try:
        return path.stat().st_size > MAX_FILE_BYTES
    except OSError:
        return False


def _long_lines(path: Path) -> Iterator[Any]:
    """Yield each line's document; only records are sought in so large a file, not one body spread over its
    lines."""
    for number, line in enumerate(lines_of(path), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise Unreadable(f"is not JSON in line {number}, and too large to be read at once") from None


def _decoded(data: bytes) -> tuple[str | None, str | None]:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return data.decode(encoding), None if encoding == "utf-8-sig" else _AS_UTF16
            except UnicodeDecodeError:
                raise Unreadable("begins as UTF-16 and is not") from None
    if b"\0" in data[: 1 << 16]:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), "files with bytes that are not UTF-8"


def _is_event_file(body: bytes) -> bool:
    """Whether the file is an event stream itself: the first line that says anything is one of its fields."""
    first = body.removeprefix(b"\xef\xbb\xbf").lstrip()[:512]
    return re.match(rb"(?:data|event|id|retry)?:", first) is not None and looks_like_events(body)


def _is_json_lines(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    return all(line.lstrip()[:1] == "{" for line in lines) and lines[0].strip() != "{"


def _checked_body(body: bytes) -> bytes:
    if len(body) > MAX_BODY_BYTES:
        raise Unreadable(f"is one stream of more than {MAX_BODY_BYTES >> 20} MiB; split it into responses")
    return body


def _documents(path: Path, text: str) -> Iterator[Any]:
    """Yield the documents. A file of another name that cannot be read matters only if it could hold a
    stream."""
    is_named = any(suffix.lower() in _YAML_NAMES + _JSON_NAMES for suffix in path.suffixes)
    try:
        yield from _parsed(path, text)
    except Unreadable:
        if is_named or "data:" in text or '"choices"' in text:
            raise


def _parsed(path: Path, text: str) -> Iterator[Any]:
    is_yaml_name = any(suffix.lower() in _YAML_NAMES for suffix in path.suffixes)
    start = text.lstrip()[:1]
    if start and start in '{["':
        try:
            yield from _json_documents(text)
        except Unreadable:
            # YAML's flow style and quoted keys begin like JSON.
            if path.suffix.lower() in _JSON_NAMES:
                raise
            yield from yaml_documents(_printable(text))
    elif is_yaml_name or _YAML_START.match(text):
        yield from yaml_documents(_printable(text))
    elif looks_like_events(as_body(text)):
        yield as_body(text)
    else:
        yield text.strip()


def _printable(text: str) -> str:
    """YAML allows no stray bytes; they stand as U+FFFD, as the recorder's own reader would show them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _json_documents(text: str) -> Iterator[Any]:
    """Yield the JSON texts of a file: one, several in a row, or one a line (then as one list)."""
    documents = []
    at = _BLANKS.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        try:
            document, at = _DECODER.raw_decode(text, at)
        except RecursionError:
            raise Unreadable("is nested too deeply") from None
        except json.JSONDecodeError as error:
            if not text.startswith(_END, at):
                raise Unreadable(f"is not valid JSON (line {error.lineno})") from None
            document, at = _END, at + len(_END)
        except ValueError:
            raise Unreadable("holds a number of more than 4,300 digits") from None
        documents.append(document)
        at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
    if len(documents) == 1:
        yield documents[0]
    else:
        yield documents
