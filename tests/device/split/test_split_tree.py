"""Tests of `rocwheel.device.split.split_tree`."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.elf.header import read_sections
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.code_objects import code_object_header
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, code_of, lay_over, make_bundle, require_same_code
from tests.support.kpack_reader import Archive, units_of
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence
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
def test_archives_in_a_symlinked_folder_are_found_from_the_host(tree: Path, tmp_path: Path, folder: str) -> None:
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


def test_archives_go_to_the_root_if_the_folder_is_a_symlink_to_it(tree: Path) -> None:
    (tree / "here").symlink_to(".")
    out = split(tree, "here")
    assert [path.name for path in (out / "gfx906").iterdir()] == ["libx.so_gfx906.kpack"]
    assert [unit.paths for unit in units_of(out / "host/usr/lib/libx.so")] == [("../../libx.so_@GFXARCH@.kpack",)]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "gone",
            "odd: is a symlink to 'gone', which doesn't exist, but the split puts archives below it",
        ),
        ("odd", "odd: is a symlink to 'odd', which doesn't exist, but the split puts archives below it"),
        (
            "lib/libx.so",
            "odd: is a symlink to 'lib/libx.so', which is a file, but the split puts archives below it",
        ),
        (
            "../beside",
            "odd: is a symlink to '../beside', outside the tree, but the split puts archives below it",
        ),
    ],
)
def test_a_symlink_that_is_not_to_a_folder_of_the_tree_is_refused(
    tree: Path, tmp_path: Path, text: str, message: str, *, dry_run: bool
) -> None:
    (tmp_path / "beside").mkdir()
    (tree / "odd").symlink_to(text)
    with pytest.raises(InputError) as error:
        split(tree, "odd/kpack", dry_run=dry_run)
    assert str(error.value) == f"{message}; expected another folder for archives"
    assert not (tmp_path / "out").exists()


def test_an_absolute_symlink_is_refused_with_the_matching_folder_in_the_tree(tree: Path) -> None:
    (tree / "usr/share/rocm").mkdir(parents=True)
    (tree / "odd").symlink_to("/usr/share/rocm")
    with pytest.raises(InputError, match=r"outside the tree.*\. Specify --archives usr/share/rocm/kpack\.$"):
        split(tree, "odd/kpack")


def test_a_symlink_to_a_name_that_markers_cannot_contain_is_refused(tree: Path) -> None:
    (tree / "a @GFXARCH@").mkdir()
    (tree / "odd").symlink_to("a @GFXARCH@")
    with pytest.raises(
        InputError,
        match=r"^odd/kpack: is a link to 'a @GFXARCH@/kpack', but the split puts archives below it",
    ):
        split(tree, "odd/kpack")


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", ["first", "second"])
def test_a_file_in_place_of_the_archives_folder_is_refused(tree: Path, name: str, *, dry_run: bool) -> None:
    (tree / "first").write_bytes(b"text")
    (tree / "second").hardlink_to(tree / "first")
    with pytest.raises(InputError, match=f"^{name}: is a file, but the split puts archives below it"):
        split(tree, f"{name}/kpack", dry_run=dry_run)
    with pytest.raises(InputError, match=f"^{name}: is a file, but the split puts archives below it"):
        split(tree, name, dry_run=dry_run)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_an_existing_path_that_an_archive_would_replace_is_refused(tree: Path, kind: str, *, dry_run: bool) -> None:
    place = tree / ".kpack/libx.so_gfx906.kpack"
    place.parent.mkdir()
    if kind == "link":
        place.symlink_to("elsewhere")
    else:
        place.mkdir()
    with pytest.raises(
        InputError, match=r"^\.kpack/libx\.so_gfx906\.kpack: is already in the tree, but the split would create it"
    ):
        split(tree, ".kpack", dry_run=dry_run)


def test_a_conflicting_path_is_accepted_if_there_are_no_archives(tree: Path) -> None:
    shutil.copy(__file__, tree / "usr/lib/libx.so")
    (tree / "share/miopen/db").mkdir(parents=True)
    (tree / "share/miopen/db/gfx906_60.db.txt").write_text("a database of MIOpen")
    (tree / ".kpack").symlink_to("gone")
    assert (split(tree, ".kpack") / "host/.kpack").is_symlink()


EVERYTHING = SplitOrder(choice=SplitChoice())


def split_of_split_tree(source: Path, output: Path, **changes: object) -> Path:
    split_tree(source, output, SplitOrder(choice=SplitChoice(**changes)))  # type: ignore[arg-type]
    return output


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def library(tree: Path, *targets: str, wrappers: Sequence[int] | None = None, path: str = "lib/libx.so") -> Path:
    return build_fat_library(tree / path, [make_bundle(unit, text) for unit, text in enumerate(targets)], wrappers)


def codes(*targets: str) -> list[dict[str, bytes]]:
    return [{target: code_of(unit, target) for target in text.split()} for unit, text in enumerate(targets)]


@pytest.mark.parametrize("scheme", list(Scheme))
def test_each_gpu_finds_the_code_of_each_unit(tmp_path: Path, scheme: Scheme) -> None:
    library(tmp_path / "tree", "gfx906 gfx90a", "gfx906 gfx90a")
    output = split_of_split_tree(tmp_path / "tree", tmp_path / "out", scheme=scheme)
    made = lay_over(output, tmp_path / "made")
    assert require_same_code(made / "lib/libx.so", codes("gfx906 gfx90a", "gfx906 gfx90a")) == 32
    assert files_of(output) == [
        "gfx906/.kpack/libx.so_gfx906.kpack",
        "gfx90a/.kpack/libx.so_gfx90a.kpack",
        "host/lib/libx.so",
    ]


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(("gfx906 gfx90a", "gfx906", "gfx906 gfx90a"), id="a unit lacks a target"),
        pytest.param(("gfx90a", "gfx90a:xnack- gfx90a:xnack+"), id="open and named features"),
        pytest.param(("gfx90a:xnack+", "gfx90a:xnack-", "gfx90a"), id="one setting each"),
        pytest.param(("gfx90a:sramecc+", "gfx90a:xnack+ gfx90a:xnack-", "gfx90a"), id="two features"),
        pytest.param(("gfx11-generic", "gfx1100 gfx11-generic", "gfx1100"), id="generic code"),
        pytest.param(("gfx90a:xnack- gfx90a", "gfx90a"), id="open code as the rest"),
        pytest.param(("gfx906", ""), id="a unit without code"),
    ],
)
def test_a_gpu_gets_the_code_of_every_unit_or_is_skipped(tmp_path: Path, targets: tuple[str, ...]) -> None:
    library(tmp_path / "tree", *targets)
    made = lay_over(split_of_split_tree(tmp_path / "tree", tmp_path / "out"), tmp_path / "made")
    assert require_same_code(made / "lib/libx.so", codes(*targets)) > 0


def test_wheels_in_a_folder_are_left_unchanged_with_a_warning(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906")
    wheel = make_wheel(tmp_path / "tree", "demo", {"demo/__init__.py": b""})
    report = split_tree(tmp_path / "tree", tmp_path / "out", EVERYTHING)
    assert report.warnings == (f"{wheel}: is a wheel and is left unchanged; to process it, specify the wheel itself",)
    assert (tmp_path / "out/host" / wheel.name).read_bytes() == wheel.read_bytes()


def test_a_kernel_file_with_code_for_another_gpu_than_its_name_is_refused(tmp_path: Path) -> None:
    kernels = tmp_path / "tree/rocblas/library/x_gfx90a.co"
    kernels.parent.mkdir(parents=True)
    kernels.write_bytes(code_object_header("gfx906"))
    with pytest.raises(InputError, match=r"x_gfx90a\.co: is named for gfx90a, but contains code for gfx906"):
        split_of_split_tree(tmp_path / "tree", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_unit_that_lacks_a_target_has_its_own_archives(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906 gfx90a", "gfx906", "gfx906 gfx90a")
    output = split_of_split_tree(tmp_path / "tree", tmp_path / "out")
    assert [unit.paths for unit in units_of(output / "host/lib/libx.so")] == [
        ("../.kpack/libx.so_@GFXARCH@.kpack",),
        ("../.kpack/libx.so-part2_@GFXARCH@.kpack",),
        ("../.kpack/libx.so_@GFXARCH@.kpack",),
    ]
    assert files_of(output / "gfx90a") == [".kpack/libx.so_gfx90a.kpack"]
    assert files_of(output / "gfx906") == [".kpack/libx.so-part2_gfx906.kpack", ".kpack/libx.so_gfx906.kpack"]


def test_feature_settings_share_one_code_object(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx90a", "gfx90a:xnack- gfx90a:xnack+")
    output = split_of_split_tree(tmp_path / "tree", tmp_path / "out")
    archive = Archive(output / "gfx90a/.kpack/libx.so_gfx90a.kpack")
    ordinals = {key: {t: e["ordinal"] for t, e in row.items()} for key, row in archive.toc["toc"].items()}
    assert ordinals == {
        "lib/libx.so#0": {"gfx90a": 0, "gfx90a:xnack+": 0, "gfx90a:xnack-": 0},
        "lib/libx.so#1": {"gfx90a:xnack-": 1, "gfx90a:xnack+": 2},
    }


def test_wrappers_of_the_same_bundle_have_the_same_index(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906", "gfx906", wrappers=[0, 0, 1])
    output = split_of_split_tree(tmp_path / "tree", tmp_path / "out")
    keys = [unit.key for unit in units_of(output / "host/lib/libx.so")]
    assert keys == ["lib/libx.so#0", "lib/libx.so#0", "lib/libx.so#1"]


def test_a_single_file_is_split_like_a_tree(tmp_path: Path) -> None:
    fat = library(tmp_path, "gfx906", path="libx.so")
    output = split_of_split_tree(fat, tmp_path / "out")
    assert files_of(output) == ["gfx906/.kpack/libx.so_gfx906.kpack", "host/libx.so"]
    assert require_same_code(lay_over(output, tmp_path / "made") / "libx.so", codes("gfx906")) == 8


def test_only_the_selected_targets_get_folders(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906 gfx90a", "gfx90a")
    (tmp_path / "tree/lib/rocblas/library").mkdir(parents=True)
    for target in ("gfx906", "gfx90a"):
        (tmp_path / f"tree/lib/rocblas/library/TensileLibrary_{target}.co").write_bytes(b"")
    keep = (parse_target_id("gfx906"),)
    report = split_tree(tmp_path / "tree", tmp_path / "out", SplitOrder(choice=SplitChoice(keep=keep)))
    assert files_of(tmp_path / "out") == [
        "gfx906/.kpack/libx.so_gfx906.kpack",
        "gfx906/lib/rocblas/library/TensileLibrary_gfx906.co",
        "host/lib/libx.so",
    ]
    assert report.left_out == ("lib/rocblas/library/TensileLibrary_gfx90a.co",)


def test_a_tree_without_code_for_the_selected_targets_is_refused(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906")
    with pytest.raises(
        InputError, match=r"tree: has no code for any of the targets to keep; expected code for gfx1030"
    ):
        split_of_split_tree(tmp_path / "tree", tmp_path / "out", keep=(parse_target_id("gfx1030"),))
    assert not (tmp_path / "out").exists()


def test_kernel_files_go_to_their_targets_and_unknown_ones_are_kept_and_listed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for path in ("lib/rocblas/library/Kernels_gfx906.hsaco", "lib/rocblas/library/README", "lib/odd/x_gfx906.hsaco"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(b"")
    report = split_tree(tree, tmp_path / "out", EVERYTHING)
    assert files_of(tmp_path / "out") == [
        "gfx906/lib/rocblas/library/Kernels_gfx906.hsaco",
        "host/lib/odd/x_gfx906.hsaco",
        "host/lib/rocblas/library/README",
    ]
    assert [(file.path, file.reason) for file in report.staying] == [
        ("lib/odd/x_gfx906.hsaco", "a kernel file that no rule covers")
    ]


def test_symlinks_modes_and_hard_links_are_preserved(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    library(tree, "gfx906", path="lib/libx.so.1").chmod(0o755)
    (tree / "lib/libx.so").symlink_to("libx.so.1")
    (tree / "lib/libsame.so").hardlink_to(tree / "lib/libx.so.1")
    (tree / "bin").mkdir()
    (tree / "bin/tool").write_text("#!/bin/sh\n")
    (tree / "bin/tool").chmod(0o750)
    (tree / "bin/other").hardlink_to(tree / "bin/tool")
    (tree / "empty").mkdir(mode=0o700)
    host = split_of_split_tree(tree, tmp_path / "out") / "host"
    assert str((host / "lib/libx.so").readlink()) == "libx.so.1"
    assert (host / "lib/libsame.so").samefile(host / "lib/libx.so.1")
    assert (host / "bin/other").samefile(host / "bin/tool")
    assert [oct((host / name).stat().st_mode & 0o7777) for name in ("lib/libx.so.1", "bin/tool", "empty")] == [
        "0o755",
        "0o750",
        "0o700",
    ]
    assert files_of(tmp_path / "out/gfx906") == [".kpack/libsame.so_gfx906.kpack"]


def test_a_hard_link_at_another_depth_finds_the_same_archives(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    fat = library(tree, "gfx906")
    (tree / "lib/sub").mkdir()
    (tree / "lib/sub/libx.so").hardlink_to(fat)
    made = lay_over(split_of_split_tree(tree, tmp_path / "out"), tmp_path / "made")
    for name in ("lib/libx.so", "lib/sub/libx.so"):
        assert require_same_code(made / name, codes("gfx906")) == 8
    assert files_of(made) == [".kpack/libx.so_gfx906.kpack", "lib/libx.so", "lib/sub/libx.so"]


def test_a_hard_link_in_another_folder_finds_archives_in_a_chosen_folder(tmp_path: Path) -> None:
    """From ``opt/lib`` the archives are in ``kpack``, from ``usr/lib`` in ``../../opt/lib/kpack``."""
    tree = tmp_path / "tree"
    fat = library(tree, "gfx906", path="opt/lib/libx.so")
    (tree / "usr/lib").mkdir(parents=True)
    (tree / "usr/lib/libx.so").hardlink_to(fat)
    made = lay_over(split_of_split_tree(tree, tmp_path / "out", archives="opt/lib/kpack"), tmp_path / "made")
    for name in ("opt/lib/libx.so", "usr/lib/libx.so"):
        assert require_same_code(made / name, codes("gfx906")) == 8


def test_splitting_a_split_tree_changes_no_byte(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906 gfx90a", "gfx906")
    once = lay_over(split_of_split_tree(tmp_path / "tree", tmp_path / "out"), tmp_path / "made")
    split_of_split_tree(once, tmp_path / "again")
    for path in files_of(tmp_path / "out"):
        assert (tmp_path / "again" / path).read_bytes() == (tmp_path / "out" / path).read_bytes(), path
    assert files_of(tmp_path / "again") == files_of(tmp_path / "out")


def test_the_output_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    library(tmp_path / "tree", *["gfx906 gfx90a"] * 20)
    for jobs in (1, 4):
        split_tree(tmp_path / "tree", tmp_path / str(jobs), SplitOrder(choice=SplitChoice(), jobs=jobs))
    for path in files_of(tmp_path / "1"):
        assert (tmp_path / "1" / path).read_bytes() == (tmp_path / "4" / path).read_bytes()


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        (
            "gfx906 amdgcnspirv",
            "SPIR-V, expected only code objects, because runtimes don't find other code in archives",
        ),
        (
            "gfx90a gfx90a:xnack+",
            (
                "1 entry after other entries for the same GPU (hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+), "
                "expected only one entry for each GPU"
            ),
        ),
    ],
)
def test_a_library_that_archives_cannot_represent_is_kept_and_listed(tmp_path: Path, targets: str, reason: str) -> None:
    fat = library(tmp_path / "tree", targets)
    report = split_tree(tmp_path / "tree", tmp_path / "out", EVERYTHING)
    assert [(file.path, file.reason) for file in report.staying] == [("lib/libx.so", reason)]
    assert (tmp_path / "out/host/lib/libx.so").read_bytes() == fat.read_bytes()
    assert files_of(tmp_path / "out") == ["host/lib/libx.so"]


def test_a_library_with_two_code_sections_is_kept_and_others_are_split(tmp_path: Path) -> None:
    odd = library(tmp_path / "tree", "gfx906", path="lib/libodd.so")
    library(tmp_path / "tree", "gfx906")
    data = bytearray(odd.read_bytes())
    sections = read_sections(data, name="libodd.so")
    [code] = [section for section in sections if section.name == ".hip_fatbin"]
    headers = int.from_bytes(data[0x28:0x30], "little")
    data[headers + 64 : headers + 68] = code.name_offset.to_bytes(4, "little")
    odd.write_bytes(data)
    report = split_tree(tmp_path / "tree", tmp_path / "out", EVERYTHING)
    reason = "several .hip_fatbin sections, expected only one"
    assert [(file.path, file.reason) for file in report.staying] == [("lib/libodd.so", reason)]
    assert [file.path for file in report.libraries] == ["lib/libx.so"]


def test_libraries_with_the_same_name_have_separate_archives(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        library(tmp_path / "tree", "gfx906", path=f"{folder}/libx.so")
    made = lay_over(split_of_split_tree(tmp_path / "tree", tmp_path / "out"), tmp_path / "made")
    for folder in ("a", "b"):
        assert require_same_code(made / folder / "libx.so", codes("gfx906")) == 8
    assert len(files_of(tmp_path / "out/gfx906")) == 2


def test_a_library_whose_name_clashes_with_a_part_of_another_is_refused(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906 gfx90a", "gfx906")
    library(tmp_path / "tree", "gfx906", path="lib/libx.so-part2")
    with pytest.raises(InputError, match=r"\.kpack/libx\.so-part2_gfx906\.kpack: would be created from two libraries"):
        split_tree(tmp_path / "tree", tmp_path / "out", EVERYTHING)
    assert not (tmp_path / "out").exists()


def test_a_dry_run_writes_nothing_and_returns_the_same_report(tmp_path: Path) -> None:
    library(tmp_path / "tree", "gfx906 gfx90a")
    dry = split_tree(tmp_path / "tree", tmp_path / "out", SplitOrder(choice=SplitChoice(), dry_run=True))
    assert not (tmp_path / "out").exists()
    assert dry.libraries == split_tree(tmp_path / "tree", tmp_path / "out", EVERYTHING).libraries


def test_all_damaged_files_are_reported_and_nothing_is_written(tmp_path: Path) -> None:
    for name in ("liba.so", "libb.so"):
        bundle = bytearray(make_bundle(0, "gfx906"))
        bundle[24:32] = b"\xff" * 8
        build_fat_library(tmp_path / "tree" / name, [bytes(bundle)])
    with pytest.raises(ProblemsError) as error:
        split_of_split_tree(tmp_path / "tree", tmp_path / "out")
    assert [str(problem).partition(":")[0] for problem in error.value.problems] == [
        str(tmp_path / "tree/liba.so"),
        str(tmp_path / "tree/libb.so"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


@pytest.mark.parametrize("place", ["tree/out", "exists"])
def test_an_output_that_exists_or_is_inside_the_tree_is_refused(tmp_path: Path, place: str) -> None:
    library(tmp_path / "tree", "gfx906")
    (tmp_path / "exists/full").mkdir(parents=True)
    with pytest.raises(InputError, match=re.escape(place)):
        split_of_split_tree(tmp_path / "tree", tmp_path / place)


def test_an_empty_output_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    library(tmp_path / "tree", "gfx906")
    assert "host/lib/libx.so" in files_of(split_of_split_tree(tmp_path / "tree", tmp_path / "out"))


def test_bundles_and_code_objects_are_kept_and_listed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/code.hipfb").write_bytes(make_bundle(0, "gfx906 gfx1030"))
    shutil.copy(FIXTURES / "elf/gfx906.co", tmp_path / "tree/code.elf")
    report = split_tree(tmp_path / "tree", tmp_path / "out", EVERYTHING)
    assert [(file.path, file.reason) for file in report.staying] == [
        ("code.elf", "device code that no rule covers, for gfx906"),
        ("code.hipfb", "device code that no rule covers, for gfx906, gfx1030"),
    ]


def test_feature_settings_share_a_folder_but_strict_targets_have_their_own(tmp_path: Path) -> None:
    for name in ("gfx90a-xnack+", "gfx90a-xnack-", "gfx90a", "gfx1250", "gfx1250-strict"):
        path = tmp_path / f"tree/lib/rocblas/library/Kernels_{name}.hsaco"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    kernels = "lib/rocblas/library/Kernels"
    assert files_of(split_of_split_tree(tmp_path / "tree", tmp_path / "out")) == [
        f"gfx1250-strict/{kernels}_gfx1250-strict.hsaco",
        f"gfx1250/{kernels}_gfx1250.hsaco",
        *(f"gfx90a/{kernels}_{name}.hsaco" for name in ("gfx90a-xnack+", "gfx90a-xnack-", "gfx90a")),
    ]
    kept = split_of_split_tree(tmp_path / "tree", tmp_path / "kept", keep=(parse_target_id("gfx1250"),))
    assert files_of(kept) == [f"gfx1250/{kernels}_gfx1250.hsaco"]


def test_a_kernel_library_for_one_target_is_moved_as_a_whole(tmp_path: Path) -> None:
    path = "lib/libMIOpenCKGroupedConv_gfx906.so"
    fat = library(tmp_path / "tree", "gfx906", path=path)
    output = split_of_split_tree(tmp_path / "tree", tmp_path / "out")
    assert files_of(output) == [f"gfx906/{path}"]
    assert (output / "gfx906" / path).read_bytes() == fat.read_bytes()


MANY = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tree and what it was split into."""
    folder = tmp_path_factory.mktemp("damage")
    bundles = [make_bundle(0, "gfx906 gfx90a"), make_bundle(1, "gfx906")]
    build_fat_library(folder / "tree/libx.so", bundles)
    split_tree(folder / "tree", folder / "out", SplitOrder(choice=SplitChoice()))
    return folder


@MANY
@given(st.data())
def test_a_damaged_library_is_split_or_refused(trees: Path, data: st.DataObject) -> None:
    work = trees / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(trees / "tree", work / "tree")
    (work / "tree/libx.so").write_bytes(data.draw(damaged([(trees / "tree/libx.so").read_bytes()])))
    with suppress(RocwheelError):
        split_tree(work / "tree", work / "made", SplitOrder(choice=SplitChoice()))
        assert (work / "made/host/libx.so").exists()
        return
    assert [path.name for path in work.iterdir()] == ["tree"]


@MANY
@given(st.data())
def test_damaged_host_files_and_archives_are_joined_or_refused(trees: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(["host/libx.so", "gfx906/.kpack/libx.so_gfx906.kpack"]))
    work = trees / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(trees / "out", work / "out")
    (work / "out" / path).write_bytes(data.draw(damaged([(trees / "out" / path).read_bytes()])))
    with suppress(RocwheelError):
        join_tree(work / "out/host", [work / "out/gfx906", work / "out/gfx90a"], work / "made")
        return
    assert [path.name for path in work.iterdir()] == ["out"]
