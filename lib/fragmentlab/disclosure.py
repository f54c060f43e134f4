"""What may be shown, and how: the one policy for everything that leaves the kit (docs/design.md, section 5).

- Untrusted text passes one function for each place where it can be shown: ``for_html``, ``for_figure``, ...
- Providers, servers and models are named only where ``public-names.json`` lists them; others get an alias.
- Names of batches, rule sets and vector files are shown where the kit ships them.
- A batch that was imported without scrubbing is refused wherever its streams could be shown.
- Labels that people choose are plain enough to stand in a file name and a report.
- What a private value is hashed to cannot be guessed: the hash is keyed.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fragmentlab.errors import InputError, escaped, visible
from fragmentlab.files import locked, read_bytes, reason, shipped_names, write_whole

# Text for one sink each. Every function is total (any ``str``, lone surrogates included) and makes visible
# what hides, reorders a line or moves a cursor: ``\x1b``, ``\u202e``, ``\U000e0041``.

_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|~$:=]")
# What DejaVu Sans, the font of the figures, has no glyph for, as far as is known: it would be an empty box.
_UNDRAWABLE = re.compile(
    "[^\x20-\u024f\u0391-\u03a1\u03a3-\u03ce\u0400-\u045f\u2010-\u2027\u2030-\u205e\u2190-\u22ff]"
)


def for_html(text: str) -> str:
    """Text for HTML content or a quoted attribute: markup escaped; line feeds and tabs stay."""
    return html.escape(visible(text, keep="\n\t"), quote=True)


def for_figure(text: str) -> str:
    """One line for any matplotlib text: never math text, no character that the figures' font lacks."""
    shown = _UNDRAWABLE.sub(lambda found: escaped(found[0]), visible(text))
    return shown.replace("$", r"\$")


def for_markdown(text: str) -> str:
    """One line for inline Markdown: no markup, HTML, math, link or mention comes out of it."""
    shown = _MARKDOWN.sub(r"\\\g<0>", html.escape(visible(text), quote=False))
    # Mentions and mail links are found in the rendered text, where a backslash no longer helps.
    return shown.replace("@", "@\u2060")


def for_xml(text: str) -> str:
    """Characters that XML 1.0 can hold; line feeds and tabs stay. The XML writer escapes the markup."""
    return visible(text, keep="\n\t")


def for_terminal(text: str) -> str:
    """One line for a terminal or a log: no control sequence, no line break, no reordering."""
    return visible(text)


# Names of providers, servers and models.

KINDS = ("provider", "server", "model")


def is_public(kind: str, name: str) -> bool:
    """Whether the reviewed file lists this provider, server or model."""
    return name in _public_names()[kind]


@cache
def _public_names() -> Mapping[str, frozenset[str]]:
    import json
    from importlib.resources import files

    names = json.loads(files(__package__).joinpath("public-names.json").read_bytes())["names"]
    return {kind: frozenset(names[kind]) for kind in KINDS}


class NameAliases:
    """Shown names of one table or batch.

    What is not public becomes ``provider-1``, ``model-3`` and so on, in the order first met.
    """

    def __init__(self) -> None:
        self._aliases: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._fresh = {kind: map(f"{kind}-{{}}".format, count(1)) for kind in KINDS}

    def show(self, kind: str, name: str | None) -> str | None:
        """Return the public name, its alias, or None where nothing is known. ``kind`` is one of KINDS.

        What is an alias already stays as it is, unless another name has it here: two batches can be read
        together.
        """
        if name is None or is_public(kind, name):
            return name
        if (kind, name) not in self._aliases:
            own = [name] if re.fullmatch(rf"{kind}-[1-9][0-9]{{0,5}}", name) else []
            alias = next(alias for alias in chain(own, self._fresh[kind]) if alias not in self._taken)
            self._aliases[kind, name] = alias
            self._taken.add(alias)
        return self._aliases[kind, name]


# Names of files and rule sets that people choose.


