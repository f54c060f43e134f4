"""One recorded stream: how it is read, named and told from what is no stream."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fragmentlab.corpus import streams
from fragmentlab.corpus.streams import Stream, framing_of, is_binary, read_stream_file, stream_id
from fragmentlab.errors import InputError

SSE = b'data: {"choices":[]}\n\ndata: [DONE]\n\n'


def test_a_stream_is_named_by_its_content(tmp_path: Path) -> None:
    """Two files with the same bytes are the same stream; the file's name is no part of it."""
    for name in ("one.sse", "secret-customer.sse"):
        (tmp_path / name).write_bytes(SSE)
    one, two = (read_stream_file(tmp_path / name) for name in ("one.sse", "secret-customer.sse"))
    assert one == two
    assert one.id == stream_id(SSE)
    assert "secret" not in repr(two)


def test_an_id_that_is_no_content_hash_is_not_shown() -> None:
    """Someone's own id, which may name a file or a customer, stands for itself only in its batch."""
    for own in (stream_id(SSE), stream_id(SSE) + "-2"):
        assert Stream(own, SSE).shown_id == own
    for other in ("secret-customer", "s-secret", stream_id(SSE) + "-secret", stream_id(SSE) + "\n", ""):
        assert Stream(other, SSE).shown_id == stream_id(SSE)
        assert "secret" not in repr(Stream(other, SSE))


@pytest.mark.parametrize(
    ("body", "framing"),
    [
        (SSE, "sse"),
        (b'{"choices":[]}\n', "jsonl"),
        (b'\xef\xbb\xbf \r\n\t{"choices":[]}', "jsonl"),
        (b'[{"choices":[]}]', "sse"),
        (b"", "sse"),
    ],
)
def test_json_lines_begin_with_a_brace(body: bytes, framing: str) -> None:
    """The first non-blank byte tells the framing."""
    assert framing_of(body) == framing


@pytest.mark.parametrize(
    ("body", "binary"),
    [
        (SSE, False),
        (b"data: \xff\n\n", False),
        (b"data: a\0b\n\n", False),
        (b'{"a":"\0"}', False),
        (b"<html>not found</html>", False),
        (b"\xc3", True),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", True),
        (b"\x1f\x8b\x08\0\0\0\0\0", True),
        (b"caf\xe9 latte", True),
        ("é".encode() * 40_000, False),
    ],
)
def test_binary_is_told_from_text(body: bytes, binary: bool) -> None:
    """Bytes without any event-stream field that are not text are no stream."""
    assert is_binary(body) is binary


def test_unusable_files_are_one_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, a directory, empty, binary, too large: each is InputError that says what and what to do."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    (tmp_path / "large").write_bytes(SSE)
    monkeypatch.setattr(streams, "MAX_FILE_BYTES", len(SSE) - 1)
    words = {
        "missing": "No such file",
        ".": "it is a directory",
        "empty": "is empty",
        "binary": "is binary",
        "large": "split it",
        "a\0b": "path is not valid",
    }
    for name, word in words.items():
        with pytest.raises(InputError, match=word) as caught:
            read_stream_file(os.path.join(tmp_path, name))
        assert "\n" not in str(caught.value)


def test_a_large_file_is_never_read_whole(tmp_path: Path) -> None:
    """A sparse file of 200 MB is refused after the limit, without holding it."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(200_000_000)
    with pytest.raises(InputError, match="larger than 64 MiB"):
        read_stream_file(tmp_path / "huge")
