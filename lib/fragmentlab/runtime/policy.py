"""What the host allows, and when it asks again: data, apart from everything that the wire says."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Annotated

from msgspec import Meta

from fragmentlab.assembler import CATEGORIES
from fragmentlab.formats import StrictStruct, decode
from fragmentlab.runtime.problems import PROBLEMS
from fragmentlab.runtime.tools import ARGUMENT_OF, Request
from fragmentlab.runtime.workspace import is_plain_name

NEVER_RETRIED = frozenset({"authorization.denied"})
"""A refusal of the host stays one: asking the model again is no way around it."""
RETRIABLE = (CATEGORIES.keys() | PROBLEMS.keys()) - NEVER_RETRIED

Patterns = Annotated[tuple[str, ...], Meta(description="Name patterns of what the tool may use.")]


class Allow(StrictStruct, frozen=True):
    """What each tool may do. A tool without an entry is denied."""

    list_sources: bool = False
    read_source: Patterns = ()
    save_report: Patterns = ()


class Retry(StrictStruct, frozen=True):
    """How often one request is sent again, and after which categories or gateway problems."""

    times: Annotated[int, Meta(ge=0, le=10)]
    categories: Annotated[
        frozenset[str],
        Meta(description="Categories and gateway problems.", extra_json_schema={"uniqueItems": True}),
    ]

    def __post_init__(self) -> None:
        if self.categories - RETRIABLE:
            raise ValueError("only known categories and gateway problems are retried, never a denial")


class Policy(StrictStruct, frozen=True, tag_field="schema", tag="fragmentlab-policy-v1"):
    """What the host allows a model's calls to do, and when it asks the model again."""

    allow: Allow
    retry: Retry

    def allows(self, request: Request) -> bool:
        """Whether the host permits this call, whatever its identity."""
        argument = ARGUMENT_OF[request.tool]
        if argument is None:
            return bool(getattr(self.allow, request.tool))
        return self.allows_name(request.tool, request.arguments[argument])

    def allows_name(self, tool: str, name: str) -> bool:
        """Whether a tool may use the source or target of this name."""
        patterns = getattr(self.allow, tool)
        return is_plain_name(name) and any(fnmatchcase(name, pattern) for pattern in patterns)

    def first_denied(self, requests: Sequence[Request]) -> int | None:
        """The ordinal, from 1, of the first call that is not permitted: one refuses the whole proposal."""
        return next((number for number, request in enumerate(requests, 1) if not self.allows(request)), None)

    def retries(self, category: str, sent: int) -> bool:
        """Whether a request that was sent ``sent`` times and refused so is sent again."""
        return sent <= self.retry.times and category in self.retry.categories


DEFAULT_POLICY = decode(files(__package__).joinpath("policy.json").read_bytes(), Policy, "policy.json")
"""The host's policy of the task, from ``policy.json``."""
