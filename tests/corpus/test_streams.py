"""One recorded stream: how it is named, and its framing told."""

from __future__ import annotations

import pytest

from fragmentlab.corpus.streams import Stream, framing_of, stream_id

SSE = b'data: {"choices":[]}\n\ndata: [DONE]\n\n'


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
