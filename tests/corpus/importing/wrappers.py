"""Containers around a stream: each function puts the bytes of one or more responses into one file."""

from __future__ import annotations

import base64
import bz2
import csv
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import brotli
import yaml
import zstandard

URL = "https://api.openai.com/v1/chat/completions"
PATH = "/v1/chat/completions"
ASKED = json.dumps({"model": "m", "stream": True, "messages": []})
Wrapper = Callable[[Sequence[bytes]], bytes]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def exchanges(bodies: Sequence[bytes], answer: Callable[[bytes], Any]) -> list[dict[str, Any]]:
    """Return what most recorders keep: a list of requests with their answers."""
    return [
        {"request": {"method": "POST", "url": URL, "body": ASKED}, "response": answer(body)}
        for body in bodies
    ]


def har(bodies: Sequence[bytes], content: Callable[[bytes], dict[str, Any]]) -> bytes:
    entries = [
        {
            "request": {"method": "POST", "url": URL, "headers": [], "postData": {"text": ASKED}},
            "response": {"status": 200, "content": {"mimeType": "text/event-stream", **content(body)}},
        }
        for body in bodies
    ]
    return as_json({"log": {"version": "1.2", "entries": entries}})


def archive(bodies: Sequence[bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for number, body in enumerate(bodies):
            packed.writestr(f"logs/{number}.sse", body)
    return file.getvalue()


def tarball(bodies: Sequence[bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as packed:
        for number, body in enumerate(bodies):
            member = tarfile.TarInfo(f"{number}.sse")
            member.size = len(body)
            packed.addfile(member, io.BytesIO(body))
    return file.getvalue()


def database(bodies: Sequence[bytes]) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE calls (id INTEGER, url TEXT, response BLOB)")
    connection.executemany(
        "INSERT INTO calls VALUES (?, ?, ?)", [(n, URL, body) for n, body in enumerate(bodies)]
    )
    connection.commit()
    return connection.serialize()


def tnetstring(value: Any) -> bytes:
    if isinstance(value, dict):
        data, kind = b"".join(tnetstring(key) + tnetstring(item) for key, item in value.items()), b"}"
    elif isinstance(value, list):
        data, kind = b"".join(map(tnetstring, value)), b"]"
    elif isinstance(value, bytes):
        data, kind = value, b","
    elif value is None:
        data, kind = b"", b"~"
    else:
        data, kind = str(value).encode(), b"#" if isinstance(value, int) else b";"
    return b"%d:%s%s" % (len(data), data, kind)


def flows(bodies: Sequence[bytes]) -> bytes:
    return b"".join(
        tnetstring(
            {
                "version": 20,
                "type": "http",
                "request": {
                    "method": b"POST", "host": "api.openai.com", "port": 443, "path": b"/v1/chat/completions",
                    "headers": [], "content": ASKED.encode(),
                },
                "response": {"status_code": 200, "headers": [[b"x", b"y"]], "content": body},
                "error": None,
            }
        )
        for body in bodies
    )  # fmt: skip


def chunked(data: bytes, size: int = 50) -> bytes:
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def curl_i(bodies: Sequence[bytes]) -> bytes:
    return b"".join(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body for body in bodies)


def raw_http(bodies: Sequence[bytes]) -> bytes:
    return b"".join(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\n\r\n%s\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s" % (ASKED.encode(), chunked(body))
        for body in bodies
    )


def burp(bodies: Sequence[bytes]) -> bytes:
    asked = b64(b"POST /v1/chat/completions HTTP/1.1\r\n\r\n")
    items = "".join(
        f'<item><request base64="true"><![CDATA[{asked}]]></request>'
        f'<response base64="true"><![CDATA[{b64(curl_i([body]))}]]></response></item>'
        for body in bodies
    )
    return f'<?xml version="1.0"?>\n<items burpVersion="2025.1">{items}</items>'.encode()


def table(bodies: Sequence[bytes]) -> bytes:
    file = io.StringIO()
    rows = csv.writer(file)
    rows.writerows([("id", "response"), *((n, body.decode()) for n, body in enumerate(bodies))])
    return file.getvalue().encode()


def notebook(bodies: Sequence[bytes]) -> bytes:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": body.decode().splitlines(True)} for body in bodies
    ]
    cells = [
        {"cell_type": "code", "source": ["x"], "metadata": {}, "outputs": [output]} for output in outputs
    ]
    return as_json({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def charles(bodies: Sequence[bytes]) -> bytes:
    told = {"mimeType": "text/event-stream", "contentEncoding": None}
    return as_json(
        [
            {
                "status": "COMPLETE",
                "host": "api.openai.com",
                "path": PATH,
                "request": {"body": {"text": ASKED}},
                "response": told | {"body": {"text": body.decode()}},
            }
            for body in bodies
        ]
    )


EXACT: dict[str, tuple[str, Wrapper]] = {
    "HAR": ("a.har", lambda bodies: har(bodies, lambda body: {"text": body.decode(), "size": len(body)})),
    "HAR, Base64": ("a.har", lambda bodies: har(bodies, lambda it: {"text": b64(it), "encoding": "base64"})),
    "vcrpy": (
        "a.yaml",
        lambda bodies: yaml.safe_dump(
            {"interactions": exchanges(bodies, lambda body: {"body": {"string": body}}), "version": 1}
        ).encode(),
    ),
    "vcrpy, as text": (
        "a.yaml",
        lambda bodies: yaml.safe_dump(
            {"interactions": exchanges(bodies, lambda it: {"body": {"string": it.decode()}}), "version": 1}
        ).encode(),
    ),
    "WireMock": (
        "a.json",
        lambda bodies: as_json({"mappings": exchanges(bodies, lambda body: {"base64Body": b64(body)})}),
    ),
    "MockServer": (
        "a.json",
        lambda bodies: as_json(
            [{"httpRequest": {"path": PATH}, "httpResponse": {"body": body.decode()}} for body in bodies]
        ),
    ),
    "nock": (
        "a.json",
        lambda bodies: as_json(
            [{"scope": URL[:22], "path": PATH, "body": ASKED, "response": body.hex()} for body in bodies]
        ),
    ),
    "Charles": ("a.chlsj", charles),
    "Postman": (
        "a.json",
        lambda bodies: as_json(
            {"item": [{"response": [{"originalRequest": {"url": URL}, "body": b.decode()}]} for b in bodies]}
        ),
    ),
    "JSON Lines of exchanges": (
        "a.jsonl",
        lambda bodies: b"\n".join(map(as_json, exchanges(bodies, lambda body: {"body": body.decode()}))),
    ),
    "ZIP": ("a.zip", archive),
    "tar, gzip": ("a.tar.gz", tarball),
    "SQLite": ("a.db", database),
    "mitmproxy": ("a.flow", flows),
    "curl -i": ("a.txt", curl_i),
    "raw HTTP, chunked": ("a.http", raw_http),
    "Burp": ("a.xml", burp),
    "CSV": ("a.csv", table),
    "notebook": ("a.ipynb", notebook),
}  # fmt: skip
"""Containers that keep a body's bytes."""

SINGLE: dict[str, tuple[str, Wrapper]] = {
    "as it is": ("a.sse", lambda bodies: bodies[0]),
    "gzip": ("a.sse.gz", lambda bodies: gzip.compress(bodies[0])),
    "bzip2": ("a.sse.bz2", lambda bodies: bz2.compress(bodies[0])),
    "xz": ("a.sse.xz", lambda bodies: lzma.compress(bodies[0])),
    "Zstandard": ("a.sse.zst", lambda bodies: zstandard.compress(bodies[0])),
    "Brotli": ("a.sse.br", lambda bodies: brotli.compress(bodies[0])),
    "gzip in ZIP in tar": ("a.tar.gz", lambda bodies: tarball([archive([gzip.compress(bodies[0])])])),
    "Base64": ("a.b64", lambda bodies: base64.encodebytes(bodies[0])),
    "chunked": ("a.txt", lambda bodies: chunked(bodies[0])),
    "Insomnia": (
        "a.json",
        lambda bodies: as_json(
            [{"name": "HeaderIn", "timestamp": 1, "value": "HTTP/1.1 200 OK"}]
            + [
                {"name": "DataIn", "timestamp": 2, "value": bodies[0].decode()[at : at + 40]}
                for at in range(0, len(bodies[0].decode()), 40)
            ]
        ),
    ),
    "reads in Base64": (
        "a.json",
        lambda bodies: as_json(
            {"response": {"chunks": [b64(bodies[0][at : at + 41]) for at in range(0, len(bodies[0]), 41)]}}
        ),
    ),
}
"""Containers of one body."""


def prefixed(prefix: str) -> Wrapper:
    """Return a wrapper that writes something before each line; ``%d`` counts."""

    def wrapped(bodies: Sequence[bytes]) -> bytes:
        lines = bodies[0].decode().removesuffix("\n").split("\n")
        return "".join(
            f"{prefix % number if '%' in prefix else prefix}{line}\n" for number, line in enumerate(lines)
        ).encode()

    return wrapped


PREFIXES = {
    "docker logs -t": "2025-01-01T00:00:%02d.123456789Z ",
    "compose": "service-1  | ",
    "Kubernetes": "2025-01-01T00:00:00.%09dZ stdout F ",
    "Python logging": "2025-01-01 00:00:00,%03d DEBUG app.client: ",
    "brackets": "[2025-01-01 00:00:00.%03d][77][debug] ",
    "grep": "gateway.log:%d:",
    "line numbers": "%6d\t",
    "quoted reply": "> ",
    "indentation": "    ",
    "colours": "\x1b[32mDEBUG\x1b[0m ",
    "journald": "Jan 01 00:00:00 host gateway[%d]: ",
    "syslog": "<14>1 2025-01-01T00:00:%02dZ host app 77 - - ",
}
LOGS: dict[str, tuple[str, Wrapper]] = {
    name: ("a.log", prefixed(prefix)) for name, prefix in PREFIXES.items()
} | {
    "docker json-file": (
        "a.log",
        lambda bodies: b"\n".join(
            as_json({"log": line, "stream": "stdout", "time": "2025"})
            for line in bodies[0].decode().splitlines(True)
        ),
    ),
    "escaped as in a JSON string": ("a.txt", lambda bodies: json.dumps(bodies[0].decode())[1:-1].encode()),
    "PowerShell": ("a.txt", lambda bodies: bodies[0].decode().replace("\n", "\r\n").encode("utf-16")),
}
"""Logs of one body, line by line."""


Chunks = Sequence[Sequence[str]]
"""The texts of the chunk objects of each response."""
ListWrapper = Callable[[Chunks], str]


def listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"


def lines(chunks: Chunks, record: str) -> str:
    """Return a log with one line for each chunk; ``%s`` is the chunk, ``%q`` the chunk as a text."""
    texts = [text for response in chunks for text in response]
    return "\n".join(
        record.replace("%q", json.dumps(text)).replace("%d", json.dumps(f"data: {text}")).replace("%s", text)
        for text in texts
    )


def otlp(chunks: Chunks) -> str:
    events = [
        {
            "name": "chunk",
            "attributes": [
                {"key": "n", "value": {"intValue": "1"}},
                {"key": "c", "value": {"stringValue": text}},
            ],
        }
        for response in chunks
        for text in response
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "s", "events": events}]}]}]})


