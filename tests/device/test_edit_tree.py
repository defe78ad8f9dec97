"""Tests of `rocwheel.device.edit_tree`."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.device.edit_bundles import Prune
from rocwheel.device.edit_file import RewriteOrder
from rocwheel.device.edit_tree import TreeEdit, edit_tree, refuse_wheels
from rocwheel.device.edit_wheel import rewrite_wheel
from rocwheel.wheels.sdist import SourceDate
from tests.support.bundles import bundle_of
from tests.support.kpack_files import split_two
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


PROBLEM = "has no code for any target to keep; expected code for one of gfx1100."


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a folder with a split library, whose archives for gfx906, gfx90a and gfx1030 are in it."""
    split_two(tmp_path / "sdk")
    return tmp_path / "sdk"


def keep(*targets: str, allow_empty: bool = False) -> Prune:
    return Prune(tuple(map(parse_target_id, targets)), allow_empty)


def prune(source: Path, edit: Prune) -> TreeEdit:
    return edit_tree(source, source.parent / "out", edit, Storage())


def test_split_library_without_code_to_keep_is_refused(tree: Path) -> None:
    with pytest.raises(InputError, match=re.escape(PROBLEM)) as caught:
        prune(tree, keep("gfx1100"))
    assert str(caught.value).startswith(f"{tree / 'lib/libtwo.so'}: offset 0x")
    assert str(caught.value).endswith(" It has code for gfx1030, gfx906, gfx906:xnack+, gfx906:xnack-, gfx90a:xnack+.")
    assert not (tree.parent / "out").exists()


def test_split_library_may_lose_its_code_when_that_is_allowed(tree: Path) -> None:
    report = prune(tree, keep("gfx1100", allow_empty=True))
    assert report.dropped == tuple(f".kpack/two_{target}.kpack" for target in ("gfx1030", "gfx906", "gfx90a"))


def test_split_library_keeps_the_archive_of_a_target(tree: Path) -> None:
    prune(tree, keep("gfx1030"))
    assert [path.name for path in (tree.parent / "out/.kpack").iterdir()] == ["two_gfx1030.kpack"]


def test_every_library_is_asked(tree: Path) -> None:
    split_two(tree / "other")
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", tree / "lib/libfat.so")
    with pytest.raises(ProblemsError) as caught:
        prune(tree, keep("gfx1100"))
    assert [str(problem).split(": ")[0] for problem in caught.value.problems] == [
        str(tree / "lib/libtwo.so"),
        str(tree / "other/lib/libtwo.so"),
    ]


def test_unit_without_code_to_keep_counts(tmp_path: Path) -> None:
    split_two(tmp_path / "sdk", lost=[(1, "gfx1030")])
    with pytest.raises(InputError, match=r"no code for any target to keep; expected code for one of gfx1030\."):
        prune(tmp_path / "sdk", keep("gfx1030"))


def test_archives_elsewhere_do_not_count(tree: Path) -> None:
    report = edit_tree(tree / "lib", tree.parent / "out", keep("gfx1100"), Storage())
    assert (report.dropped, report.copied) == ((), 1)


def test_wheel_is_refused_for_a_split_library_beside_a_fat_one(tree: Path) -> None:
    places = ("lib/libtwo.so", ".kpack/two_gfx906.kpack")
    files = {f"demo/{place}": (tree / place).read_bytes() for place in places}
    fat = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    wheel = make_wheel(tree.parent / "in", "demo", {**files, "demo/fat.so": fat})
    order = RewriteOrder(edit=keep("gfx1030"), storage=Storage(), trim=False, jobs=1)
    with pytest.raises(InputError, match=re.escape("!demo/lib/libtwo.so: offset 0x")):
        rewrite_wheel(wheel, tree.parent / wheel.name, order, SourceDate())
    assert not (tree.parent / wheel.name).exists()


def test_a_host_wheel_by_itself_is_told_from_one_without_code(tree: Path) -> None:
    wheel = make_wheel(tree.parent / "in", "demo", {"demo/lib/libtwo.so": tree / "lib/libtwo.so"})
    order = RewriteOrder(edit=keep("gfx1030"), storage=Storage(), trim=False, jobs=1)
    message = f"{wheel}: is a host wheel, whose device code is in device wheels; expected a wheel with device code."
    with pytest.raises(InputError, match=re.escape(f"{message} Give these, each by itself.")):
        rewrite_wheel(wheel, tree.parent / wheel.name, order, SourceDate())


KEEP = (TargetId("gfx906"),)
REFUSED = (
    "a wheel with device code in a folder; expected unpacked files. "
    "Prune it by itself: rocwheel device prune WHEEL --keep TARGETS -o FOLDER"
)


def refused(*paths: Path) -> list[str]:
    return [str(error) for error in refuse_wheels(paths, KEEP)]


@pytest.mark.parametrize(
    ("name", "content"),
    [("demo/a.hipfb", bundle_of("gfx906")), ("demo/k_gfx942.dat", b"x")],
    ids=["device code", "a kernel file for another target"],
)
def test_a_wheel_with_something_to_prune_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    wheel = make_wheel(tmp_path, "demo", {name: content})
    assert refused(wheel) == [f"{wheel}: {REFUSED}"]


@pytest.mark.parametrize("name", ["demo/a.py", "demo/k_gfx906.dat"])
def test_a_wheel_with_nothing_to_prune_is_no_error(tmp_path: Path, name: str) -> None:
    assert refused(make_wheel(tmp_path, "demo", {name: b"pass"})) == []


def test_all_wheels_are_told_with_one_that_is_damaged_among_them(tmp_path: Path) -> None:
    first, second, damaged = (
        make_wheel(tmp_path, name, {f"{name}/a.hipfb": bundle_of("gfx906")}) for name in ("first", "second", "damaged")
    )
    damaged.write_bytes(damaged.read_bytes()[:-30])
    found = refused(first, damaged, second)
    assert [text.partition(": ")[0] for text in found] == [str(first), str(damaged), str(second)]
    assert REFUSED not in found[1]


def test_what_only_looks_like_a_wheel_is_no_error(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.hipfb": bundle_of("gfx906")})
    link, text, other = tmp_path / "link.whl", tmp_path / "text.whl", tmp_path / "demo.zip"
    link.symlink_to(wheel)
    text.write_text("no archive\n")
    wheel.rename(other)
    assert refused(link, text, other) == []
