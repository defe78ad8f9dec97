"""The digest at the end of a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.distributions.index.pages.page_digest import is_as_made, with_digest

PAGE = b"<!DOCTYPE html>\n<html><!-- a --></html>\n"


def test_the_digest_is_a_comment_behind_the_page() -> None:
    assert with_digest(PAGE) == PAGE + b"<!-- 950bfb27a5c910b1 -->\n"


@given(st.binary())
def test_a_page_with_its_digest_is_as_made(page: bytes) -> None:
    assert is_as_made(with_digest(page))


@pytest.mark.parametrize(
    "edited",
    [
        with_digest(PAGE).replace(b" a ", b" b "),
        with_digest(PAGE)[:-1],
        with_digest(PAGE) + b"<!-- mine -->\n",
        with_digest(PAGE).replace(b"<!-- 9", b"<!-- 8"),
        PAGE[:-1],
        b"",
    ],
    ids=["other bytes", "cut off", "a comment behind it", "another digest", "cut off without a digest", "empty"],
)
def test_other_bytes_are_an_edit(edited: bytes) -> None:
    assert not is_as_made(edited)


def test_a_whole_page_without_a_digest_is_that_of_an_older_version() -> None:
    assert is_as_made(PAGE)
