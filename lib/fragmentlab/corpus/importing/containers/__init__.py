"""The container kinds, in the order in which they are asked; another kind is one module and one line here.

A module has ``recognise(document)``, which looks at the name and the first bytes, and ``read(document,
budget)``, which yields documents to open in turn, bodies, and refusals.
"""

from __future__ import annotations

from typing import cast

from fragmentlab.corpus.importing.containers import (
    archives,
    burp,
    code,
    curl,
    encoded,
    flow,
    har,
    http,
    insomnia,
    jsontext,
    log,
    notebook,
    packed,
    refused,
    sqlite,
    sse,
    table,
    tree,
    wide,
    yamltext,
)
from fragmentlab.corpus.importing.documents import ContainerKind

KINDS = cast(
    tuple[ContainerKind, ...],
    (
        har, notebook, insomnia, tree,  # parsed values
        packed, archives, sqlite, flow, wide,  # bytes
        http, sse, jsontext, yamltext, burp, curl, table, refused, code, log, encoded,  # texts
    ),
)  # fmt: skip
