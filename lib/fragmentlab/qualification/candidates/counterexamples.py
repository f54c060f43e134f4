"""The shortest counterexamples as vectors; ``fragmentlab maintain counterexamples --out FILE`` writes them.

Each is held to what the default rule set makes of it, which refuses what the unsafe one accepts.
Where a counterexample needs a response before it, that one is a vector of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from fragmentlab.assembler import Result
from fragmentlab.assembler.rules import DEFAULT_RULES, SHIPPED
from fragmentlab.corpus.rules import find_rules
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.vectors import SCHEMA, expectation_of
from fragmentlab.files import write_whole
from fragmentlab.qualification.candidates.counterfactuals import COUNTERFACTUALS
from fragmentlab.qualification.candidates.modelcheck import (
    CHECKED_INVARIANTS,
    Check,
    Finding,
    check_model,
    check_shipped,
    checkable_table,
)
from fragmentlab.qualification.candidates.sequences import TOOL, Steps, chunks_of, response_of

_NOTES = {
    "counterexample": {
        "description": "The shortest response with which an unsafe rule set breaks an invariant. A client "
        "that accepts it executes a call under an identity that its provider never gave it.",
        "links": [
            "https://github.com/OpenRouterTeam/ai-sdk-provider/issues/471",
            "https://github.com/ollama/ollama/issues/15457",
        ],
    },
    "earlier-response": {
        "description": "The response before a counterexample: whole and harmless in itself. A client "
        "that keeps its state for the next response passes an identity on.",
        "links": ["https://github.com/OpenRouterTeam/ai-sdk-provider/issues/471"],
    },
}


def counterexample_file(checks: Iterable[Check]) -> dict[str, Any]:
    """Return a vector file of every finding, each stream once; maybe no vectors."""
    vectors = list(_vectors(checks))
    flags = {flag for vector in vectors for flag in vector["flags"]}
    notes = {name: note for name, note in _NOTES.items() if name in flags}
    return {"schema": SCHEMA, "notes": notes, "tools": [TOOL], "vectors": vectors}


def file_text(vector_file: dict[str, Any]) -> str:
    """The file as it is committed: one vector a line."""
    lines = ",\n".join(f"  {json.dumps(vector)}" for vector in vector_file["vectors"])
    head = {name: value for name, value in vector_file.items() if name != "vectors"}
    return f'{json.dumps(head, indent=1)[:-2]},\n "vectors": [\n{lines}\n ]\n}}\n'


def _vectors(checks: Iterable[Check]) -> Iterator[dict[str, Any]]:
    """One vector for all findings with the same stream; a response before it comes first, and once."""
    found: dict[tuple[Steps, Steps], list[tuple[str, Finding]]] = {}
    for check in checks:
        for finding in check.findings:
            found.setdefault((finding.earlier, finding.steps), []).append((check.name, finding))
    before: set[Steps] = set()
    for (earlier, steps), breaking in found.items():
        name, finding = breaking[0]
        vector_id = f"counterexample/{name.lower()}-{finding.invariant.replace('_', '-')}"
        if earlier and earlier not in before:
            before.add(earlier)
            yield _vector(f"{vector_id}-before", f"Comes before {vector_id}.", "earlier-response", earlier)
        yield _vector(vector_id, " ".join(_told(*each) for each in breaking), "counterexample", steps)


def _told(name: str, finding: Finding) -> str:
    how = "accepts it" if finding.accepted else "takes a step that breaks it"
    after = ", after an earlier response" if finding.earlier else ""
    return f"Breaks: {CHECKED_INVARIANTS[finding.invariant]}; {name} {how}{after}."


def _vector(vector_id: str, comment: str, flag: str, steps: Steps) -> dict[str, Any]:
    results = {name: _result(steps, name) for name in SHIPPED}
    expect = expectation_of(results.pop(DEFAULT_RULES))
    under = {name: expectation_of(result) for name, result in results.items()}
    return {
        "id": vector_id,
        "comment": comment,
        "flags": [flag],
        "source": "kit",
        "events": chunks_of(steps),
        "expect": expect,
    } | (
        {"expect_under": differing} if (differing := {n: e for n, e in under.items() if e != expect}) else {}
    )


def _result(steps: Steps, rules: str) -> Result:
    return Stream("", response_of(steps), tools=(TOOL,), end="clean").assemble(rules)


def write_counterexamples(rules: str | None, out: str) -> bool:
    """Write the counterexamples of all counterfactuals, or of one rule set (a name or file), as vectors.

    Returns False, and writes nothing, where no invariant is broken. Raises InputError for unusable rules and
    for a file that cannot be written.
    """
    if rules is None:
        found = counterexample_file(map(check_shipped, COUNTERFACTUALS))
    else:
        # A table holds nothing between responses, so one response has its shortest counterexamples.
        found = counterexample_file([check_model(checkable_table(find_rules(rules)), responses=1)])
    if found["vectors"]:
        write_whole(out, file_text(found))
    return bool(found["vectors"])