def shown_name(name: str, instead: str) -> str:
    """A batch's, rule set's or vector file's name where the kit ships it; someone's own may say too much."""
    from fragmentlab.assembler.rules import SHIPPED

    return name if name in SHIPPED or name in shipped_names() else instead


_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,119}", re.ASCII)


def is_label(text: str) -> bool:
    """Whether the text may be kept and shown as it is."""
    return _LABEL.fullmatch(text) is not None


def check_label(text: str, what: str) -> str:
    """Return the label; raise InputError, which does not quote it, where it is none."""
    if not is_label(text):
        raise InputError(
            f"{what} must be 1 to 120 letters, digits and . _ + / -, the first a letter or digit"
        )
    return text


def slug(label: str) -> str:
    """The label as the beginning of a folder name."""
    return label.replace("/", "-")[:48].rstrip(".-")


# Messages of the kit on a page.

_GIVEN = "(as given)"
_APART = r"\s\"'`{}()\[\],;:!?"
_WORD = re.compile(rf"[^{_APART}]*[^{_APART}.]")
_NO_WORD = re.compile(r"[\W_]*|[+-]?\d+([.,]\d+)*%?")
"""Signs and numbers, which say nothing of their own."""


def only_own_words(message: str, also: str = "") -> str:
    """A message of the kit without any word that came from elsewhere, such as a path or a name in a file.

    Words of the kit's own source and of ``also`` stay, and numbers.
    """
    own = _own_words().union(_WORD.findall(also))
    masked = _WORD.sub(lambda w: w[0] if w[0] in own or _NO_WORD.fullmatch(w[0]) else _GIVEN, message)
    return re.sub(rf"{re.escape(_GIVEN)}( {re.escape(_GIVEN)})+", _GIVEN, masked)


@cache
def _own_words() -> frozenset[str]:
    """Words of the kit's source, of what it ships, and of the system's error messages."""
    import errno

    from fragmentlab.assembler import CATEGORIES
    from fragmentlab.assembler.rules import SHIPPED

    texts = [*CATEGORIES, *SHIPPED, *shipped_names(), *map(os.strerror, errno.errorcode)]
    texts += [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")]
    return frozenset(_WORD.findall("\n".join(texts)))


# Batches and values that must not leave.

PRIVATE = "private"
"""The field of batch.json that ``import --no-scrub`` sets."""
ALLOW_PRIVATE = "FRAGMENTLAB_ALLOW_PRIVATE"
PRIVATE_KEY = ".private"
"""The folder beside the runs that holds the key of ``private_hash``; git ignores it."""


class _Batch(Protocol):
    name: str
    manifest: Any


AnyBatch = TypeVar("AnyBatch", bound=_Batch)


def refuse_private(batch: AnyBatch) -> AnyBatch:
    """Return the batch; raise InputError where it is private and FRAGMENTLAB_ALLOW_PRIVATE is not 1."""
    if batch.manifest.private and os.environ.get(ALLOW_PRIVATE) != "1":
        raise InputError(
            f"batch {batch.name} is not scrubbed: run `fragmentlab scrub` on it, or set {ALLOW_PRIVATE}=1 "
            "and pass nothing on"
        )
    return batch


def private_hash(value: bytes, folder: Path) -> str:
    """The keyed hash of a private value, in hex: it can be compared within one runs folder, never guessed."""
    import hmac

    return hmac.new(_private_key(folder.resolve()), value, "sha256").hexdigest()


@cache
def _private_key(folder: Path) -> bytes:
    """Read the folder's key, or make it; whoever comes second takes the first one's."""
    import secrets

    place = folder / PRIVATE_KEY
    path = place / "key"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(place):
            if not path.exists():
                (place / ".gitignore").write_text("*\n", encoding="ascii")
                write_whole(path, secrets.token_bytes(32))
                path.chmod(0o600)
        key = read_bytes(path, 32)
    except OSError as error:
        raise InputError(f"the key in {folder} cannot be used: {reason(error)}") from None
    if len(key) != 32:
        raise InputError(f"the key in {folder} is damaged; remove its folder {PRIVATE_KEY} to get a new one")
    return key
