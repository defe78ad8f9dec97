"""Tests of `rocwheel.device.edit_tree`."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

import pytest

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import load
from rocwheel.device.edit_bundles import Prune, bundle_parts
from rocwheel.device.edit_file import RewriteOrder
from rocwheel.device.edit_tree import (
    EditableCode,
    PruneAction,
    TreeEdit,
    edit_tree,
    file_action,
    link_action,
    refuse_wheels,
)
from rocwheel.device.edit_wheel import rewrite_wheel
from rocwheel.wheels.sdist import SourceDate
from tests.support.bundles import bundle_of
from tests.support.kpack_files import make_kpack, split_two
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

PROBLEM = "has no code for any of the targets to keep; expected code for one of gfx1100."


@pytest.fixture
def split_tree(tmp_path: Path) -> Path:
    """Make a folder with a split library, whose archives for gfx906, gfx90a and gfx1030 are in it."""
    split_two(tmp_path / "sdk")
    return tmp_path / "sdk"


def keep(*targets: str, allow_empty: bool = False) -> Prune:
    return Prune(tuple(map(parse_target_id, targets)), allow_empty)


def prune_split(source: Path, edit: Prune) -> TreeEdit:
    return edit_tree(source, source.parent / "out", edit, Storage())


def test_a_split_library_without_code_to_keep_is_refused(split_tree: Path) -> None:
    with pytest.raises(InputError, match=re.escape(PROBLEM)) as caught:
        prune_split(split_tree, keep("gfx1100"))
    assert str(caught.value).startswith(f"{split_tree / 'lib/libtwo.so'}: offset 0x")
    assert str(caught.value).endswith(" It has code for gfx906, gfx906:xnack+, gfx906:xnack-, gfx90a:xnack+, gfx1030.")
    assert not (split_tree.parent / "out").exists()


def test_a_split_library_can_lose_its_code_on_request(split_tree: Path) -> None:
    report = prune_split(split_tree, keep("gfx1100", allow_empty=True))
    assert report.dropped == tuple(f".kpack/two_{target}.kpack" for target in ("gfx1030", "gfx906", "gfx90a"))


def test_only_the_archive_of_the_selected_target_is_kept(split_tree: Path) -> None:
    prune_split(split_tree, keep("gfx1030"))
    assert [path.name for path in (split_tree.parent / "out/.kpack").iterdir()] == ["two_gfx1030.kpack"]


def test_every_library_is_checked(split_tree: Path) -> None:
    split_two(split_tree / "other")
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", split_tree / "lib/libfat.so")
    with pytest.raises(ProblemsError) as caught:
        prune_split(split_tree, keep("gfx1100"))
    assert [str(problem).split(": ")[0] for problem in caught.value.problems] == [
        str(split_tree / "lib/libtwo.so"),
        str(split_tree / "other/lib/libtwo.so"),
    ]


def test_a_library_is_refused_if_one_unit_has_no_code_to_keep(tmp_path: Path) -> None:
    split_two(tmp_path / "sdk", lost=[(1, "gfx1030")])
    with pytest.raises(InputError, match=r"no code for any of the targets to keep; expected code for one of gfx1030\."):
        prune_split(tmp_path / "sdk", keep("gfx1030"))


def test_archives_outside_the_folder_are_ignored(split_tree: Path) -> None:
    report = edit_tree(split_tree / "lib", split_tree.parent / "out", keep("gfx1100"), Storage())
    assert (report.dropped, report.copied) == ((), 1)


def test_a_split_library_without_code_to_keep_is_refused_even_beside_a_fat_library(split_tree: Path) -> None:
    places = ("lib/libtwo.so", ".kpack/two_gfx906.kpack")
    files = {f"demo/{place}": (split_tree / place).read_bytes() for place in places}
    fat = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    wheel = make_wheel(split_tree.parent / "in", "demo", {**files, "demo/fat.so": fat})
    order = RewriteOrder(edit=keep("gfx1030"), storage=Storage(), trim=False, jobs=1)
    with pytest.raises(InputError, match=re.escape("!demo/lib/libtwo.so: offset 0x")):
        rewrite_wheel(wheel, split_tree.parent / wheel.name, order, SourceDate())
    assert not (split_tree.parent / wheel.name).exists()


def test_a_host_wheel_is_distinguished_from_a_wheel_without_code(split_tree: Path) -> None:
    wheel = make_wheel(split_tree.parent / "in", "demo", {"demo/lib/libtwo.so": split_tree / "lib/libtwo.so"})
    order = RewriteOrder(edit=keep("gfx1030"), storage=Storage(), trim=False, jobs=1)
    message = f"{wheel}: is a host wheel, whose device code is in device wheels; expected a wheel with device code."
    with pytest.raises(InputError, match=re.escape(f"{message} Specify the device wheels, one at a time.")):
        rewrite_wheel(wheel, split_tree.parent / wheel.name, order, SourceDate())


KEEP = (TargetId("gfx906"),)
REFUSED = (
    "is a wheel with device code, inside a folder; expected unpacked files. "
    "Prune the wheel separately: rocwheel device prune WHEEL --targets TARGETS -o FOLDER"
)


def refused(*paths: Path) -> list[str]:
    return [str(error) for error in refuse_wheels(paths, KEEP)]


@pytest.mark.parametrize(
    ("name", "content"),
    [("demo/a.hipfb", bundle_of("gfx906")), ("demo/k_gfx942.dat", b"x")],
    ids=["device code", "a kernel file for another target"],
)
def test_a_wheel_that_needs_pruning_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    wheel = make_wheel(tmp_path, "demo", {name: content})
    assert refused(wheel) == [f"{wheel}: {REFUSED}"]


@pytest.mark.parametrize("name", ["demo/a.py", "demo/k_gfx906.dat"])
def test_a_wheel_with_nothing_to_prune_is_accepted(tmp_path: Path, name: str) -> None:
    assert refused(make_wheel(tmp_path, "demo", {name: b"pass"})) == []


def test_all_wheels_are_reported_even_if_one_is_damaged(tmp_path: Path) -> None:
    first, second, damaged = (
        make_wheel(tmp_path, name, {f"{name}/a.hipfb": bundle_of("gfx906")}) for name in ("first", "second", "damaged")
    )
    damaged.write_bytes(damaged.read_bytes()[:-30])
    found = refused(first, damaged, second)
    assert [text.partition(": ")[0] for text in found] == [str(first), str(damaged), str(second)]
    assert REFUSED not in found[1]


def test_links_and_files_that_only_look_like_wheels_are_ignored(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.hipfb": bundle_of("gfx906")})
    link, text, other = tmp_path / "link.whl", tmp_path / "text.whl", tmp_path / "demo.zip"
    link.symlink_to(wheel)
    text.write_text("no archive\n")
    wheel.rename(other)
    assert refused(link, text, other) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a folder as libraries with kernel files install it."""
    source = tmp_path / "sdk"
    library = source / "lib/rocblas/library"
    library.mkdir(parents=True)
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", source / "lib/librocblas.so.5")
    (source / "lib/librocblas.so").symlink_to("librocblas.so.5")
    data = memoryview((FIXTURES / "v22/saxpy.hipfb").read_bytes())
    parts = bundle_parts(data, next(iter_bundles(data, name="x")))
    for part, name in ((parts[1], "a.co"), (parts[3], "b.co"), (parts[3], "Kernels.so-000-gfx906.hsaco")):
        (library / name).write_bytes(load(part.payload[0]))
    (library / "TensileLibrary_lazy_gfx1030.dat").write_text("for gfx1030")
    (library / "TensileLibrary_lazy_gfx906.dat").write_text("for gfx906")
    (library / "link").symlink_to("b.co")
    return source