def loki(chunks: Chunks) -> str:
    values = [
        [str(n), f"data: {text}"] for n, text in enumerate(text for response in chunks for text in response)
    ]
    return json.dumps({"data": {"result": [{"stream": {"app": "gw"}, "values": values}]}})


LISTS: dict[str, tuple[str, ListWrapper]] = {
    "list in a list": ("a.json", lambda chunks: listed([listed(texts) for texts in chunks])),
    "turns": (
        "a.json",
        lambda chunks: '{"turns": ' + listed([f'{{"chunks": {listed(texts)}}}' for texts in chunks]) + "}",
    ),
    "Langfuse": (
        "a.json",
        lambda chunks: (
            '{"observations": '
            + listed([f'{{"id": "o", "output": {listed(texts)}}}' for texts in chunks])
            + "}"
        ),
    ),
    "Helicone": (
        "a.json",
        lambda chunks: listed(
            [f'{{"response_body": {{"streamed_data": {listed(texts)}}}}}' for texts in chunks]
        ),
    ),
    "pino": ("a.log", lambda chunks: lines(chunks, '{"level": 20, "msg": "chunk", "chunk": %s}')),
    "pino, as text": ("a.log", lambda chunks: lines(chunks, '{"level": 20, "raw": %q}')),
    "structlog": (
        "a.log",
        lambda chunks: lines(chunks, '{"event": "chunk received", "data": %q, "level": "debug"}'),
    ),
    "winston": ("a.log", lambda chunks: lines(chunks, '{"message": %d, "level": "debug"}')),
    "Datadog": (
        "a.json",
        lambda chunks: "[" + lines(chunks, '{"attributes": {"m": 1}, "message": %d},').rstrip(",") + "]",
    ),
    "CloudWatch": (
        "a.json",
        lambda chunks: '{"events": [' + lines(chunks, '{"timestamp": 1, "message": %d},').rstrip(",") + "]}",
    ),
    "OpenTelemetry span events": ("a.json", otlp),
    "Loki": ("a.json", loki),
    "Python logging": (
        "a.log",
        lambda chunks: lines(chunks, "2025-01-01 00:00:00,123 DEBUG [T-1] upstream chunk: %s"),
    ),
    "logfmt": ("a.log", lambda chunks: lines(chunks, "ts=2025 level=debug msg=%d")),
    "strings of a program": (
        "a.ts",
        lambda chunks: "export const x = [\n" + lines(chunks, "  %d,") + "\n]\n",
    ),
}
"""Containers of chunk objects, one response after the other."""
