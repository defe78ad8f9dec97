"""Unsafe paths and symlinks."""

from __future__ import annotations

import os
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.model.paths import ancestors, link_fault, path_fault

paths = st.lists(st.sampled_from(["a", "b", "", ".", ".."]), max_size=5).map("/".join)
good_paths = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("lib/libx.so.1", None),
        (".info/version", None),
        ("a..b/...", None),
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("..", "climbs with '..'"),
        ("lib/../../x", "climbs with '..'"),
        ("lib//x", "is not in its shortest form"),
        ("lib/./x", "is not in its shortest form"),
        ("lib/", "is not in its shortest form"),
        ("lib/a\0", "holds a NUL character"),
        ("lib/\udcff", "is not valid UTF-8 text"),
    ],
)
def test_the_fault_of_a_path_is_reported(path: str, fault: str | None) -> None:
    assert path_fault(path) == fault


@given(paths)
def test_a_path_without_fault_stays_in_the_folder_it_is_joined_to(path: str) -> None:
    if path_fault(path) is None:
        assert posixpath.normpath(f"/root/{path}") == f"/root/{path}" != "/root/"


@pytest.mark.parametrize(
    ("path", "link", "fault"),
    [
        ("lib/libx.so", "libx.so.1", None),
        ("bin/clang", "../lib/llvm/bin/clang", None),
        ("llvm", "lib/llvm", None),
        ("lib/here", "..", None),
        ("lib/x", "./y//z/", None),
        ("lib/x", "/usr/lib/x", "points to the absolute path '/usr/lib/x'"),
        ("lib/x", "../../x", "leaves the tree through '../../x'"),
        ("x", "..", "leaves the tree through '..'"),
        ("x", "a/../../a", "leaves the tree through 'a/../../a'"),
        ("x", "", "points nowhere"),
        ("x", "\udc80", "points to a name that is not valid UTF-8 text"),
        ("x", "a\nb/../../..", "leaves the tree through 'a\\nb/../../..'"),
    ],
)
def test_the_fault_of_a_link_is_reported(path: str, link: str, fault: str | None) -> None:
    assert link_fault(path, link) == fault


@given(good_paths, paths)
def test_a_link_without_fault_leads_below_the_root(path: str, link: str) -> None:
    if link_fault(path, link) is None:
        target = posixpath.normpath(posixpath.join("/root", posixpath.dirname(path), link))
        assert os.path.commonpath(["/root", target]) == "/root"


def test_ancestors_are_the_folders_above_outermost_first() -> None:
    assert ancestors("a/b/c") == ["a", "a/b"]
    assert ancestors("a") == []
