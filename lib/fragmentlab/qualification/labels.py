"""Labels that people choose (revisions, batches, vectors): plain enough to stand in a file name and a
report."""

from __future__ import annotations

import re

from fragmentlab.errors import InputError

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,119}", re.ASCII)
RULE = "1 to 120 letters, digits and . _ + / -, the first a letter or digit"


def is_label(text: str) -> bool:
    """Whether the text may be kept and shown as it is."""
    return _LABEL.fullmatch(text) is not None


def checked_label(text: str, what: str) -> str:
    """Return the label; raise InputError, which does not quote it, where it is none."""
    if not is_label(text):
        raise InputError(f"{what} must be {RULE}")
    return text


def slug(label: str) -> str:
    """The label as the beginning of a folder name."""
    return label.replace("/", "-")[:48].rstrip(".-")
