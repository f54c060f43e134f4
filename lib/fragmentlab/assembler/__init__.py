"""The strict assembler: bytes to events to chunks to calls to a proposal, or a rejection with a category.

It does no I/O and works alone: it needs the standard library and jiter (and jsonschema with google-re2 where
tools have schemas), and its folder may be copied into another package.

>>> from fragmentlab.assembler import Assembler, explain
>>> assembler = Assembler(tools=["lookup_city"])
>>> for read in response.iter_bytes():
...     assembler.feed(read)
>>> result = assembler.finish(end="clean")
>>> for fault in result.faults:
...     print(explain(fault, result).headline)
"""

from .assembler import Assembler, assemble
from .categories import CATEGORIES
from .explanations import explain
from .limits import Limits
from .proposal import Tools
from .result import Call, Fault, Result
from .rules import RuleSet

__all__ = [
    "CATEGORIES",
    "Assembler",
    "Call",
    "Fault",
    "Limits",
    "Result",
    "RuleSet",
    "Tools",
    "assemble",
    "explain",
]
