"""Tests of `rocwheel.artifacts.import_tree`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.import_table import Destination, Origin
from rocwheel.artifacts.import_tree import LinkTree

if TYPE_CHECKING:
    from rocwheel.core.errors import RocwheelError


def at(path: str) -> Destination:
    return Destination("a", "lib", path)


def tree(files: dict[str, str], links: dict[str, tuple[str, str]]) -> LinkTree:
    """Make a tree: source path to destination of files, source path to destination and text of links."""
    made = LinkTree()
    for source, destination in files.items():
        made.add_file(source, at(destination))
    for source, (destination, raw) in links.items():
        made.add_link(Origin(source, "a.deb"), at(destination), raw)
    return made


def resolve(made: LinkTree) -> tuple[dict[str, str], list[str], list[str]]:
    problems: list[RocwheelError] = []
    moved, dangling = made.resolve(problems)
    return {to.path: text for to, _, text in moved}, dangling, [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("files", "links", "expected"),
    [
        (
            {"usr/lib/x/libz.so.1.2": "lib/sys/libz.so.1.2"},
            {"usr/lib/x/libz.so.1": ("lib/sys/libz.so.1", "libz.so.1.2")},
            {"lib/sys/libz.so.1": "libz.so.1.2"},
        ),
        (
            {"usr/libexec/smi/smi.py": "libexec/smi/smi.py"},
            {"usr/bin/smi": ("bin/smi", "/usr/libexec/smi/smi.py")},
            {"bin/smi": "../libexec/smi/smi.py"},
        ),
        (
            {"usr/lib/llvm-15/lib/libclang.so": "lib/llvm/lib/libclang.so"},
            {"usr/lib/x/libclang.so": ("lib/libclang.so", "../llvm-15/lib/libclang.so")},
            {"lib/libclang.so": "llvm/lib/libclang.so"},
        ),
        (
            {"usr/include/hip/amd_detail/a.h": "include/hip/amd_detail/a.h"},
            {"usr/include/hip/hcc_detail": ("include/hip/hcc_detail", "amd_detail")},
            {"include/hip/hcc_detail": "amd_detail"},
        ),
        (
            {"usr/lib/llvm-15/bin/clang": "lib/llvm/bin/clang"},
            {"usr/lib/llvm": ("lib/other", "llvm-15"), "usr/bin/clang": ("bin/clang", "../lib/llvm/bin/clang")},
            {"lib/other": "llvm", "bin/clang": "../lib/llvm/bin/clang"},
        ),
        (
            {"a/libx.so.1.0": "lib/libx.so.1.0"},
            {"a/libx.so": ("lib/libx.so", "libx.so.1"), "a/libx.so.1": ("lib/libx.so.1", "libx.so.1.0")},
            {"lib/libx.so": "libx.so.1", "lib/libx.so.1": "libx.so.1.0"},
        ),
    ],
    ids=["both move", "absolute", "apart", "folder", "through a folder link", "chain"],
)
def test_a_link_points_to_the_new_location_of_its_target(
    files: dict[str, str], links: dict[str, tuple[str, str]], expected: dict[str, str]
) -> None:
    assert resolve(tree(files, links)) == (expected, [], [])


def test_a_link_at_the_new_path_of_its_target_is_dropped() -> None:
    made = tree(
        {"usr/lib/llvm-15/lib/libclang.so": "lib/llvm/lib/libclang.so"},
        {"usr/lib/x/libclang.so": ("lib/llvm/lib/libclang.so", "../llvm-15/lib/libclang.so")},
    )

    assert resolve(made) == ({}, [], [])


def test_a_link_to_an_excluded_file_is_dropped() -> None:
    made = tree({}, {"a/b": ("a/b", "c")})
    made.leave_out("a/c")

    assert resolve(made) == ({}, [], [])


def test_a_link_to_a_missing_file_is_reported() -> None:
    assert resolve(tree({}, {"a/libx.so": ("lib/libx.so", "libx.so.1")})) == ({}, ["a/libx.so"], [])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            "../../etc/passwd",
            (
                "a/b in a.deb: is a symlink that points out of the tree through '../../etc/passwd'; "
                "expected a link to a path in the same source"
            ),
        ),
        ("b", "a/b in a.deb: is a symlink that loops. Fix the symlink in the source."),
        ("../c", "a/b in a.deb: is a symlink that loops. Fix the symlink in the source."),
        ("b/b", "a/b in a.deb: is a symlink that loops. Fix the symlink in the source."),
    ],
    ids=["leaves", "itself", "two", "below itself"],
)
def test_a_bad_link_is_reported(raw: str, message: str) -> None:
    _, _, problems = resolve(tree({}, {"a/b": ("a/b", raw), "c": ("c", "a/b")}))

    assert message in problems
