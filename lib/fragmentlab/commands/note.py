"""``fragmentlab note``: the version verification note, from runs alone; prints its HTML's path."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.commands.runs import add_runs
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import reason, write_whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument("--revision", metavar="R", required=True, help="the revision that the note is about")
    add_runs(parser)
    parser.add_argument(
        "--out", metavar="DIR", default="reports", help="folder of the note (default: reports)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the note as Markdown and HTML."""
    from fragmentlab.disclosure import check_label, slug
    from fragmentlab.qualification.note import make_note, note_html, note_markdown
    from fragmentlab.qualification.runs.run_files import known_runs

    revision = check_label(args.revision, "the revision label")
    note = make_note(revision, known_runs(args.runs))
    folder = Path(args.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {reason(error)}") from None
    markdown, html = (folder / f"note-{slug(revision)}.{suffix}" for suffix in ("md", "html"))
    write_whole(markdown, note_markdown(note))
    write_whole(html, note_html(note))
    print(f"note: {for_terminal(str(markdown))}", file=sys.stderr)
    print(html)
    return 0
