"""Names that may be shown: reviewed public ones as they are, every other one as an alias.

Source: docs/design.md, section 5.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files

KINDS = ("provider", "server", "model")
_PUBLIC: dict[str, frozenset[str]] = {
    kind: frozenset(names)
    for kind, names in json.loads(files(__package__).joinpath("public-names.json").read_bytes())[
        "names"
    ].items()
}


def is_public(kind: str, name: str) -> bool:
    """Whether the reviewed file lists this provider, server or model."""
    return name in _PUBLIC[kind]


class NameAliases:
    """Shown names of one table or batch: ``provider-1``, ``model-3`` for what is not public, in the order
    first met."""

    def __init__(self) -> None:
        self._aliases: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._counts = dict.fromkeys(KINDS, 0)

    def show(self, kind: str, name: str | None) -> str | None:
        """Return the public name, its alias, or None where nothing is known. ``kind`` is one of KINDS.

        What is an alias already stays as it is, unless another name has it here: two batches can be read
        together.
        """
        if name is None or is_public(kind, name):
            return name
        if (kind, name) not in self._aliases:
            is_alias = name not in self._taken and re.fullmatch(rf"{kind}-[1-9][0-9]{{0,5}}", name)
            self._aliases[kind, name] = name if is_alias else self._fresh(kind)
            self._taken.add(self._aliases[kind, name])
        return self._aliases[kind, name]

    def _fresh(self, kind: str) -> str:
        while True:
            self._counts[kind] += 1
            if (alias := f"{kind}-{self._counts[kind]}") not in self._taken:
                return alias
