"""Archives in a folder that a link of the tree leads to, and what is refused in their way."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.trees.join_tree import join_tree
from rocwheel.device.splitting.trees.split_tree import SplitOrder, split_tree
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle, require_same_code
from tests.support.kpack_reader import units_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a fat library in ``usr/lib``, where ``lib`` and ``lib64`` lead."""
    build_fat_library(tmp_path / "tree/usr/lib/libx.so", [make_bundle(0, "gfx906")])
    (tmp_path / "tree/lib").symlink_to("usr/lib")
    (tmp_path / "tree/lib64").symlink_to("lib")
    return tmp_path / "tree"


def split(tree: Path, archives: str, *, dry_run: bool = False) -> Path:
    choice = SplitChoice(archives=archives)
    split_tree(tree, tree.parent / "out", SplitOrder(choice=choice, dry_run=dry_run))
    return tree.parent / "out"


@pytest.mark.parametrize("folder", ["lib", "lib64", "usr/lib"])
def test_archives_are_where_a_link_leads_and_parts_lie_over_the_host(tree: Path, tmp_path: Path, folder: str) -> None:
    out = split(tree, f"{folder}/rocm-kpack")
    assert [path.relative_to(out).as_posix() for path in out.rglob("*.kpack")] == [
        "gfx906/usr/lib/rocm-kpack/libx.so_gfx906.kpack"
    ]
    assert [unit.paths for unit in units_of(out / "host/usr/lib/libx.so")] == [("rocm-kpack/libx.so_@GFXARCH@.kpack",)]
    made = tmp_path / "made"
    made.mkdir()
    subprocess.run(["cp", "-a", f"{out}/host/.", f"{out}/gfx906/.", made], check=True)
    assert require_same_code(made / "lib64/libx.so", [{"gfx906": code_of(0, "gfx906")}]) == 8
    assert join_tree(out / "host", [out / "gfx906"], tmp_path / "fat").libraries[0].targets == ("gfx906",)


def test_archives_go_to_the_root_where_a_link_leads_to_it(tree: Path) -> None:
    (tree / "here").symlink_to(".")
    out = split(tree, "here")
    assert [path.name for path in (out / "gfx906").iterdir()] == ["libx.so_gfx906.kpack"]
    assert [unit.paths for unit in units_of(out / "host/usr/lib/libx.so")] == [("../../libx.so_@GFXARCH@.kpack",)]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gone", "odd: is a symlink to 'gone', where nothing is, and archives would be below it"),
        ("odd", "odd: is a symlink to 'odd', where nothing is, and archives would be below it"),
        ("lib/libx.so", "odd: is a symlink to 'lib/libx.so', which is a file, and archives would be below it"),
        ("../beside", "odd: is a symlink to '../beside', out of the tree, and archives would be below it"),
    ],
)
def test_a_link_that_leads_to_no_folder_of_the_tree_is_refused(
    tree: Path, tmp_path: Path, text: str, message: str, *, dry_run: bool
) -> None:
    (tmp_path / "beside").mkdir()
    (tree / "odd").symlink_to(text)
    with pytest.raises(InputError) as error:
        split(tree, "odd/kpack", dry_run=dry_run)
    assert str(error.value) == f"{message}; expected another folder for archives"
    assert not (tmp_path / "out").exists()


def test_of_a_link_from_the_root_of_a_system_the_folder_in_the_tree_is_named(tree: Path) -> None:
    (tree / "usr/share/rocm").mkdir(parents=True)
    (tree / "odd").symlink_to("/usr/share/rocm")
    with pytest.raises(InputError, match=r"out of the tree.*\. Give --archives usr/share/rocm/kpack\.$"):
        split(tree, "odd/kpack")


def test_a_link_to_a_name_that_markers_may_not_have_is_refused(tree: Path) -> None:
    (tree / "a @GFXARCH@").mkdir()
    (tree / "odd").symlink_to("a @GFXARCH@")
    with pytest.raises(InputError, match=r"^odd/kpack: leads to 'a @GFXARCH@/kpack', and archives would be below it"):
        split(tree, "odd/kpack")


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", ["first", "second"])
def test_a_file_in_the_way_is_refused_under_each_of_its_names(tree: Path, name: str, *, dry_run: bool) -> None:
    (tree / "first").write_bytes(b"text")
    (tree / "second").hardlink_to(tree / "first")
    with pytest.raises(InputError, match=f"^{name}: is a file, and archives would be below it"):
        split(tree, f"{name}/kpack", dry_run=dry_run)
    with pytest.raises(InputError, match=f"^{name}: is a file, and archives would be below it"):
        split(tree, name, dry_run=dry_run)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_place_that_an_archive_would_take_is_refused(tree: Path, kind: str, *, dry_run: bool) -> None:
    place = tree / ".kpack/libx.so_gfx906.kpack"
    place.parent.mkdir()
    if kind == "link":
        place.symlink_to("elsewhere")
    else:
        place.mkdir()
    with pytest.raises(InputError, match=r"^\.kpack/libx\.so_gfx906\.kpack: is in the tree, and would be made"):
        split(tree, ".kpack", dry_run=dry_run)


def test_nothing_is_in_the_way_of_no_archives(tree: Path) -> None:
    shutil.copy(__file__, tree / "usr/lib/libx.so")
    (tree / ".kpack").symlink_to("gone")
    assert (split(tree, ".kpack") / "host/.kpack").is_symlink()
