"""Rule sets by name or file: the shipped ones, and candidates under ``data/rules`` or anywhere else."""

from __future__ import annotations

from dataclasses import replace

from fragmentlab.assembler import SHIPPED, RulesError, RuleSet, rules_from_json
from fragmentlab.disclosure import for_terminal
from fragmentlab.errors import InputError
from fragmentlab.files import find_path, reason

_MAX_BYTES = 1 << 16


def find_rules(name_or_file: str) -> RuleSet:
    """Return a shipped rule set by name, or the one in a file; raise InputError naming what is wrong with
    it.

    A file that bears a shipped rule set's name without being it is named ``...-altered``, so that nothing
    that it decides is read as the shipped one's.
    """
    if name_or_file in SHIPPED:
        return SHIPPED[name_or_file]
    shown = for_terminal(name_or_file)
    path = find_path(name_or_file, "rules")
    if path.suffix != ".json" and len(path.parts) == 1 and not path.exists():
        raise InputError(f"unknown rule set {shown}; use {', '.join(SHIPPED)} or a rules file")
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"rules file {shown} cannot be read: {reason(error)}") from None
    if len(text) > _MAX_BYTES:
        raise InputError(f"rules file {shown} is larger than {_MAX_BYTES >> 10} KiB, no rule table is")
    try:
        rules = rules_from_json(text)
    except RulesError as error:
        raise InputError(f"rules file {shown}: {error}") from None
    if rules.name in SHIPPED and rules.cells != SHIPPED[rules.name].cells:
        return replace(rules, name=f"{rules.name}-altered")
    return rules
