"""The strict assembler: bytes to events to chunks to calls to a proposal, or a rejection with a category.

Sans-I/O and usable alone: it needs the standard library and msgspec (and jsonschema where tools have
schemas).

    assembler = Assembler(tools=["lookup_city"])
    for read in response.iter_bytes():
        assembler.feed(read)
    result = assembler.finish(end="clean")
"""

from fragmentlab.assembler.assembler import Assembler, End, Framing, assemble
from fragmentlab.assembler.categories import CATEGORIES, COMPOUND, HOST_CATEGORY, Category
from fragmentlab.assembler.explanations import Explanation, explain, remarks
from fragmentlab.assembler.limits import LIMIT_ENTRIES, Limits
from fragmentlab.assembler.proposal import Tool, Tools
from fragmentlab.assembler.result import Call, Fault, FragmentRow, Result
from fragmentlab.assembler.rules import (
    CELLS,
    COLUMNS,
    DEFAULT_RULES,
    IDENTITIES,
    IMPOSSIBLE,
    INCOMING_KINDS,
    INVARIANTS,
    SHIPPED,
    RulesError,
    RuleSet,
    check_invariants,
    identity_of,
    load_rules,
    rules_from_json,
)

__all__ = [
    "CATEGORIES",
    "CELLS",
    "COLUMNS",
    "COMPOUND",
    "DEFAULT_RULES",
    "HOST_CATEGORY",
    "IDENTITIES",
    "IMPOSSIBLE",
    "INCOMING_KINDS",
    "INVARIANTS",
    "LIMIT_ENTRIES",
    "SHIPPED",
    "Assembler",
    "Call",
    "Category",
    "End",
    "Explanation",
    "Fault",
    "FragmentRow",
    "Framing",
    "Limits",
    "Result",
    "RuleSet",
    "RulesError",
    "Tool",
    "Tools",
    "assemble",
    "check_invariants",
    "explain",
    "identity_of",
    "load_rules",
    "remarks",
    "rules_from_json",
]
