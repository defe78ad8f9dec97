"""Pieces of HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.front_page.markup import Html, element, joined


class Reader(HTMLParser):
    """What a parser finds: tags with their attributes, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.text += data


def test_children_are_escaped_unless_they_are_markup() -> None:
    assert element("p", "a < b & c", Html("<b>d</b>")) == "<p>a &lt; b &amp; c<b>d</b></p>"


def test_attributes_are_escaped_and_spelled_with_dashes() -> None:
    found = element("a", "x", href='"><script>', class_="y", aria_label="z", hidden="", id=None)
    assert found == '<a href="&quot;&gt;&lt;script&gt;" class="y" aria-label="z" hidden>x</a>'


def test_elements_without_content_have_no_end() -> None:
    assert element("meta", name="a", content="b") == '<meta name="a" content="b">'


@pytest.mark.parametrize("text", ["\x00", "\x1b", "\x85", "\u202e", "\u2066", "\udcff", "\uffff"])
def test_signs_that_cannot_be_seen_are_replaced(text: str) -> None:
    assert joined(f"a{text}b") == "a\ufffdb"


@given(st.text(), st.text())
def test_no_text_becomes_markup(child: str, value: str) -> None:
    reader = Reader()
    reader.feed(element("p", child, title=f"v{value}").encode().decode())
    reader.close()
    assert [tag for tag, _ in reader.tags] == ["p"]
    assert list(reader.tags[0][1]) == ["title"]
