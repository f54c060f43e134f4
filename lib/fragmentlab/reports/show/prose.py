"""Sentences in notebooks, made from data: an outcome, lists of steps, and the closing cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from fragmentlab.disclosure import for_html, for_terminal
from fragmentlab.reports.frame.sanitize import FOOTER_TYPE
from fragmentlab.reports.show.tables import Kind


class ResultDoesNotHold(Exception):
    """A notebook's own result failed; its message is written by this kit and never quotes input."""


class Callout:
    """One sentence that matters most, with sentences of detail under it."""

    def __init__(self, kind: Kind, headline: str, details: Iterable[str] = ()) -> None:
        self.kind, self.headline, self.details = kind, headline, list(details)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        paragraphs = "".join(f"<p>{for_html(line)}</p>" for line in self.details)
        return {
            "text/html": f'<div class="fl-callout fl-{self.kind}">'
            f'<p class="fl-headline">{for_html(self.headline)}</p>{paragraphs}</div>',
            "text/plain": "\n".join(map(for_terminal, [self.headline, *self.details])),
        }


class Lists:
    """Titled lists of sentences. A sentence may be a ``(text, address)`` pair, which becomes a link."""

    def __init__(self, lists: Iterable[tuple[str, Sequence[str | tuple[str, str]]]]) -> None:
        self.lists = [(title, list(items)) for title, items in lists if items]

    def to_html(self) -> str:
        return "".join(
            f'<p class="fl-listtitle">{for_html(title)}</p><ul>{"".join(map(_item, items))}</ul>'
            for title, items in self.lists
        )

    def to_text(self) -> str:
        lines = []
        for title, items in self.lists:
            texts = [item if isinstance(item, str) else item[1] for item in items]
            lines += [title, *[f"  - {for_terminal(text)}" for text in texts]]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {"text/html": self.to_html(), "text/plain": self.to_text()}


class Verbatim:
    """Text as it is, to be copied: the content of a file that may be passed on."""

    def __init__(self, label: str, text: str) -> None:
        self.label, self.text = label, text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        label, text = for_html(self.label), for_html(self.text)
        return {
            "text/html": f'<pre tabindex="0" aria-label="{label}">{text}</pre>',
            "text/plain": "\n".join(map(for_terminal, self.text.split("\n"))),
        }


class Parts:
    """Several things under each other, as the value of one cell."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        bundles = [part._repr_mimebundle_() for part in self.parts]
        return {kind: "\n".join(str(each[kind]) for each in bundles) for kind in ("text/html", "text/plain")}


class Conclusion(Lists):
    """The closing cell of every notebook; its output is the proof that the notebook ran to its end."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {**super()._repr_mimebundle_(), FOOTER_TYPE: {"complete": True}}


def conclude(*, shows: Sequence[str], not_shown: Sequence[str]) -> Conclusion:
    """Close a notebook: what its data shows and what it does not. Must be the value of the last code cell."""
    return Conclusion([("This shows", shows), ("This does not show", not_shown)])


def counts_in_words(counts: pd.Series) -> str:
    """Names with their counts, those that are not zero."""
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"


def _item(item: str | tuple[str, str]) -> str:
    if isinstance(item, str):
        return f"<li>{for_html(item)}</li>"
    text, address = item
    if not address.startswith("https://"):
        return f"<li>{for_html(text)}</li>"
    return f'<li><a href="{for_html(address)}" rel="noreferrer">{for_html(text)}</a></li>'
