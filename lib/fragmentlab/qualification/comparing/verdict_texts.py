"""A verdict for people: lines for a terminal, Markdown for a CI summary, JUnit XML for a test report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fragmentlab.disclosure import for_markdown, for_terminal, for_xml
from fragmentlab.qualification.comparing.comparison import ABSENT, Comparison, acceptance_interval
from fragmentlab.qualification.comparing.expectations import Declaration
from fragmentlab.qualification.comparing.verdict import Verdict, streams
from fragmentlab.qualification.runs.run_files import Run

LISTED = 20
"""Flips that are listed for people; the JUnit file has all of them."""
KIT_WAS_TESTED = "the kit's assembler was tested, not yours"


def subject_line(run: Run) -> str:
    """What was tested in a run, and the warning where that is the kit itself."""
    kind = run.subject["kind"]
    suffix = f"; {KIT_WAS_TESTED}" if kind in ("assembler", "counterfactual") else ""
    return f"{run.title}: {run.subject['name']}{suffix}"


def place_of(move: Any) -> str:
    """Where a row of moves can be followed down to: stream, and fragment or event."""
    ordinal = next((f" {name} {n}" for name in ("fragment", "event") if (n := getattr(move, name))), "")
    return f"{move.batch} {move.stream}{ordinal}"


def move_of(move: Any) -> str:
    """From where to where, and what a vector expects."""
    before = "both runs" if move.standing else move.base
    expects = f" (expected {move.expected})" if move.expected and move.expected != move.target else ""
    return f"{before} -> {move.target}{expects}"


def _evidence(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What the verdict was made from: both runs, and the file of declarations."""
    for role, run in (("base", verdict.comparison.base), ("target", verdict.comparison.target)):
        yield role, f"{subject_line(run)} [{run.id}]"
    if verdict.declared.sha256:
        yield "declared", f"flips as in the file with SHA-256 {verdict.declared.sha256}"


def verdict_text(verdict: Verdict) -> str:
    """Lines for a terminal; at most LISTED of each kind."""
    flips, absent = _flips_and_absent(verdict)
    lists = (
        [f"{move.kind}: {place_of(move)}: {move_of(move)}" for move in flips],
        absent,
        [f"no longer occurs: {declaration.text}" for declaration in verdict.stale],
    )
    lines = [f"verdict: {verdict.kind}", *(f"  {role:<7} {text}" for role, text in _evidence(verdict))]
    lines += [f"  {summary(verdict.comparison)}", *(f"  - {reason}" for reason in verdict.reasons())]
    for items in lists:
        lines += [f"  {item}" for item in items[:LISTED]]
        if len(items) > LISTED:
            lines.append(f"  ... and {len(items) - LISTED} more; --junit writes all")
    return "\n".join(map(for_terminal, lines))


def summary(comparison: Comparison) -> str:
    """Acceptance of the compared streams in one sentence, with the paired test."""
    whole = comparison.tallies("all").iloc[0]
    return (
        f"{streams(whole.streams)} compared: {whole.base_accepted} accepted in the base, "
        f"{whole.target_accepted} in the target; {whole.lost} lost, {whole.gained} gained "
        f"(exact paired test p = {whole.p:.2g})"
    )


def verdict_markdown(verdict: Verdict) -> str:
    """A CI summary; every text is escaped."""
    comparison = verdict.comparison
    flips, absent = _flips_and_absent(verdict)
    moved = Counter((m.base, m.target) for m in comparison.compared.itertuples() if m.base != m.target)
    lines = [
        f"## Qualification: {verdict.kind}",
        *(f"- {role}: {for_markdown(text)}" for role, text in _evidence(verdict)),
        f"- {for_markdown(summary(comparison))}",
        *(f"- {for_markdown(reason)}" for reason in verdict.reasons()),
        *_table("Flips", ("kind", "batch", "stream", "evidence", "move"), map(_flip_cells, flips)),
        *_table("Moves", ("from", "to", "streams"), [(*move, n) for move, n in moved.most_common()]),
    ]
    titles = ("streams", "base", "target", "lost", "gained", "p")
    for by in ("evidence", "provider", "category"):
        tallies = comparison.tallies(by).query("lost > 0 or gained > 0").itertuples()
        lines += _table(f"Acceptance by {by}, where it moved", (by, *titles), map(_tally_cells, tallies))
    lines += _list("Removed or changed", absent)
    lines += _list("Declared but no longer occurring", [d.text for d in verdict.stale])
    lines += _list("Added", [" ".join(key) for key in comparison.added])
    return "\n".join(lines) + "\n"


