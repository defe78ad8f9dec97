"""Tests of `rocwheel.device.split.join_tree`."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.compressed import compress_bundle, decompress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import CodePlace
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import join_data
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.joining import JoinStorage
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.units import BundleUnit
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.kpack_files import make_kpack
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


pytestmark = pytest.mark.slow


def split(tmp_path: Path, bundles: Sequence[bytes], wrappers: Sequence[int] | None = None) -> Path:
    build_fat_library(tmp_path / "tree/lib/libx.so", bundles, wrappers)
    split_tree(tmp_path / "tree", tmp_path / "out", SplitOrder(choice=SplitChoice()))
    return tmp_path / "out"


def test_a_folder_of_wheels_is_not_a_host_folder(tmp_path: Path) -> None:
    make_wheel(tmp_path / "split", "demo", {"demo/__init__.py": b""})
    with pytest.raises(InputError, match=r"no library with code in archives. Specify the host wheel directly.$"):
        join_tree(tmp_path / "split", [], tmp_path / "fat")


def bundles_of(library: Path) -> list[bytes]:
    """Return the bundle that each wrapper points to, without what fills its page; compressed ones decompressed."""
    data = memoryview(library.read_bytes())
    fat = read_fat_binary(data, name=str(library))
    assert fat is not None
    by_start = {bundle.start: bundle for bundle in fat.iter_bundles(data)}
    found = []
    for wrapper in fat.wrappers:
        bundle = by_start[fat.start_of(wrapper)]
        content = fat.view(data)[bundle.start : bundle.stop]
        if bundle.compressed is not None:
            content, _ = decompress_bundle(content, bundle.compressed, place=CodePlace("test"))
        found.append(bytes(content))
    return found


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(("gfx906 gfx90a", "gfx906"), id="a unit lacks a target"),
        pytest.param(("gfx90a", "gfx90a:xnack- gfx90a:xnack+", "gfx90a:xnack+"), id="features"),
        pytest.param(("gfx90a:xnack- gfx90a", "gfx90a"), id="open code as the rest"),
        pytest.param(("gfx90a:xnack+", "gfx90a:sramecc+ gfx90a:sramecc-:xnack+"), id="two features"),
        pytest.param(("gfx1100 gfx11-generic gfx906", "gfx11-generic"), id="any order, generic code"),
        pytest.param(("gfx906", ""), id="a unit without code"),
    ],
)
def test_joining_restores_the_bundles_that_were_split(tmp_path: Path, targets: tuple[str, ...]) -> None:
    bundles = [make_bundle(unit, text) for unit, text in enumerate(targets)]
    output = split(tmp_path, bundles)
    join_tree(output / "host", [path for path in output.iterdir() if path.name != "host"], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == bundles
    assert [path.name for path in (tmp_path / "fat").iterdir()] == ["lib"]


@pytest.mark.parametrize("host", ["host-x86_64-unknown-linux", "host-x86_64-unknown-linux-gnu-"])
def test_the_host_entry_keeps_its_original_spelling(tmp_path: Path, host: str) -> None:
    bundles = [make_bundle(0, "gfx906", host=host)]
    output = split(tmp_path, bundles)
    join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == bundles


def test_code_from_another_compiler_for_the_same_kernels_is_refused(tmp_path: Path) -> None:
    """Two compilers made the same kernels of one source: all names agree, and the sizes of the code don't."""
    for name, fixture in (("one", "v19/libtwo.plain.so"), ("two", "v22/libtwo.ccob.so")):
        library = tmp_path / name / "lib/libtwo.so"
        library.parent.mkdir(parents=True)
        shutil.copy(FIXTURES / fixture, library)
        split_tree(tmp_path / name, tmp_path / f"{name}.split", SplitOrder(choice=SplitChoice()))
    message = (
        r"lib/libtwo.so: .*libtwo.so_gfx906.kpack: code objects with different sizes than before the split; "
        r"expected an archive from the same build. Use the folders that were created together with this file."
    )
    with pytest.raises(InputError, match=message):
        join_tree(tmp_path / "one.split/host", [tmp_path / "two.split/gfx906"], tmp_path / "fat")
    assert not (tmp_path / "fat").exists()


def test_wrappers_that_shared_a_bundle_share_it_again(tmp_path: Path) -> None:
    bundles = [make_bundle(0, "gfx906"), make_bundle(1, "gfx906")]
    output = split(tmp_path, bundles, wrappers=[1, 0, 1])
    join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == [bundles[1], bundles[0], bundles[1]]


