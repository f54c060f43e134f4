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
    """Lines for a terminal; at most LISTED of each kind."""
    lists = (
        [f"{flip.kind}: {place_of(flip)}: {move_of(flip)}" for flip in verdict.undeclared],
        [f"{absent.what}: {' '.join(absent.key)}" for absent in verdict.undeclared_absent],
        [f"no longer occurs: {declaration.text}" for declaration in verdict.stale],
    )
    lines = [
        f"verdict: {verdict.kind}",
        *(f"  {role:<7} {text}" for role, text in _evidence(verdict)),
        f"  {summary(verdict.comparison)}",
        *(f"  - {reason}" for reason in verdict.reasons()),
    ]
    for items in lists:
        lines += [f"  {item}" for item in items[:LISTED]]
        if len(items) > LISTED:
            lines.append(f"  ... and {len(items) - LISTED} more; --junit writes all")
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
    moves = [(before, after, str(n)) for (before, after), n in comparison.moves.most_common()]
    titles = ("streams", "base", "target", "lost", "gained", "p")
    lines = [
        f"## Qualification: {verdict.kind}",
        *(f"- {role}: {for_markdown(text)}" for role, text in _evidence(verdict)),
        f"- {for_markdown(summary(comparison))}",
        *(f"- {for_markdown(reason)}" for reason in verdict.reasons()),
        *_table("Flips", ("kind", "batch", "stream", "evidence", "move"), _flip_rows(verdict.undeclared)),
        *_table("Moves", ("from", "to", "streams"), moves),
    ]
    for by in ("evidence", "provider", "category"):
        rows = _tally_rows(comparison.tallies(by))
        lines += _table(f"Acceptance by {by}, where it moved", (by, *titles), rows)
    absent = [f"{a.what}: {' '.join(a.key)}" for a in verdict.undeclared_absent]
    lines += _list("Removed or changed", absent)
    lines += _list("Declared but no longer occurring", [d.text for d in verdict.stale])
    lines += _list("Added", [" ".join(key) for key in comparison.added])
    return "\n".join(lines) + "\n"


def verdict_junit(verdict: Verdict) -> str:
    """JUnit XML: one suite per batch, one test case per flip, one for all streams that did not move."""
    unmoved = Counter(batch for batch, _ in verdict.comparison.rows)
    cases: dict[str, list[tuple[str, str, Declaration | None]]] = {batch: [] for batch in unmoved}
    for judged in verdict.judged:
        flip = judged.flip
        unmoved[flip.batch] -= flip.base is not None
        failure = f"{flip.kind}: {move_of(flip)}"
        cases.setdefault(flip.batch, []).append((place_of(flip), failure, judged.declaration))
    for absent in verdict.absent:
        failure = f"{absent.what}: not judged"
        cases.setdefault(absent.key[0], []).append((" ".join(absent.key), failure, absent.declaration))
    for stale in verdict.stale:
        failure = "stale: declared, but no longer occurs"
        cases.setdefault("expectations", []).append((stale.text, failure, None))
    root = ET.Element("testsuites", name="fragmentlab compare")
    for batch, moved in cases.items():
        suite = ET.SubElement(root, "testsuite", name=for_xml(batch))
        properties = ET.SubElement(suite, "properties")
        for role, text in (("verdict", verdict.kind), *_evidence(verdict)):
            ET.SubElement(properties, "property", name=role, value=for_xml(text))
        if batch in unmoved:
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


def _flip_rows(flips: Sequence[Flip]) -> list[tuple[str, ...]]:
    return [
        (f.kind, f.batch, place_of(f).removeprefix(f.batch).strip(), f.evidence, move_of(f)) for f in flips
    ]


def _tally_rows(tallies: Sequence[Tally]) -> list[tuple[str, ...]]:
    return [
        (
            t.group,
            str(t.streams),
            _accepted(t.base_accepted, t.streams),
            _accepted(t.target_accepted, t.streams),
            str(t.lost),
            str(t.gained),
            f"{t.p:.2g}",
        )
        for t in tallies
        if t.lost or t.gained
    ]


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield f"\n### {title}\n"
        yield "| " + " | ".join(columns) + " |"
        yield "|" + " --- |" * len(columns)
        yield from ("| " + " | ".join(map(for_markdown, row)) + " |" for row in rows[:LISTED])
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
