"""Limits as data: ``limits.json`` holds each name, default and unit (docs/design.md, section 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files

LIMIT_ENTRIES: dict[str, dict[str, object]] = json.loads(
    files(__package__).joinpath("limits.json").read_bytes()
)["limits"]
_DEFAULTS: dict[str, int] = {name: entry["default"] for name, entry in LIMIT_ENTRIES.items()}  # type: ignore[misc]


@dataclass(frozen=True)
class Limits:
    """What one response may cost; each field's unit stands in ``limits.json``."""

    events: int = _DEFAULTS["events"]
    event_bytes: int = _DEFAULTS["event_bytes"]
    calls: int = _DEFAULTS["calls"]
    arguments_bytes: int = _DEFAULTS["arguments_bytes"]
    name_bytes: int = _DEFAULTS["name_bytes"]
    schema_work: int = _DEFAULTS["schema_work"]
    depth: int = _DEFAULTS["depth"]
    number_digits: int = _DEFAULTS["number_digits"]
    diagnosed_faults: int = _DEFAULTS["diagnosed_faults"]
    timeline_rows: int = _DEFAULTS["timeline_rows"]

    @classmethod
    def of(cls, overrides: Limits | Mapping[str, int] | None) -> Limits:
        """Make limits from overrides by name.

        Raises ValueError for an unknown name and for what is no whole number of at least 0.
        """
        if isinstance(overrides, Limits):
            return overrides
        overrides = dict(overrides or {})
        for name, value in overrides.items():
            if name not in _DEFAULTS:
                raise ValueError(f"unknown limit; the limits are {', '.join(f.name for f in fields(cls))}")
            if type(value) is not int or value < 0:
                raise ValueError(f"limit {name} must be a whole number of at least 0")
        return cls(**overrides)
