"""The version verification note as Markdown and as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from fragmentlab.disclosure import for_html, for_markdown
from fragmentlab.qualification.note_facts import Note, Sentence

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.7rem;line-height:1.2}h2{font-size:1.2rem;margin-top:2rem}li{margin:.4rem 0}"
    "code{font-family:ui-monospace,monospace;font-size:.85em;overflow-wrap:anywhere}"
    "summary{cursor:pointer}"
)


def note_markdown(note: Note) -> str:
    """The note as Markdown; every text is escaped."""
    return "\n".join(_markdown_lines(note)) + "\n"


def note_html(note: Note) -> str:
    """The note as one page: no script, no network; the rows behind a sentence fold out."""
    title = f"Version verification note: {for_html(note.revision)}"
    body = "".join(
        f"<h2>{title}</h2><ul>{''.join(map(_html_item, sentences))}</ul>"
        for title, sentences in note.sections.items()
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>\n"
    )


def _markdown_lines(note: Note) -> Iterator[str]:
    yield f"# Version verification note: {for_markdown(note.revision)}"
    for title, sentences in note.sections.items():
        yield f"\n## {title}\n"
        for sentence in sentences:
            yield f"- {for_markdown(sentence.text)}"
            yield from (f"  - {for_markdown(row)}" for row in sentence.cited)
            if more := _more(sentence):
                yield f"  - {more}"


def _html_item(sentence: Sentence) -> str:
    text = for_html(sentence.text)
    if not sentence.cited:
        return f"<li>{text}</li>"
    rows = "".join(f"<li><code>{for_html(row)}</code></li>" for row in sentence.cited)
    more = f"<li>{_more(sentence)}</li>" if _more(sentence) else ""
    return f"<li>{text}<details><summary>Rows behind it</summary><ul>{rows}{more}</ul></details></li>"


def _more(sentence: Sentence) -> str:
    left = sentence.rows - len(sentence.cited)
    return f"and {left} more in that run" if left > 0 else ""
