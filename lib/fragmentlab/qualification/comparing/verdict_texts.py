"""A verdict for people: lines for a terminal, Markdown for a CI summary, JUnit XML for a test report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence

from fragmentlab.disclosure import for_markdown, for_terminal, for_xml
from fragmentlab.qualification.comparing.comparison import Comparison, Flip, Tally, acceptance_interval
from fragmentlab.qualification.comparing.expectations import Declaration
from fragmentlab.qualification.comparing.verdict import Verdict, streams
from fragmentlab.qualification.runs.run_files import Run

LISTED = 20
"""Flips that are listed for people; the JUnit file has all of them."""
KIT_WAS_TESTED = "the kit's assembler was tested, not yours"
_GROUPINGS = ("evidence", "provider", "category")


def subject_line(run: Run) -> str:
    """What was tested in a run, and the warning where that is the kit itself."""
    kind = run.subject["kind"]
    suffix = f"; {KIT_WAS_TESTED}" if kind in ("assembler", "counterfactual") else ""
    return f"{run.title}: {run.subject['name']}{suffix}"


def place_of(flip: Flip) -> str:
    """Where a flip can be followed down to: stream, and fragment or event."""
    ordinal = next(
        (f" {name} {n}" for name, n in (("fragment", flip.fragment), ("event", flip.event)) if n), ""
    )
    return f"{flip.batch} {flip.stream}{ordinal}"


def move_of(flip: Flip) -> str:
    """From where to where, and what a vector expects."""
    before = "both runs" if flip.standing else flip.base or "added"
    expects = f" (expected {flip.expected})" if flip.expected and flip.expected != flip.target else ""
    return f"{before} -> {flip.target}{expects}"


def _evidence(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What the verdict was made from: both runs, and the file of declarations."""
    for role, run in (("base", verdict.comparison.base), ("target", verdict.comparison.target)):
        yield role, f"{subject_line(run)} [{run.id}]"
    if verdict.declared.sha256:
        yield "declared", f"flips as in the file with SHA-256 {verdict.declared.sha256}"


def verdict_text(verdict: Verdict) -> str:
    """Lines for a terminal; at most LISTED flips."""
    comparison = verdict.comparison
    lines = [
        f"verdict: {verdict.kind}",
        *(f"  {role:<7} {text}" for role, text in _evidence(verdict)),
        f"  {summary(comparison)}",
        *(f"  - {reason}" for reason in verdict.reasons()),
        *_listed_lines(verdict.undeclared),
        *(f"  {a.what}: {a.key[0]} {a.key[1]}" for a in verdict.undeclared_absent[:LISTED]),
        *(f"  no longer occurs: {declaration.text}" for declaration in verdict.stale[:LISTED]),
    ]
    return "\n".join(map(for_terminal, lines))


def summary(comparison: Comparison) -> str:
    """Acceptance of the compared streams in one sentence, with the paired test."""
    whole = comparison.tallies("all")[0]
    return (
        f"{streams(whole.streams)} compared: {whole.base_accepted} accepted in the base, "
        f"{whole.target_accepted} in the target; {whole.lost} lost, {whole.gained} gained "
        f"(exact paired test p = {whole.p:.2g})"
    )


def verdict_markdown(verdict: Verdict) -> str:
    """A CI summary; every text is escaped."""
    comparison = verdict.comparison
    parts = [
        f"## Qualification: {verdict.kind}",
        *(f"- {role}: {for_markdown(text)}" for role, text in _evidence(verdict)),
        f"- {for_markdown(summary(comparison))}",
        *(f"- {for_markdown(reason)}" for reason in verdict.reasons()),
        *_markdown_flips(verdict.undeclared),
        *_markdown_moves(comparison),
        *(table for by in _GROUPINGS for table in _markdown_tallies(by, comparison.tallies(by))),
        *_markdown_list(
            "Removed or changed", [f"{a.what}: {' '.join(a.key)}" for a in verdict.undeclared_absent]
        ),
        *_markdown_list("Declared but no longer occurring", [d.text for d in verdict.stale]),
        *_markdown_list("Added", [" ".join(key) for key in comparison.added]),
    ]
    return "\n".join(parts) + "\n"


