"""The smallest stream with the same fault, as text that a person copies into a bug report."""

from __future__ import annotations

import json
from typing import Any

from fragmentlab.assembler import SHIPPED, RuleSet
from fragmentlab.corpus.minimize import minimized_vector
from fragmentlab.corpus.streams import Stream
from fragmentlab.disclosure import for_html, for_terminal
from fragmentlab.errors import InputError
from fragmentlab.reports.show.prose import Callout

LARGEST_BYTES = 1 << 20
"""Streams above this are minimized on the command line, where waiting shows."""


class VectorText:
    """A vector file in full; it was scrubbed before it was minimized."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.text = json.dumps(document, indent=2)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {
            "text/html": f'<pre tabindex="0" aria-label="Vector file">{for_html(self.text)}</pre>',
            "text/plain": "\n".join(map(for_terminal, self.text.split("\n"))),
        }


def minimized(stream: Stream, rules: RuleSet) -> VectorText | Callout:
    """Return the vector of a refused stream, or say why there is none."""
    if rules.name not in SHIPPED:
        return Callout("plain", "Not minimized: a vector names shipped rule sets only.")
    if len(stream.body) > LARGEST_BYTES:
        return Callout("plain", "Not minimized here: the stream is large. Use `fragmentlab minimize`.")
    try:
        return VectorText(minimized_vector(stream, rules=rules))
    except InputError as error:
        return Callout("plain", f"Not minimized: {error}.")
