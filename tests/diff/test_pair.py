"""Tests of which file and which package is which."""

from __future__ import annotations

import pytest

from rocwheel.diff.pairs import pair_items, pair_packages
from rocwheel.diff.sides import Item, Metadata, Package


def package(*paths: str, version: str = "1.0", name: str = "demo", platform: str = "") -> Package:
    items = tuple(Item(path=path, source=path, size=1) for path in paths)
    tags = ("py3", "none", platform) if platform else ("", "", "")
    info = f"{name}-{version}.dist-info"
    return Package(name=name, version=version, source=name, dist_info=info, metadata=Metadata(tags=tags), items=items)


def paired(old: Package, new: Package) -> list[tuple[str, str]]:
    pairs = pair_items(old, new, lambda item: "lib.so.1" if "soname" in item.path else "")
    return [
        *((one.path, other.path) for one, other in pairs.both),
        *((item.path, "") for item in pairs.went),
        *(("", item.path) for item in pairs.came),
    ]


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ("a.py", "a.py", [("a.py", "a.py")]),
        ("a.py", "b.py", [("a.py", ""), ("", "b.py")]),
        ("demo-1.0.dist-info/x", "demo-2.0.dist-info/x", [("demo-1.0.dist-info/x", "demo-2.0.dist-info/x")]),
        ("demo-1.0.data/x/a", "demo-2.0.data/x/a", [("demo-1.0.data/x/a", "demo-2.0.data/x/a")]),
        ("share/demo-1.0/a", "share/demo-2.0/a", [("share/demo-1.0/a", "share/demo-2.0/a")]),
        ("share/demo-11.0/a", "share/demo-12.0/a", [("share/demo-11.0/a", ""), ("", "share/demo-12.0/a")]),
        ("lib/soname-a", "lib64/soname-b", [("lib/soname-a", "lib64/soname-b")]),
        ("lib/libx.so.1.2", "lib/libx.so.2.0", [("lib/libx.so.1.2", "lib/libx.so.2.0")]),
    ],
)  # fmt: skip
def test_files_are_paired_by_path_version_soname_and_stem(old: str, new: str, pairs: list[tuple[str, str]]) -> None:
    assert paired(package(old), package(new, version="2.0")) == pairs


def test_a_file_with_two_possible_partners_is_not_paired() -> None:
    pairs = paired(package("lib/libx.so.1"), package("lib/libx.so.2", "lib/libx.so.3"))
    assert pairs == [("lib/libx.so.1", ""), ("", "lib/libx.so.2"), ("", "lib/libx.so.3")]


def test_two_single_files_are_paired_regardless_of_name() -> None:
    assert paired(package("a.so", name=""), package("b.so", name="")) == [("a.so", "b.so")]


def test_single_packages_are_paired_regardless_of_name() -> None:
    old, new = package(name="a"), package(name="b")
    assert pair_packages([old], [new]) == [(old, new)]


def test_wheels_of_the_same_name_are_paired_by_machine_when_glibc_differs() -> None:
    old = [package(platform="manylinux_2_17_x86_64"), package(platform="manylinux_2_17_aarch64")]
    new = [package(platform="manylinux_2_28_aarch64"), package(platform="manylinux_2_28_x86_64")]
    assert pair_packages(old, new) == [(old[0], new[1]), (old[1], new[0])]


def test_packages_on_only_one_side_stay_unpaired() -> None:
    old = [package(name="a"), package(name="b")]
    new = [package(name="b"), package(name="c")]
    assert pair_packages(old, new) == [(old[0], None), (old[1], new[0]), (None, new[1])]
