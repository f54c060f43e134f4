"""What the host allows, and when it asks again: data, apart from everything that the wire says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from fragmentlab.assembler import CATEGORIES
from fragmentlab.errors import InputError
from fragmentlab.runtime.problems import PROBLEMS
from fragmentlab.runtime.tools import ARGUMENT_OF, Request
from fragmentlab.runtime.workspace import is_plain_name

SCHEMA = "fragmentlab-policy-v1"
NEVER_RETRIED = frozenset({"authorization.denied"})
"""A refusal of the host stays one: asking the model again is no way around it."""


@dataclass(frozen=True)
class Policy:
    """``allow``: tool -> True, or the patterns of the sources or targets that it may name. A tool without
    an entry is denied. ``retry``: how often one request is sent again, and after which categories or
    gateway problems."""

    allow: Mapping[str, bool | Sequence[str]]
    retry_times: int
    retry_categories: frozenset[str]

    def allows(self, request: Request) -> bool:
        """Whether the host permits this call, whatever its identity."""
        granted = self.allow.get(request.tool, False)
        argument = ARGUMENT_OF[request.tool]
        if argument is None or isinstance(granted, bool):
            return granted is True and argument is None
        return self.allows_name(request.tool, request.arguments[argument])

    def allows_name(self, tool: str, name: str) -> bool:
        """Whether a tool may use the source or target of this name."""
        patterns = self.allow.get(tool, False)
        return (
            not isinstance(patterns, bool)
            and is_plain_name(name)
            and any(fnmatchcase(name, pattern) for pattern in patterns)
        )

    def first_denied(self, requests: Sequence[Request]) -> int | None:
        """The ordinal, from 1, of the first call that is not permitted; one is enough
        to refuse the whole proposal."""
        return next((number for number, request in enumerate(requests, 1) if not self.allows(request)), None)

    def retries(self, category: str, sent: int) -> bool:
        """Whether a request that was sent ``sent`` times and refused so is sent again."""
        return sent <= self.retry_times and category in self.retry_categories

    def allowing(self, allow: Mapping[str, bool | Sequence[str]]) -> Policy:
        """The same policy with another table of permissions."""
        return policy_from_json({"schema": SCHEMA, "allow": allow, "retry": self._retry()})

    def _retry(self) -> dict[str, Any]:
        return {"times": self.retry_times, "categories": sorted(self.retry_categories)}


def policy_from_json(data: Any) -> Policy:
    """Check a policy; InputError naming the field that cannot be used, never its value."""
    if (
        not isinstance(data, dict)
        or data.get("schema") != SCHEMA
        or data.keys() - {"schema", "allow", "retry"}
    ):
        raise InputError(f'a policy has "schema": "{SCHEMA}", allow and retry, nothing else')
    allow, retry = data.get("allow"), data.get("retry")
    if not isinstance(allow, dict) or allow.keys() - ARGUMENT_OF.keys():
        raise InputError(f"policy: allow names tools of {', '.join(ARGUMENT_OF)}")
    for tool, granted in allow.items():
        if ARGUMENT_OF[tool] is None:
            fits = isinstance(granted, bool)
        else:
            fits = isinstance(granted, list) and all(isinstance(pattern, str) for pattern in granted)
        if not fits:
            wanted = "true or false" if ARGUMENT_OF[tool] is None else "a list of patterns"
            raise InputError(f"policy: {tool} takes {wanted}")
    if not isinstance(retry, dict) or type(retry.get("times")) is not int or not 0 <= retry["times"] <= 10:
        raise InputError("policy: retry.times is a whole number from 0 to 10")
    categories = retry.get("categories")
    known = (CATEGORIES.keys() | PROBLEMS.keys()) - NEVER_RETRIED
    if not isinstance(categories, list) or not all(
        isinstance(name, str) and name in known for name in categories
    ):
        raise InputError(
            "policy: retry.categories may only name known categories and gateway problems, never a denial"
        )
    return Policy(dict(allow), retry["times"], frozenset(categories))


DEFAULT_POLICY = policy_from_json(json.loads(files(__package__).joinpath("policy.json").read_bytes()))
"""The host's policy of the task, from ``policy.json``."""
