"""``fragmentlab note --revision R``: the version verification note, from the runs alone; prints its HTML's
path."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of docs/design.md, section 8."""
    parser.add_argument("--revision", metavar="R", required=True, help="the revision that the note is about")
    parser.add_argument(
        "--runs",
        metavar="DIR",
        action="append",
        help="folder of runs; may be repeated (default: runs, data/runs)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default="reports", help="folder of the note (default: reports)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the note as Markdown and HTML."""
    from fragmentlab.disclosure import check_label, slug
    from fragmentlab.qualification.note import to_html, to_markdown
    from fragmentlab.qualification.note_facts import make_note
    from fragmentlab.qualification.runs.ledger import LEDGER
    from fragmentlab.qualification.runs.run_files import list_runs, runs_folders

    revision = check_label(args.revision, "the revision label")
    folders = [folder for folder in runs_folders(args.runs) if args.runs or (folder / LEDGER).exists()]
    note = make_note(revision, [recorded for folder in folders for recorded in list_runs(folder)])
    base = Path(args.out) / f"note-{slug(revision)}"
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        base.with_name(f"{base.name}.md").write_text(to_markdown(note), encoding="utf-8")
        base.with_name(f"{base.name}.html").write_text(to_html(note), encoding="utf-8")
    except OSError:
        raise InputError(
            f"cannot write to {for_terminal(args.out)}; choose another folder with --out"
        ) from None
    print(f"note: {for_terminal(f'{base}.md')}", file=sys.stderr)
    print(f"{base}.html")
    return 0
