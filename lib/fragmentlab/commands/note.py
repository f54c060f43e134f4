"""``fragmentlab note --revision R``: the version verification note, from the runs alone; prints its HTML's
path."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import reason, write_whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument("--revision", metavar="R", required=True, help="the revision that the note is about")
    parser.add_argument(
        "--runs",
        metavar="DIR",
        action="append",
        help="folder of runs; may be repeated (default: runs, then the kit's own)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="reports", help="folder of the note (default: reports)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the note as Markdown and HTML."""
    from fragmentlab.disclosure import check_label, slug
    from fragmentlab.qualification.note import note_html, note_markdown
    from fragmentlab.qualification.note_facts import make_note
    from fragmentlab.qualification.runs.ledger import LEDGER
    from fragmentlab.qualification.runs.run_files import list_runs, runs_folders

    revision = check_label(args.revision, "the revision label")
    folders = [folder for folder in runs_folders(args.runs) if args.runs or (folder / LEDGER).exists()]
    note = make_note(revision, [recorded for folder in folders for recorded in list_runs(folder)])
    folder = Path(args.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {reason(error)}") from None
    pages = {
        folder / f"note-{slug(revision)}.md": note_markdown(note),
        folder / f"note-{slug(revision)}.html": note_html(note),
    }
    for path, text in pages.items():
        write_whole(path, text)
    markdown, html = pages
    print(f"note: {for_terminal(str(markdown))}", file=sys.stderr)
    print(html)
    return 0
