"""What a source seems to be that holds no stream, and what to do: data that every command prints from."""

from __future__ import annotations

REASONS = {
    "nothing": "is empty",
    "no chunks": "is JSON without chunks of a streamed response; `fragmentlab record` makes a recording, "
    "or write the chunks as JSON, one on each line",
    "ends early": "is packed bytes that end early, before the first whole event; save or copy the file again",
    "binary": "is binary, such as compressed bytes without their header; unpack or export it as text",
    "no recording": "holds no recorded stream that is recognised",
    "packet capture": "is a packet capture; export the followed HTTP stream of your capture tool as text",
    "archive": "is an archive of a kind that is not read; unpack it first",
    "columnar": "is a columnar file and no batch; export it as CSV or JSON Lines",
    "pickle": "is a Python pickle, which is never run; write the chunks as JSON instead",
    "picture": "is a picture or a document; export the text of the stream",
    "web page": "is a web page, such as a proxy's error page: no model answered",
    "error answer": "is an error answer of a server, not a stream",
    "request": "is a request, not what was answered; record the response",
    "printed object": "is a printed object of a programming language, which shows omitted and null alike or "
    "leaves parts out, so it cannot support an outcome; record the bytes, or write the chunks as JSON",
    "not streamed": "holds an answer that was not streamed (its calls stand under `message`): `stream: true` "
    "was not sent; record a streamed answer",
    "assembled": "holds only assembled messages, which cannot show how fragments came; record the wire",
    "bare fragments": "holds fragments without the chunks around them, so that no end is known; "
    "record whole chunks",
    "mixed": "holds events of responses that ran at once, or that were logged twice, with nothing to tell "
    "them apart; log an id with each, or record them one by one",
    "body not kept": "holds an event stream of which the recorder kept no body; record it with bodies",
    "not Base64": "holds a body that is said to be Base64 and is not",
    "only comments": "holds an event stream of comments only",
    "a part of the body": "holds a body of which the recorder kept only a part of the body",
}
"""What to say by what something seems to be."""
QUIET = {
    "nothing": "files that are empty",
    "binary": "files that are binary",
    "picture": "files that are binary",
    "columnar": "files that are binary",
    "web page": "files that are web pages",
}
"""What is no fault in a folder or a glob, where it was not named, and how it is counted."""


def sentence(reason: str) -> str:
    """Return what to say of a reason: a key of REASONS, or a sentence already."""
    return REASONS.get(reason, reason)
