"""Symlinks of a described tree lead where Linux says they lead."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.core.symlinks import MAX_LINKS, Symlinks, Walk, WalkEnd
from tests.support.example_counts import examples

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDERS = {"", "a", "a/b"}


def follow(links: Mapping[str, str], path: str) -> Walk:
    return Symlinks(links.get, FOLDERS.__contains__).follow(path)


@pytest.mark.parametrize(
    ("links", "path", "expected"),
    [
        pytest.param({}, "a/b/x", Walk(WalkEnd.REACHED, "a/b/x"), id="no link"),
        pytest.param({"l": "a/b"}, "l/x", Walk(WalkEnd.REACHED, "a/b/x"), id="a folder on the way"),
        pytest.param({"a/l": "b/x"}, "a/l", Walk(WalkEnd.REACHED, "a/b/x"), id="at the end"),
        pytest.param({"a/b/l": "../x"}, "a/b/l", Walk(WalkEnd.REACHED, "a/x"), id="up"),
        pytest.param({"a/b/l": "/a/x"}, "a/b/l", Walk(WalkEnd.REACHED, "a/x"), id="from the root"),
        pytest.param({}, "a/./b//x", Walk(WalkEnd.REACHED, "a/b/x"), id="empty segments and dots"),
        pytest.param({}, "a/x/y", Walk(WalkEnd.MISSING, "a/x"), id="missing"),
        pytest.param({}, "a/x/", Walk(WalkEnd.MISSING, "a/x"), id="a slash behind what isn't a folder"),
        pytest.param({"l": "m", "m": "l"}, "l", Walk(WalkEnd.LOOP, "l"), id="circle"),
        pytest.param({}, "a/../../x", Walk(WalkEnd.ABOVE, "a/../../x"), id="above"),
        pytest.param({"a/l": "../../x"}, "a/l", Walk(WalkEnd.ABOVE, "a/l"), id="a link above"),
    ],
)
def test_a_path_is_resolved_through_its_links(links: Mapping[str, str], path: str, expected: Walk) -> None:
    assert follow(links, path) == expected


def test_a_link_that_leaves_the_tree_ends_the_walk() -> None:
    links = {"l": WalkEnd.OUTSIDE}
    assert Symlinks(links.get).follow("l/x") == Walk(WalkEnd.OUTSIDE, "l")


def test_the_last_link_can_be_left_unfollowed() -> None:
    links = Symlinks({"l": "a", "a/m": "b"}.get)
    assert links.follow("l/m", follows_last=False) == Walk(WalkEnd.REACHED, "a/m")
    assert links.follow("m", start="a", follows_last=False) == Walk(WalkEnd.REACHED, "a/m")


def test_the_parent_of_the_file_system_root_is_the_root() -> None:
    links = Symlinks({"/a/l": "../../../x"}.get, root="/")
    assert links.follow("/../a/l") == Walk(WalkEnd.REACHED, "/x")


@pytest.mark.parametrize(("count", "end"), [(MAX_LINKS, WalkEnd.REACHED), (MAX_LINKS + 1, WalkEnd.LOOP)])
def test_a_chain_of_links_has_the_same_limit_as_in_the_kernel(tmp_path: Path, count: int, end: WalkEnd) -> None:
    for number in range(count):
        (tmp_path / f"l{number}").symlink_to(f"l{number + 1}" if number + 1 < count else "end")
    (tmp_path / "end").touch()
    assert (tmp_path / "l0").exists() is (end is WalkEnd.REACHED)
    texts = {path.name: str(path.readlink()) for path in tmp_path.glob("l*")}
    assert follow(texts, "l0").end is end


TEXTS = st.lists(st.sampled_from(["a", "b", "l", "m", "..", "."]), min_size=1, max_size=4).map("/".join)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=TEXTS, second=TEXTS, path=TEXTS)
def test_links_match_the_kernel(tmp_path_factory: pytest.TempPathFactory, first: str, second: str, path: str) -> None:
    root = tmp_path_factory.mktemp("tree")
    (root / "a/b").mkdir(parents=True)
    texts = {"l": first, "a/m": second}
    for name, text in texts.items():
        (root / name).symlink_to(text)
    walk = follow(texts, path)
    if walk.end is WalkEnd.ABOVE:
        return
    reached = walk.end is WalkEnd.REACHED and walk.path in FOLDERS
    assert os.path.isdir(f"{root}/{path}") is reached  # noqa: PTH112 (a Path would drop dots)
    if reached:
        assert os.path.samefile(f"{root}/{path}", root / walk.path)  # noqa: PTH121