def verdict_junit(verdict: Verdict) -> str:
    """JUnit XML: one suite per batch, one test case per flip, one for all streams that did not move."""
    compared = verdict.comparison.compared
    unmoved = Counter(compared.batch)
    cases: dict[str, list[tuple[str, str, Declaration | None]]] = {batch: [] for batch in unmoved}
    for move in verdict.moves.itertuples():
        is_absent = move.kind in ABSENT
        unmoved[move.batch] -= not is_absent and move.base != "added"
        failure = f"{move.kind}: {'not judged' if is_absent else move_of(move)}"
        cases.setdefault(move.batch, []).append((place_of(move), failure, move.declaration))
    for stale in verdict.stale:
        failure = "stale: declared, but no longer occurs"
        cases.setdefault("expectations", []).append((stale.text, failure, None))
    root = ET.Element("testsuites", name="fragmentlab compare")
    for batch, moved in cases.items():
        suite = ET.SubElement(root, "testsuite", name=for_xml(batch))
        properties = ET.SubElement(suite, "properties")
        for role, text in (("verdict", verdict.kind), *_evidence(verdict)):
            ET.SubElement(properties, "property", name=role, value=for_xml(text))
        if batch in set(compared.batch):
            _case(suite, f"{streams(unmoved[batch])} did not move")
        for name, failure, declaration in moved:
            _case(suite, name, failure, declaration)
        for attribute, path in (("tests", ""), ("failures", "/failure"), ("skipped", "/skipped")):
            suite.set(attribute, str(len(suite.findall(f"testcase{path}"))))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, name: str, failure: str = "", declaration: Declaration | None = None) -> None:
    case = ET.SubElement(suite, "testcase", classname=suite.get("name", ""), name=for_xml(name))
    if declaration is not None:
        text = f"declared by {declaration.reviewer}: {declaration.reason}"
        ET.SubElement(case, "skipped", message=for_xml(text))
    elif failure:
        ET.SubElement(case, "failure", type=failure.partition(":")[0], message=for_xml(failure))


def _flips_and_absent(verdict: Verdict) -> tuple[list[Any], list[str]]:
    """The undeclared flips, and a line for each stream that cannot be judged."""
    moves = list(verdict.undeclared.itertuples())
    absent = [f"{move.kind}: {place_of(move)}" for move in moves if move.kind in ABSENT]
    return [move for move in moves if move.kind not in ABSENT], absent


def _flip_cells(flip: Any) -> tuple[str, ...]:
    place = place_of(flip).removeprefix(flip.batch).strip()
    return flip.kind, flip.batch, place, flip.evidence, move_of(flip)


def _tally_cells(tally: Any) -> tuple[object, ...]:
    shares = (_accepted(n, tally.streams) for n in (tally.base_accepted, tally.target_accepted))
    return tally.group, tally.streams, *shares, tally.lost, tally.gained, f"{tally.p:.2g}"


def _table(title: str, columns: Sequence[str], cells: Iterable[Sequence[object]]) -> Iterator[str]:
    if rows := list(cells):
        yield f"\n### {title}\n"
        yield "| " + " | ".join(columns) + " |"
        yield "|" + " --- |" * len(columns)
        yield from (
            "| " + " | ".join(for_markdown(str(cell)) for cell in row) + " |" for row in rows[:LISTED]
        )
        if len(rows) > LISTED:
            yield f"\n{len(rows) - LISTED} more are not listed here; the JUnit file has every flip."


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"\n### {title}\n"
        yield from (f"- {for_markdown(item)}" for item in items[:LISTED])
        if len(items) > LISTED:
            yield f"- and {len(items) - LISTED} more"


def _accepted(accepted: int, total: int) -> str:
    low, high = acceptance_interval(accepted, total)
    return f"{accepted} of {total} ({low:.0%} to {high:.0%})"