def prune(source: Path, output: Path, *keep: str) -> TreeEdit:
    return edit_tree(source, output, Prune(tuple(map(parse_target_id, keep))), Storage())


def test_a_pipe_in_the_folder_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "sdk"
    source.mkdir()
    os.mkfifo(source / "pipe")
    message = f"{source / 'pipe'}: isn't a regular file; expected only files, folders, and links. Remove it."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        edit_tree(source, tmp_path / "out", Prune((parse_target_id("gfx906"),)), Storage())
    assert not (tmp_path / "out").exists()


def test_copied_and_edited_files_lose_setuid_and_write_permission_for_others(tree: Path, tmp_path: Path) -> None:
    places = ("lib/librocblas.so.5", "lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat")
    for place in places:
        (tree / place).chmod(0o6777)
    prune(tree, tmp_path / "out", "gfx1030")
    assert [(tmp_path / "out" / place).stat().st_mode & 0o7777 for place in places] == [0o755, 0o755]


def test_code_and_files_for_other_targets_are_removed(tree: Path, tmp_path: Path) -> None:
    report = prune(tree, tmp_path / "out", "gfx1030")
    assert report.dropped == (
        "lib/rocblas/library/Kernels.so-000-gfx906.hsaco",
        "lib/rocblas/library/TensileLibrary_lazy_gfx906.dat",
        "lib/rocblas/library/b.co",
        "lib/rocblas/library/link",
    )
    files = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if not p.is_dir())
    assert files == [
        "lib/librocblas.so",
        "lib/librocblas.so.5",
        "lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat",
        "lib/rocblas/library/a.co",
    ]
    pruned = memoryview((tmp_path / "out/lib/librocblas.so.5").read_bytes())
    assert [str(target) for target in device_targets(pruned, name="x")] == ["gfx1030"]
    assert (len(report.edited), report.copied) == (1, 3)