def test_joining_some_targets_restores_bundles_with_only_those_targets(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906 gfx90a gfx1030"), make_bundle(1, "gfx906 gfx90a")])
    report = join_tree(output / "host", [output / "gfx90a"], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == [make_bundle(0, "gfx90a"), make_bundle(1, "gfx90a")]
    [library] = report.libraries
    assert (library.targets, library.missing) == (("gfx90a",), ("gfx906", "gfx1030"))


def test_bundles_that_do_not_fit_uncompressed_are_compressed_again(tmp_path: Path) -> None:
    plain = [make_bundle(unit, "gfx906 gfx90a gfx1030") for unit in range(3)]
    output = split(tmp_path, [compress_bundle([memoryview(raw)], version=2, level=9) for raw in plain])
    join_tree(output / "host", [output / name for name in ("gfx906", "gfx90a", "gfx1030")], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == plain


def test_a_library_without_its_archives_is_refused_and_the_archives_are_reported(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906")])
    with pytest.raises(
        InputError, match=r"lib/libx\.so: the archives with its code are missing; .*\.\./\.kpack/libx\.so_@GFXARCH@"
    ):
        join_tree(output / "host", [], tmp_path / "fat")
    assert not (tmp_path / "fat").exists()


def test_an_archive_from_another_build_is_refused(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906"), make_bundle(1, "gfx906")])
    archive = output / "gfx906/.kpack/libx.so_gfx906.kpack"
    archive.write_bytes(make_kpack({("lib/libx.so", 0, "gfx906"): b"other"}))
    with pytest.raises(InputError, match=r"libx\.so_gfx906\.kpack has no code for gfx906 in lib/libx\.so#1"):
        join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")


def test_folders_with_conflicting_files_are_refused(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906 gfx90a")])
    for target in ("gfx906", "gfx90a"):
        (output / target / "note").write_text(target)
        (output / target / "more").write_text(f"{target} more")
    with pytest.raises(
        ProblemsError, match=r"2 problems\n.*more: has different content; expected the same content as .*/gfx906/more\."
    ):
        join_tree(output / "host", [output / "gfx906", output / "gfx90a"], tmp_path / "fat")


def test_a_hard_link_that_conflicts_with_another_folder_is_refused(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906")])
    (output / "host/note").write_text("host")
    (output / "host/other").hardlink_to(output / "host/note")
    (output / "gfx906/other").write_text("gfx906")
    with pytest.raises(
        InputError, match=r"gfx906/other: has different content; expected the same content as .*/host/other\."
    ):
        join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")


def test_a_truncated_archive_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906")])
    archive = output / "gfx906/.kpack/libx.so_gfx906.kpack"
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"libx\.so_gfx906\.kpack"):
        join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")
    assert not (tmp_path / "fat").exists()


def test_an_archive_that_no_marker_refers_to_is_kept(tmp_path: Path) -> None:
    """It lists a unit of the library, for a target that comes back to none."""
    output = split(tmp_path, [make_bundle(0, "gfx906")])
    (output / "gfx906/other").mkdir()
    (output / "gfx906/other/x.kpack").write_bytes(make_kpack({("lib/libx.so", 0, "gfx1030"): b"\x7fELF code"}))
    report = join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")
    assert report.left_out == (".kpack/libx.so_gfx906.kpack",)
    assert (tmp_path / "fat/other/x.kpack").is_file()


def test_archives_with_similar_names_are_not_confused(tmp_path: Path) -> None:
    """Of ``libx.so``, and of ``libx.so_more``, whose archives the pattern of ``libx.so`` fits but for the target."""
    for name in ("libx.so", "libx.so_more"):
        build_fat_library(tmp_path / "tree/lib" / name, [make_bundle(0, "gfx906"), make_bundle(1, "gfx906")])
    split_tree(tmp_path / "tree", tmp_path / "out", SplitOrder(choice=SplitChoice()))
    report = join_tree(tmp_path / "out/host", [tmp_path / "out/gfx906"], tmp_path / "fat")
    assert (len(report.libraries), report.warnings) == (2, ())


def test_a_tree_split_by_another_tool_is_joined_by_the_targets_in_its_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles = [make_bundle(unit, "gfx906 gfx1030") for unit in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr(BundleUnit, "spellings", ())  # other tools keep no ids of entries
        output = split(tmp_path, bundles)
    join_tree(output / "host", [output / "gfx906", output / "gfx1030"], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == [make_bundle(unit, "gfx1030 gfx906") for unit in range(2)]


def test_a_joined_tree_splits_into_the_same_folders(tmp_path: Path) -> None:
    output = split(tmp_path, [make_bundle(0, "gfx906 gfx90a"), make_bundle(1, "gfx906")])
    join_tree(output / "host", [output / "gfx906", output / "gfx90a"], tmp_path / "fat")
    split_tree(tmp_path / "fat", tmp_path / "again", SplitOrder(choice=SplitChoice()))
    files = sorted(path.relative_to(output) for path in output.rglob("*") if path.is_file())
    assert (
        sorted(path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*") if path.is_file())
        == files
    )
    for path in files:
        assert (tmp_path / "again" / path).read_bytes() == (output / path).read_bytes(), path


@pytest.mark.parametrize("name", ["v18/libtwo.rdcccob.so", "v22/libtwo.ccob.so", "v22/libtwo.rdc.so"])
def test_splitting_and_joining_again_is_byte_stable(tmp_path: Path, name: str) -> None:
    (tmp_path / "fat0/lib").mkdir(parents=True)
    shutil.copy(FIXTURES / name, tmp_path / "fat0/lib/libtwo.so")
    for number in range(3):
        split_tree(tmp_path / f"fat{number}", tmp_path / f"out{number}", SplitOrder(choice=SplitChoice()))
        devices = [path for path in (tmp_path / f"out{number}").iterdir() if path.name != "host"]
        join_tree(tmp_path / f"out{number}/host", devices, tmp_path / f"fat{number + 1}")
    archives = [contents_of(tmp_path / f"out{number}", "*.kpack") for number in range(3)]
    assert len(archives[0]) > 1
    assert archives[0] == archives[1] == archives[2]
    assert contents_of(tmp_path / "out1") == contents_of(tmp_path / "out2")
    assert contents_of(tmp_path / "fat1") == contents_of(tmp_path / "fat2")


def contents_of(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob(pattern) if path.is_file()}


def are_compressed(tmp_path: Path, name: str) -> tuple[bool, ...]:
    """Return whether each bundle of a joined library is compressed."""
    data = memoryview((tmp_path / name / "lib/libx.so").read_bytes())
    fat = read_fat_binary(data, name="x")
    assert fat is not None
    return tuple(bundle.compressed is not None for bundle in fat.iter_bundles(data))


def test_each_bundle_is_compressed_or_plain_as_before_the_split(tmp_path: Path) -> None:
    plain = [make_bundle(unit, "gfx906 gfx90a") for unit in range(2)]
    output = split(tmp_path, [plain[0], compress_bundle([memoryview(plain[1])], version=2, level=3)])
    devices = [output / "gfx906", output / "gfx90a"]
    join_tree(output / "host", devices, tmp_path / "fat")
    assert are_compressed(tmp_path, "fat") == (False, True)
    join_tree(output / "host", devices, tmp_path / "small", JoinStorage(compress=True))
    assert are_compressed(tmp_path, "small") == (True, True)
    assert bundles_of(tmp_path / "small/lib/libx.so") == bundles_of(tmp_path / "fat/lib/libx.so") == plain


def test_bundles_compressed_at_a_high_level_use_a_level_at_which_they_fit(tmp_path: Path) -> None:
    """Text of many words takes a third less with level 19 than with level 3."""
    words = random.Random(1).choices([f"instruction{number} " for number in range(3000)], k=60_000)
    part = BundlePart("hipv4-amdgcn-amd-amdhsa--gfx906", (memoryview("".join(words).encode()),))
    bundle = memoryview(join_data(write_offload_bundle([BundlePart("host-x86_64-unknown-linux--"), part])))
    tight, loose = (compress_bundle([bundle], version=2, level=level) for level in (19, 3))
    assert len(loose) > len(tight) + 8192
    output = split(tmp_path, [tight])
    join_tree(output / "host", [output / "gfx906"], tmp_path / "fat")
    assert bundles_of(tmp_path / "fat/lib/libx.so") == [bytes(bundle)]
    size = (tmp_path / "fat/lib/libx.so").stat().st_size
    assert size <= (tmp_path / "tree/lib/libx.so").stat().st_size + 8192
