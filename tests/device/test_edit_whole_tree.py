"""Tests of editing trees of files: pruning, and compressing."""

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
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError
from rocwheel.core.reading import load
from rocwheel.device.edit_bundles import Prune, bundle_parts
from rocwheel.device.edit_tree import EditableCode, PruneAction, TreeEdit, edit_tree, file_action, link_action
from tests.support.bundles import bundle_of
from tests.support.kpack_files import make_kpack
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel


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


def test_a_pipe_in_the_folder_is_named(tmp_path: Path) -> None:
    source = tmp_path / "sdk"
    source.mkdir()
    os.mkfifo(source / "pipe")
    message = f"{source / 'pipe'}: is not a regular file; expected only files, folders and links. Remove it."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        edit_tree(source, tmp_path / "out", Prune((parse_target_id("gfx906"),)), Storage())
    assert not (tmp_path / "out").exists()


def test_copied_and_edited_files_give_no_rights_away(tree: Path, tmp_path: Path) -> None:
    places = ("lib/librocblas.so.5", "lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat")
    for place in places:
        (tree / place).chmod(0o6777)
    prune(tree, tmp_path / "out", "gfx1030")
    assert [(tmp_path / "out" / place).stat().st_mode & 0o7777 for place in places] == [0o755, 0o755]


def test_code_and_files_for_other_targets_are_left_out(tree: Path, tmp_path: Path) -> None:
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


def test_folder_that_cannot_be_listed_is_named_and_nothing_is_made(
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


def test_what_cannot_be_read_is_not_blamed_on_the_output(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tree / "lib/librocblas.so"

    def refuse(path: Path) -> Path:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "readlink", refuse)
    with pytest.raises(InputError, match="^" + re.escape(f"{link}: can't be read (Permission denied). Check its")):
        prune(tree, tmp_path / "out", "gfx1030")


@pytest.mark.parametrize("name", ["Kernels.co", "kernels.hipfb"])
def test_files_of_bundles_that_are_all_for_other_targets_are_left_out(tmp_path: Path, name: str) -> None:
    source, output = tmp_path / "sdk", tmp_path / "out"
    source.mkdir()
    (source / name).write_bytes(bundle_of("gfx906") + bytes(4092) + bundle_of("gfx90a:xnack+"))
    (source / "mixed.co").write_bytes(bundle_of("gfx906", "gfx1030"))
    assert prune(source, output, "gfx1030").dropped == (name,)
    assert [path.name for path in output.iterdir()] == ["mixed.co"]
    message = f"{source / name}: bundle 0 at offset 0x0: has no code for any target to keep; "
    with pytest.raises(InputError, match=re.escape(message)):
        prune(source, tmp_path / "more", "gfx1030", "gfx90a")


def test_folders_above_the_one_to_prune_tell_no_target(tmp_path: Path) -> None:
    source = tmp_path / "gfx906/sdk"
    source.mkdir(parents=True)
    (source / "TensileLibrary.dat").write_text("for all")
    assert prune(source, tmp_path / "out", "gfx1030").dropped == ()
    assert (tmp_path / "out/TensileLibrary.dat").exists()


def test_files_that_are_for_all_targets_stay_whatever_their_names(tree: Path, tmp_path: Path) -> None:
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
def test_of_a_library_named_for_other_targets_the_code_decides(tmp_path: Path, target: str, *, is_kept: bool) -> None:
    source, output = tmp_path / "sdk", tmp_path / "out"
    source.mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", source / "libkernels_gfx906.so")
    report = prune(source, output, target)
    assert report.dropped == (() if is_kept else ("libkernels_gfx906.so",))
    assert (output / "libkernels_gfx906.so").exists() == is_kept


def test_device_code_that_is_not_linked_yet_stays_with_a_warning(
    tree: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    shutil.copy(FIXTURES / "v23/saxpy.rdc.o", tree / "saxpy.o")
    prune(tree, tmp_path / "out", "gfx1030")
    assert (tmp_path / "out/saxpy.o").read_bytes() == (tree / "saxpy.o").read_bytes()
    assert caplog.messages == [f"{tree}/saxpy.o: device code that has yet to be linked, which stays as it is"]


@pytest.mark.parametrize("name", ["inner", "lib/inner", "../sdk/inner"])
def test_output_in_the_folder_itself_is_refused(tree: Path, name: str) -> None:
    message = f"{tree / name}: a folder in {tree}, which is copied; expected one outside of it"
    with pytest.raises(InputError, match=re.escape(message)):
        prune(tree, tree / name, "gfx1030")
    assert not (tree / name).exists()


def test_output_that_exists_is_refused(tree: Path, tmp_path: Path) -> None:
    message = f"{tmp_path}: already exists; expected a new or empty folder. Remove it first."
    with pytest.raises(InputError, match=re.escape(message)):
        prune(tree, tmp_path, "gfx1030")


def test_nothing_is_left_behind_when_a_library_has_no_such_code(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no code for any target to keep"):
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
def test_fate_of_a_file_follows_from_its_code_and_name(place: str, code: EditableCode, action: PruneAction) -> None:
    assert file_action(Path(place), code, (KEPT,)) is action


def test_link_named_for_another_target_is_dropped() -> None:
    assert link_action(Path("lib/library/Kernels.so-000-gfx906.hsaco"), (KEPT,)) is PruneAction.DROPPED
    assert link_action(Path("lib/library/Kernels.so-000-gfx1030.hsaco"), (KEPT,)) is PruneAction.COPIED


def test_a_folder_is_compressed_and_wheels_in_it_are_named(tree: Path, tmp_path: Path) -> None:
    kernels = {("lib/x.so", 0, "gfx906"): b"code " * 999}
    (tree / "x_gfx906.kpack").write_bytes(make_kpack(kernels, scheme=Scheme.NONE))
    wheel = make_wheel(tree, "demo", {"demo/a.so": FIXTURES / "v22/libtwo.plain.so"})
    report = edit_tree(tree, tmp_path / "out", None, Storage(compress=True))
    assert [(file.path, file.changed) for file in report.edited] == [
        (str(tree / "lib/librocblas.so.5"), 2),
        (str(tree / "x_gfx906.kpack"), 1),
    ]
    assert (tmp_path / "out/x_gfx906.kpack").read_bytes() == make_kpack(kernels)
    assert report.warnings == (f"{wheel}: is a wheel, which stays as it is: give it by itself",)
    assert (report.dropped, report.copied) == ((), 8)
    assert (tmp_path / "out/lib/librocblas.so").readlink() == Path("librocblas.so.5")


def test_files_that_stay_as_they_are_count_as_copied(tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    (tmp_path / "sdk/x_gfx906.kpack").write_bytes(make_kpack({("lib/a.so", 0, "gfx906"): b"code" * 99}))
    report = edit_tree(tmp_path / "sdk", tmp_path / "out", None, Storage(compress=True))
    assert (report.edited, report.copied) == ((), 1)