def test_a_folder_that_cannot_be_listed_is_reported_and_nothing_is_written(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, scan = tree / "lib/rocblas", os.scandir

    def scan_or_refuse(path: object) -> object:
        if str(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", scan_or_refuse)
    message = f"{closed}: can't be listed (Permission denied). Check its permissions."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        prune(tree, tmp_path / "out", "gfx1030")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sdk"]


def test_an_unreadable_symlink_is_not_blamed_on_the_output(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tree / "lib/librocblas.so"

    def refuse(path: Path) -> Path:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "readlink", refuse)
    with pytest.raises(InputError, match="^" + re.escape(f"{link}: can't be read (Permission denied). Check its")):
        prune(tree, tmp_path / "out", "gfx1030")


@pytest.mark.parametrize("name", ["Kernels.co", "kernels.hipfb"])
def test_bundle_files_that_are_only_for_other_targets_are_removed(tmp_path: Path, name: str) -> None:
    source, output = tmp_path / "sdk", tmp_path / "out"
    source.mkdir()
    (source / name).write_bytes(bundle_of("gfx906") + bytes(4092) + bundle_of("gfx90a:xnack+"))
    (source / "mixed.co").write_bytes(bundle_of("gfx906", "gfx1030"))
    assert prune(source, output, "gfx1030").dropped == (name,)
    assert [path.name for path in output.iterdir()] == ["mixed.co"]
    message = f"{source / name}: bundle 0 at offset 0x0: has no code for any of the targets to keep; "
    with pytest.raises(InputError, match=re.escape(message)):
        prune(source, tmp_path / "more", "gfx1030", "gfx90a")


def test_target_names_in_parent_folders_are_ignored(tmp_path: Path) -> None:
    source = tmp_path / "gfx906/sdk"
    source.mkdir(parents=True)
    (source / "TensileLibrary.dat").write_text("for all")
    assert prune(source, tmp_path / "out", "gfx1030").dropped == ()
    assert (tmp_path / "out/TensileLibrary.dat").exists()


def test_files_for_all_targets_are_kept_despite_target_names(tree: Path, tmp_path: Path) -> None:
    kept = ["include/ck/gfx906/wmma.hpp", "lib/cmake/rocblas/rocblas-gfx906.cmake", "share/doc/gfx906.txt"]
    dropped = ["share/miopen/db/gfx906_60.kdb", "share/miopen/db/gfx90660.fdb.txt", ".kpack/blas_lib_gfx906.kpack"]
    for name in [*kept, *dropped]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("text")
    (tree / "include/gfx906.hpp").symlink_to("ck/gfx906/wmma.hpp")
    report = prune(tree, tmp_path / "out", "gfx1030")
    assert [name for name in [*kept, "include/gfx906.hpp"] if not (tmp_path / "out" / name).is_file()] == []
    assert set(dropped) <= set(report.dropped)
    assert [name for name in dropped if (tmp_path / "out" / name).exists()] == []


@pytest.mark.parametrize(
    ("target", "is_kept"), [("gfx1030", True), ("gfx942", False)], ids=["code to keep", "code for others alone"]
)
def test_the_code_of_a_library_overrides_the_target_in_its_name(tmp_path: Path, target: str, *, is_kept: bool) -> None:
    source, output = tmp_path / "sdk", tmp_path / "out"
    source.mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", source / "libkernels_gfx906.so")
    report = prune(source, output, target)
    assert report.dropped == (() if is_kept else ("libkernels_gfx906.so",))
    assert (output / "libkernels_gfx906.so").exists() == is_kept


def test_unlinked_device_code_is_kept_with_a_warning(
    tree: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    shutil.copy(FIXTURES / "v23/saxpy.rdc.o", tree / "saxpy.o")
    prune(tree, tmp_path / "out", "gfx1030")
    assert (tmp_path / "out/saxpy.o").read_bytes() == (tree / "saxpy.o").read_bytes()
    assert caplog.messages == [f"{tree}/saxpy.o: device code that isn't linked yet, which is left unchanged"]


@pytest.mark.parametrize("name", ["inner", "lib/inner", "../sdk/inner"])
def test_an_output_inside_the_input_folder_is_refused(tree: Path, name: str) -> None:
    message = f"{tree / name}: is a folder in {tree}, which this command copies; expected a folder outside {tree}"
    with pytest.raises(InputError, match=re.escape(message)):
        prune(tree, tree / name, "gfx1030")
    assert not (tree / name).exists()


def test_an_existing_output_is_refused(tree: Path, tmp_path: Path) -> None:
    message = (
        f"{tmp_path}: already exists; expected a new or empty folder. Choose another folder, or remove this folder."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        prune(tree, tmp_path, "gfx1030")


def test_a_library_without_code_to_keep_leaves_no_output(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no code for any of the targets to keep"):
        prune(tree, tmp_path / "out", "gfx942")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sdk"]


KEPT, OTHER = parse_target_id("gfx1030"), parse_target_id("gfx906")


@pytest.mark.parametrize(
    ("place", "code", "action"),
    [
        ("lib/libx.so", EditableCode(), PruneAction.COPIED),
        ("lib/libx.so", EditableCode(targets=(OTHER,), has_bundles=True), PruneAction.EDITED),
        ("lib/gfx906/libx.so", EditableCode(targets=(OTHER,), has_bundles=True), PruneAction.DROPPED),
        ("lib/x.co", EditableCode(targets=(OTHER,), is_code_alone=True), PruneAction.DROPPED),
        ("lib/x.co", EditableCode(targets=(KEPT,), is_code_alone=True), PruneAction.COPIED),
        ("lib/x.hipfb", EditableCode(targets=(OTHER, KEPT), is_code_alone=True, has_bundles=True), PruneAction.EDITED),
        ("lib/library/TensileLibrary_gfx906.dat", EditableCode(), PruneAction.DROPPED),
        ("lib/library/TensileLibrary_gfx1030.dat", EditableCode(), PruneAction.COPIED),
        ("share/notes_gfx906.txt", EditableCode(), PruneAction.COPIED),
    ],
)
def test_file_action_depends_on_code_and_name(place: str, code: EditableCode, action: PruneAction) -> None:
    assert file_action(Path(place), code, (KEPT,)) is action


def test_a_link_named_for_another_target_is_dropped() -> None:
    assert link_action(Path("lib/library/Kernels.so-000-gfx906.hsaco"), (KEPT,)) is PruneAction.DROPPED
    assert link_action(Path("lib/library/Kernels.so-000-gfx1030.hsaco"), (KEPT,)) is PruneAction.COPIED


def test_a_folder_is_compressed_and_the_wheels_in_it_are_reported(tree: Path, tmp_path: Path) -> None:
    kernels = {("lib/x.so", 0, "gfx906"): b"code " * 999}
    (tree / "x_gfx906.kpack").write_bytes(make_kpack(kernels, scheme=Scheme.NONE))
    wheel = make_wheel(tree, "demo", {"demo/a.so": FIXTURES / "v22/libtwo.plain.so"})
    report = edit_tree(tree, tmp_path / "out", None, Storage(compress=True))
    assert [(file.path, file.changed) for file in report.edited] == [
        (str(tree / "lib/librocblas.so.5"), 2),
        (str(tree / "x_gfx906.kpack"), 1),
    ]
    assert (tmp_path / "out/x_gfx906.kpack").read_bytes() == make_kpack(kernels)
    assert report.warnings == (f"{wheel}: is a wheel and is left unchanged; to process it, specify the wheel itself",)
    assert (report.dropped, report.copied) == ((), 8)
    assert (tmp_path / "out/lib/librocblas.so").readlink() == Path("librocblas.so.5")


def test_unchanged_files_are_counted_as_copied(tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    (tmp_path / "sdk/x_gfx906.kpack").write_bytes(make_kpack({("lib/a.so", 0, "gfx906"): b"code" * 99}))
    report = edit_tree(tmp_path / "sdk", tmp_path / "out", None, Storage(compress=True))
    assert (report.edited, report.copied) == ((), 1)
