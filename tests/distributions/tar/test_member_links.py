"""What is written through links of an archive."""

from __future__ import annotations

import pytest

from rocwheel.distributions.tar.member_links import MemberLinks


@pytest.mark.parametrize(
    ("path", "link"),
    [("a/b", "a/b"), ("a/b/c/d", "a/b"), ("a", None), ("a/bc", None), ("b/a/b", None), ("", None)],
)
def test_a_member_is_written_through_a_link_of_its_path_or_above_it(path: str, link: str | None) -> None:
    links = MemberLinks()
    links.add("a/b")
    assert (links.above(path) or (path if links.at(path) else None)) == link


def test_the_outermost_link_is_named() -> None:
    links = MemberLinks()
    for path in ("a/b/c", "a/b"):
        links.add(path)
    assert links.above("a/b/c/d") == "a/b"
