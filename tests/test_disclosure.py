"""Each sink neutralises what is dangerous in that sink, for any text."""

from __future__ import annotations

import html
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import mistune
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import cbook, font_manager, ft2font

from fragmentlab.disclosure import (
    NameAliases,
    check_label,
    for_figure,
    for_html,
    for_markdown,
    for_terminal,
    for_xml,
    private_hash,
    refuse_private,
    shown_name,
)
from fragmentlab.errors import InputError

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60) | st.text(
    "<>&\"'\\`*_[]()#$@\x1b\u202e\n\ud800", max_size=30
)
GLYPHS = ft2font.FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap()
RENDER = mistune.create_markdown(escape=False, plugins=["strikethrough", "table", "url", "math"])
SINKS = [for_figure, for_html, for_markdown, for_terminal, for_xml]
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize("sink", SINKS)
@given(text=ANY_TEXT)
def test_no_invisible_character_survives(sink, text):
    """Nothing that hides, reorders or steers is left but the line feeds and tabs that HTML and XML keep."""
    allowed = {"\n", "\t"} if sink in (for_html, for_xml) else set()
    allowed |= {"\u2060"} if sink is for_markdown else set()
    assert not [ch for ch in sink(text) if unicodedata.category(ch) in HIDDEN and ch not in allowed]


@pytest.mark.parametrize("sink", SINKS)
@given(text=ANY_TEXT)
def test_every_sink_gives_encodable_text(sink, text):
    """The output can always be written as UTF-8, whatever surrogates the input holds."""
    sink(text).encode("utf-8")


@pytest.mark.parametrize("sink", SINKS)
def test_plain_words_are_unchanged(sink):
    """Ordinary words stay readable in every sink."""
    assert sink("Qwen three") == "Qwen three"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", 0

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, *_: object) -> None:
        self.tags += 1


@given(ANY_TEXT)
def test_html_holds_text_only(text):
    """No tag opens, and the text that a browser shows is the text with hidden characters made visible."""
    parser = _Tags()
    parser.feed(for_html(text))
    parser.close()
    assert parser.tags == 0
    assert parser.text == html.unescape(for_html(text))
    assert '"' not in for_html(text) and "'" not in for_html(text)


@given(ANY_TEXT)
def test_xml_can_be_parsed_back(text):
    """An XML writer and parser return the same text."""
    element = ElementTree.Element("e", {"a": for_xml(text).replace("\n", " ").replace("\t", " ")})
    element.text = for_xml(text)
    back = ElementTree.fromstring(ElementTree.tostring(element))
    assert (back.text or "") == for_xml(text)


@given(ANY_TEXT)
def test_terminal_and_figure_text_is_one_line(text):
    """A value cannot begin a line of its own."""
    assert len((for_terminal(text) + "|").splitlines()) == 1
    assert len((for_figure(text) + "|").splitlines()) == 1


@given(ANY_TEXT)
def test_figures_take_no_math_and_have_every_glyph(text):
    """Matplotlib reads no math in it, and its own font can draw each character."""
    shown = for_figure(text)
    assert not cbook.is_math_text(shown)
    assert not [ch for ch in shown if ord(ch) not in GLYPHS]


@given(ANY_TEXT)
def test_markdown_renders_to_the_same_text(text):
    """A Markdown renderer makes no markup of it: one paragraph whose text is the visible text."""
    parser = _Tags()
    parser.feed(RENDER("x" + for_markdown(text) + "x"))
    parser.close()
    assert parser.tags == 1
    words = "".join(("x" + for_terminal(text) + "x").split())
    assert "".join(parser.text.replace("\u2060", "").split()) == words


@pytest.mark.parametrize(
    ("sink", "text", "shown"),
    [
        (for_terminal, "\x1b[31mred\r\n", r"\x1b[31mred\x0d\x0a"),
        (for_terminal, "\u202eevil", r"\u202eevil"),
        (for_html, "<b a='1'>", "&lt;b a=&#x27;1&#x27;&gt;"),
        (for_figure, "$x$", r"\$x\$"),
        (for_figure, "中", r"\u4e2d"),
        (for_markdown, "![a](b)", r"\!\[a\]\(b\)"),
        (for_xml, "a\x00b\ud800", r"a\x00b\ud800"),
    ],
)
def test_examples(sink, text, shown):
    """Well-known attacks come out as visible text."""
    assert sink(text) == shown


def test_only_reviewed_names_are_shown() -> None:
    """A name that the reviewed file lacks is an alias, the same one each time; what is an alias stays."""
    aliases = NameAliases()
    names = ["openrouter", "my-employer", "provider-7", "another", "my-employer", None]
    shown = [aliases.show("provider", name) for name in names]
    assert shown == ["openrouter", "provider-1", "provider-7", "provider-2", "provider-1", None]


def test_only_shipped_files_are_named() -> None:
    """Someone's own rule set, batch or vector file may say too much in its name."""
    names = ["identity", "keep-established", "data/batches/captured-local", "acme-secret", "../identity", ""]
    assert [shown_name(name, "yours") for name in names] == [*names[:3], "yours", "yours", "yours"]


@pytest.mark.parametrize("text", ["", "-x", "a b", "a\n", "é", "x" * 121, "../x", "<b>"])
def test_a_label_that_could_not_be_shown_is_refused_unquoted(text: str) -> None:
    """The error says the rule and not the text."""
    with pytest.raises(InputError, match=r"^the label must be 1 to 120 letters") as refused:
        check_label(text, "the label")
    assert not text or text not in str(refused.value).partition("must be")[0]


def test_a_batch_that_was_not_scrubbed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the person says that it may be used here; only a true mark counts."""
    raw, scrubbed = (
        SimpleNamespace(name="b", manifest=SimpleNamespace(private=mark)) for mark in (True, False)
    )
    assert refuse_private(scrubbed) is scrubbed
    with pytest.raises(InputError, match="is not scrubbed"):
        refuse_private(raw)
    monkeypatch.setenv("FRAGMENTLAB_ALLOW_PRIVATE", "1")
    assert refuse_private(raw) is raw


def test_a_private_value_is_hashed_with_the_folders_own_key(tmp_path: Path) -> None:
    """Equal values agree within a folder, from any process, and nowhere else; git never sees the key."""
    runs, others = tmp_path / "runs", tmp_path / "others"
    script = (
        "import pathlib, sys; from fragmentlab.disclosure import private_hash;"
        "print(private_hash(b'v', pathlib.Path(sys.argv[1])))"
    )
    racing = [
        subprocess.Popen([sys.executable, "-c", script, runs], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    hashes = {process.communicate()[0].strip() for process in racing}
    assert hashes == {private_hash(b"v", runs)}
    assert private_hash(b"v", runs) != private_hash(b"w", runs) != private_hash(b"v", others)
    key = runs / ".private" / "key"
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    assert (runs / ".private" / ".gitignore").read_text() == "*\n"


def test_a_damaged_key_is_refused(tmp_path: Path) -> None:
    """Hashes under another key than before would not be the same values' any more."""
    (tmp_path / ".private").mkdir()
    (tmp_path / ".private" / "key").write_bytes(b"short")
    with pytest.raises(InputError, match=r"is damaged; remove"):
        private_hash(b"v", tmp_path)