def verdict_junit(verdict: Verdict) -> str:
    """JUnit XML: one suite per batch, one test case per flip, one for all streams that did not move."""
    comparison = verdict.comparison
    root = ET.Element("testsuites", name="fragmentlab compare")
    for batch in _batches(verdict):
        suite = _suite(root, batch, verdict)
        unmoved = sum(key[0] == batch for key in comparison.rows) - sum(
            j.flip.batch == batch and j.flip.base is not None for j in verdict.judged
        )
        _case(suite, batch, f"{streams(unmoved)} did not move")
        for judged in verdict.judged:
            if judged.flip.batch == batch:
                declared = _declared(judged.declaration)
                _case(suite, batch, place_of(judged.flip), judged.flip.kind, move_of(judged.flip), declared)
        for absent in verdict.absent:
            if absent.key[0] == batch:
                declared = _declared(absent.declaration)
                _case(suite, batch, " ".join(absent.key), absent.what, "not judged", declared)
        _count(suite)
    if verdict.stale:
        suite = _suite(root, "expectations", verdict)
        for declaration in verdict.stale:
            _case(suite, "expectations", declaration.text, "stale", "declared, but no longer occurs")
        _count(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ET.Element, name: str, verdict: Verdict) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", name=for_xml(name))
    properties = ET.SubElement(suite, "properties")
    for role, text in (("verdict", verdict.kind), *_evidence(verdict)):
        ET.SubElement(properties, "property", name=role, value=for_xml(text))
    return suite


def _declared(declaration: Declaration | None) -> str | None:
    return f"declared by {declaration.reviewer}: {declaration.reason}" if declaration else None


def _case(
    suite: ET.Element, group: str, name: str, kind: str = "", text: str = "", declared: str | None = None
) -> None:
    case = ET.SubElement(suite, "testcase", classname=for_xml(group), name=for_xml(name))
    if declared is not None:
        ET.SubElement(case, "skipped", message=for_xml(declared))
    elif kind:
        ET.SubElement(case, "failure", type=for_xml(kind), message=for_xml(f"{kind}: {text}"))


def _count(suite: ET.Element) -> None:
    for attribute, path in (
        ("tests", "testcase"),
        ("failures", "testcase/failure"),
        ("skipped", "testcase/skipped"),
    ):
        suite.set(attribute, str(len(suite.findall(path))))


def _batches(verdict: Verdict) -> list[str]:
    keys = [*verdict.comparison.rows, *(absent.key for absent in verdict.absent)]
    keys += [(judged.flip.batch, "") for judged in verdict.judged]
    return list(dict.fromkeys(batch for batch, _ in keys))


def _listed_lines(flips: Sequence[Flip]) -> Iterator[str]:
    for flip in flips[:LISTED]:
        yield f"  {flip.kind}: {place_of(flip)}: {move_of(flip)}"
    if len(flips) > LISTED:
        yield f"  ... and {len(flips) - LISTED} more; --junit writes all"


def _markdown_flips(flips: Sequence[Flip]) -> Iterator[str]:
    if not flips:
        return
    rows = [
        (f.kind, f.batch, place_of(f).removeprefix(f.batch).strip(), f.evidence, move_of(f)) for f in flips
    ]
    yield from _markdown_table("Flips", ("kind", "batch", "stream", "evidence", "move"), rows[:LISTED])
    if len(flips) > LISTED:
        yield f"\n{len(flips) - LISTED} more are not listed here; the JUnit file has all."


def _markdown_moves(comparison: Comparison) -> Iterator[str]:
    rows = [(before, after, str(n)) for (before, after), n in Counter(comparison.moves).most_common()]
    if rows:
        yield from _markdown_table("Moves", ("from", "to", "streams"), rows)


def _markdown_tallies(by: str, tallies: Sequence[Tally]) -> Iterator[str]:
    moved = [t for t in tallies if t.lost or t.gained]
    rows = [
        (
            t.group,
            str(t.streams),
            _accepted(t.base_accepted, t.streams),
            _accepted(t.target_accepted, t.streams),
            str(t.lost),
            str(t.gained),
            f"{t.p:.2g}",
        )
        for t in moved
    ]
    if rows:
        titles = (by, "streams", "base", "target", "lost", "gained", "p")
        yield from _markdown_table(f"Acceptance by {by}, where it moved", titles, rows)


def _markdown_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"\n### {title}\n"
    yield "| " + " | ".join(columns) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        yield "| " + " | ".join(map(for_markdown, row)) + " |"


def _markdown_list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"\n### {title}\n"
        yield from (f"- {for_markdown(item)}" for item in items[:LISTED])
        if len(items) > LISTED:
            yield f"- and {len(items) - LISTED} more"


def _accepted(accepted: int, total: int) -> str:
    low, high = acceptance_interval(accepted, total)
    return f"{accepted} of {total} ({low:.0%} to {high:.0%})"
