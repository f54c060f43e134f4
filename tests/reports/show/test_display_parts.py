"""Tables, figures and sentences: what cells leave is escaped, captioned and described."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragmentlab.disclosure import for_figure
from fragmentlab.reports import Badge, Callout, Figure, Lists, Table, conclude
from fragmentlab.reports.frame.sanitize import FOOTER_TYPE
from fragmentlab.reports.show.figures import DARK, LIGHT
from fragmentlab.reports.show.tables import ROW_LIMIT

HOSTILE = st.text(st.sampled_from("<>&\"'$\x1b\u202e\n|`ab"), max_size=12)


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append(dict(attrs))


@given(caption=HOSTILE, column=HOSTILE, cell=HOSTILE, note=HOSTILE)
def test_table_text_makes_no_markup(caption, column, cell, note):
    """Whatever the texts hold, the table has the tags of an empty-handed one and no control character."""
    frame = pd.DataFrame([[cell, Badge(cell, "bad")]], columns=[column, "b"])
    bundle = Table(caption, frame, note=note or "n")._repr_mimebundle_()
    plain = Table("c", pd.DataFrame({"a": ["x"], "b": [Badge("x", "bad")]}), note="n")._repr_mimebundle_()
    assert Tags(bundle["text/html"]).tags == Tags(plain["text/html"]).tags
    assert not {"\x1b", "\u202e"} & set(bundle["text/html"] + bundle["text/plain"])


def test_table_has_caption_and_headers():
    """Assistive technology finds a caption, column and row headers and a region that scrolls by keyboard."""
    html = Table("Things", pd.DataFrame({"name": ["a"], "count": [1234]})).to_html()
    attributes = Tags(html).attributes
    assert "<caption>Things</caption>" in html and "1,234" in html
    assert [a["scope"] for a in attributes if "scope" in a] == ["col", "col", "row"]
    assert attributes[0]["tabindex"] == "0" and attributes[0]["aria-label"] == "Things"


def test_table_as_text_is_aligned():
    """In a terminal the same table is aligned text."""
    counts = pd.array([5, 1234, None], dtype="Int64")
    table = Table("Things", pd.DataFrame({"name": ["a", "long", "none"], "n": counts}))
    assert table.to_text().splitlines() == [
        "Things", "name      n", "----  -----", "a         5", "long  1,234", "none      –",
    ]  # fmt: skip


def test_long_tables_say_what_they_leave_out():
    """A table is never cut silently, and an empty one says so."""
    table = Table("T", pd.DataFrame({"a": range(ROW_LIMIT + 25)}))
    assert "25 more rows are not shown." in table.to_text() and len(table.frame) == ROW_LIMIT + 25
    assert Table("T", pd.DataFrame(columns=["a"])).to_text().endswith("None.")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pd.array([True, None], dtype="boolean"), ["yes", "–"]),
        (pd.array(["a", None], dtype="str"), ["a", "–"]),
        (pd.Categorical(["a", None]), ["a", "–"]),
        (np.array([1234, 5], dtype="int64"), ["1,234", "5"]),
        (np.array([0.12345, np.nan]), ["0.123", "–"]),
        ([Badge("x", "ok"), None], ["✓ x", "–"]),
    ],
    ids=["boolean", "str", "category", "int64", "float64", "badge"],
)
def test_every_dtype_is_shown(values, shown):
    """Values of each dtype are shown alike, and what is missing is a dash whatever pandas calls it."""
    lines = Table("T", pd.DataFrame({"a": values})).to_text().splitlines()[3:]
    assert [line.strip() for line in lines] == shown


def test_badges_have_a_second_cue():
    """Good and bad differ by a mark, not by colour alone."""
    assert str(Badge("x", "ok")) != str(Badge("x", "bad"))


def draw(text):
    def on(axes, theme):
        axes.text(0.5, 0.5, for_figure(text))
        axes.set_title(for_figure(text))

    return on


@pytest.mark.parametrize("text", ["$x^2$", "$\\frac{1}{2", "\\", "$", "\x1b[31m", "中文 🎉 \u202e", "\ud800"])
def test_figures_take_any_text(text):
    """Math, missing glyphs and surrogates neither fail nor warn."""
    figure = Figure(draw(text), alt=text, caption=text)
    assert figure.to_svg(LIGHT).startswith(b"<?xml")


def test_figure_carries_alt_text_and_both_themes():
    """One element holds the alt text, the caption and a picture each for light and dark pages."""
    html = Figure(draw("x"), alt='Two "things" & more', caption="Things").to_html()
    parsed = Tags(html)
    image = parsed.attributes[parsed.tags.index("img")]
    source = parsed.attributes[parsed.tags.index("source")]
    assert image["alt"] == 'Two "things" & more' and image["src"].startswith("data:image/svg+xml;base64,")
    assert source["media"] == "(prefers-color-scheme: dark)" and source["srcset"] != image["src"]
    assert "<figcaption>Things</figcaption>" in html


def test_figures_are_the_same_bytes_each_time():
    """The same data draws the same file, without a date or a random id."""
    figure = Figure(draw("x"), alt="a", caption="c")
    assert figure.to_svg(DARK) == figure.to_svg(DARK)
    assert b"<dc:date>" not in figure.to_svg(DARK)


@given(HOSTILE)
def test_sentences_make_no_markup(text):
    """Callouts and lists escape what they say; only https addresses become links."""
    callout = Callout("bad", text, [text])._repr_mimebundle_()["text/html"]
    assert Tags(callout).tags == ["div", "p", "p"]
    lists = Lists([(text, [text, (text, "javascript:x"), (text, f"https://x/{text}")])]).to_html()
    assert Tags(lists).tags == ["p", "ul", "li", "li", "li", "a"]


def test_conclusion_is_the_footer():
    """The closing cell says what is shown and what is not, and leaves the proof that the end was reached."""
    bundle = conclude(shows=["a"], not_shown=["b"])._repr_mimebundle_()
    assert bundle[FOOTER_TYPE] == {"complete": True}
    assert bundle["text/plain"] == "This shows\n  - a\nThis does not show\n  - b"


def test_columns_are_chosen_and_headed():
    """A table shows the columns that it is told, in that order and under those heads."""
    frame = pd.DataFrame({"a": [1], "b": [2], "c": [3]})
    shown = Table("T", frame, "c, a as the first").frame
    assert list(shown) == ["c", "the first"] and shown.iloc[0].to_list() == [3, 1]
