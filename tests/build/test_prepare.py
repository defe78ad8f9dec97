"""Tests of `rocwheel.build.prepare`."""

from __future__ import annotations

import json
import random
import zipfile
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.reading import FileRange
from tests.support.artifacts import artifact, build_packages, run_on_artifacts
from tests.support.fat_libraries import build_fat_library
from tests.support.kpack_files import by_hand, make_kpack, toc
from tests.support.kpack_reader import Archive, load_unit, units_of
from tests.support.similar_code import bundle_for, code_for

if TYPE_CHECKING:
    from pathlib import Path


ARCHIVE = ".kpack/blas_lib_gfx906.kpack"
MEMBER = f"_rocm_sdk_libraries/{ARCHIVE}"
CODE = b"code of a kernel" * 4096
NOISE = random.Random(1).randbytes(2 << 20)


def put_archive(folder: Path, code: bytes, *, scheme: Scheme) -> bytes:
    archive = make_kpack(
        {("lib/libx.so", 0, "gfx906|gfx906:xnack-"): code, ("lib/libx.so", 1, "gfx906"): b"x"}, scheme=scheme
    )
    artifact(folder / "in", "blas_lib_gfx906", {ARCHIVE: archive})
    artifact(folder / "in", "blas_lib_generic", {"lib/libx.so": b"text"})
    return archive


def built(folder: Path, *options: str) -> zipfile.ZipFile:
    dist, _ = build_packages(folder, "--rocm", "7.0", *options)
    [wheel] = dist.glob("rocm_sdk_device_gfx906-*.whl")
    return zipfile.ZipFile(wheel)


@pytest.mark.parametrize("how", ["compress", "trim"])
def test_an_uncompressed_archive_is_compressed_and_keeps_its_code(tmp_path: Path, how: str) -> None:
    put_archive(tmp_path, CODE, scheme=Scheme.NONE)
    data = built(tmp_path, "--device-code", how).read(MEMBER)
    (tmp_path / "x.kpack").write_bytes(data)
    archive = Archive(tmp_path / "x.kpack")
    assert len(data) < 1000
    assert archive.kernel("lib/libx.so#0", "gfx906") == CODE
    assert archive.kernel("lib/libx.so#0", "gfx906:xnack-") == CODE
    assert archive.kernel("lib/libx.so#1", "gfx906") == b"x"


def test_code_without_a_key_is_left_out_with_a_warning(tmp_path: Path) -> None:
    blobs = [{"offset": 16, "size": 4}, {"offset": 20, "size": 4}]
    table = {"lib/libx.so#0": {"gfx906": {"type": "hsaco", "ordinal": 1, "original_size": 4}}}
    artifact(tmp_path / "in", "blas_lib_gfx906", {ARCHIVE: by_hand(toc(blobs=blobs, toc=table))})
    artifact(tmp_path / "in", "blas_lib_generic", {"lib/libx.so": b"text"})
    _, told = build_packages(tmp_path, "--rocm", "7.0", "--device-code", "compress")
    assert f"warning: blas_lib_gfx906: {ARCHIVE}: left out 1 code object that no key refers to" in told


def test_a_compressed_archive_is_unchanged(tmp_path: Path) -> None:
    archive = put_archive(tmp_path, CODE, scheme=Scheme.ZSTD)
    assert built(tmp_path, "--device-code", "compress").read(MEMBER) == archive


def test_archives_are_unchanged_in_a_build_that_keeps_device_code(tmp_path: Path) -> None:
    archive = put_archive(tmp_path, CODE, scheme=Scheme.NONE)
    assert built(tmp_path).read(MEMBER) == archive


@pytest.mark.parametrize("size", [2 << 20, 100_000])
def test_incompressible_code_is_stored(tmp_path: Path, size: int) -> None:
    put_archive(tmp_path, NOISE[:size], scheme=Scheme.NONE)
    member = built(tmp_path, "--device-code", "compress").getinfo(MEMBER)
    assert member.compress_type == zipfile.ZIP_STORED
    assert size < member.file_size < size + 1000


@pytest.mark.parametrize("scheme", Scheme)
def test_an_archive_is_not_deflated_even_if_its_table_is_compressible(tmp_path: Path, scheme: Scheme) -> None:
    put_archive(tmp_path, NOISE[:5000], scheme=scheme)
    member = built(tmp_path, "--device-code", "compress").getinfo(MEMBER)
    assert (member.compress_type, member.compress_size) == (zipfile.ZIP_STORED, member.file_size)


def test_the_bytes_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    put_archive(tmp_path, CODE, scheme=Scheme.NONE)
    one = built(tmp_path, "--device-code", "compress", "--jobs", "1").read(MEMBER)
    assert built(tmp_path, "--device-code", "compress", "--jobs", "3").read(MEMBER) == one


def test_all_damaged_archives_are_reported_and_nothing_is_written(tmp_path: Path) -> None:
    put_archive(tmp_path, CODE, scheme=Scheme.NONE)
    for name in ("one", "two"):
        artifact(tmp_path / "in", f"{name}_lib_gfx906", {f".kpack/{name}_gfx906.kpack": b"KPAK" + bytes(96)})
    done = run_on_artifacts(
        "build", tmp_path, "--rocm", "7.0", "--device-code", "compress", "--dest-dir", str(tmp_path / "out")
    )
    assert done.returncode == 2
    assert "one_lib_gfx906: .kpack/one_gfx906.kpack" in done.stderr
    assert "two_lib_gfx906: .kpack/two_gfx906.kpack" in done.stderr
    assert not (tmp_path / "out").exists()


LIBRARY = "lib/librocblas.so.5"
TENSILE = "lib/rocblas/library"


def put_library(folder: Path) -> None:
    files = {
        f"{TENSILE}/TensileLibrary_lazy_gfx1030.dat": msgspec.msgpack.encode(["gfx1030"]),
        f"{TENSILE}/Kernels.so-000-gfx1030.hsaco": bundle_for("gfx1030"),
        "share/miopen/db/gfx1030_36.kdb": b"database",
    }
    stage = artifact(folder / "in", "blas_lib_generic", files)
    build_fat_library(stage / LIBRARY, [bundle_for("gfx1030", "gfx1034"), bundle_for("gfx1030", "gfx1034")])


def unpack(dist: Path, site: Path, *packages: str) -> Path:
    for name in packages:
        [wheel] = dist.glob(f"{name}-*.whl")
        zipfile.ZipFile(wheel).extractall(site)
    return site / "_rocm_sdk_libraries"


@pytest.mark.slow
def test_split_packages_are_built_for_retargeted_gpus(tmp_path: Path) -> None:
    put_library(tmp_path)
    dist, told = build_packages(tmp_path, "--split-device", "--retarget", "gfx1030=gfx1031")
    root = unpack(dist, tmp_path / "site", "rocm_sdk_libraries", "rocm_sdk_device_gfx1031")
    for unit in units_of(root / LIBRARY):
        for old in (True, False):
            assert load_unit(root / LIBRARY, unit, ["gfx1031", "gfx10-3-generic"], old=old) == code_for("gfx1031")
    assert sorted(path.name for path in (root / TENSILE).iterdir()) == [
        "Kernels.so-000-gfx1031.hsaco",
        "TensileLibrary_lazy_gfx1031.dat",
    ]
    assert "share/miopen/db: 1 file: offers no code" not in told
    found = "can't be retargeted: not offered to gfx1031: MIOpen looks up kernels"
    assert f"share/miopen/db/gfx1030_36.kdb: {found}" in told


@pytest.mark.slow
def test_complete_libraries_are_built_for_retargeted_gpus(tmp_path: Path) -> None:
    stage = artifact(
        tmp_path / "in", "blas_lib_generic", {f"{TENSILE}/Kernels.so-000-gfx1030.hsaco": bundle_for("gfx1030")}
    )
    soname = "-Wl,-soname,libhipblas.so.3"
    build_fat_library(stage / "lib/libhipblas.so.3", [bundle_for("gfx1030", "gfx1034")], options=[soname])
    options = ("--split-device=overlay", "--retarget", "gfx1030=gfx1031", "--device-code", "compress", "--rocm", "6.4")
    dist, _ = build_packages(tmp_path, *options)
    root = unpack(dist, tmp_path / "site", "rocm_sdk_libraries", "rocm_sdk_device_gfx1031")
    with FileRange.whole(root / "lib/libhipblas.so.3.gfx1031").view() as data:
        assert [str(target) for target in device_targets(data, name="libhipblas")] == ["gfx1031"]
    assert [path.name for path in (root / TENSILE).iterdir()] == ["Kernels.so-000-gfx1031.hsaco"]


@pytest.mark.slow
def test_the_selector_includes_the_packages_for_retargeted_gpus(tmp_path: Path) -> None:
    put_library(tmp_path)
    options = ("--split-device", "--retarget", "gfx1030=gfx1031,gfx1032", "--selector", "wheel", "--json")
    done = run_on_artifacts("plan", tmp_path, *options)
    plan = json.loads(done.stdout)
    [selector] = [row for row in plan["wheels"] if row["package"] == "selector"]
    requires = selector["metadata"]["requires"]
    assert plan["targets"] == ["gfx1030", "gfx1031", "gfx1032", "gfx1034"]
    assert "rocm-sdk-device-gfx1031==7.0; extra == 'device-gfx1031'" in requires
    assert "rocm-sdk-device-gfx1032==7.0; extra == 'device-gfx1032'" in requires


@pytest.mark.slow
def test_libraries_that_are_not_split_contain_code_for_retargeted_gpus(tmp_path: Path) -> None:
    put_library(tmp_path)
    options = (
        "--rocm",
        "7.0",
        "--device-code",
        "trim",
        "--retarget",
        "gfx1030=gfx1031",
        "--retarget",
        "gfx1034=gfx1035",
    )
    dist, _ = build_packages(tmp_path, *options)
    library = unpack(dist, tmp_path / "site", "rocm_sdk_libraries") / LIBRARY
    found = device_targets(memoryview(library.read_bytes()), name=LIBRARY)
    assert [str(target) for target in found] == ["gfx1030", "gfx1031", "gfx1034", "gfx1035"]
    assert (library.parent / "rocblas/library/TensileLibrary_lazy_gfx1031.dat").exists()


@pytest.mark.slow
def test_the_warning_about_a_library_without_room_suggests_compression(tmp_path: Path) -> None:
    put_library(tmp_path)
    _, told = build_packages(tmp_path, "--retarget", "gfx1030=extended")
    assert f"warning: blas_lib_generic: {LIBRARY}: can't be retargeted: needs " in told
    assert "(--device-code compress)" in told
    files = f"{LIBRARY}, share/miopen/db/gfx1030_36.kdb"
    gaps = f"leaves gfx1031 without code that its source target has, in 2 files: {files}"
    assert f"warning: --retarget: {gaps}" in told


def test_a_retarget_pair_that_no_rule_allows_is_refused(tmp_path: Path) -> None:
    put_library(tmp_path)
    done = run_on_artifacts("plan", tmp_path, "--retarget", "gfx1030=gfx90a")
    assert done.returncode == 2
    assert "--retarget: no rule allows code for gfx1030 on gfx90a" in done.stderr
    assert "first run `rocwheel device retarget --force FROM=TO` on the tree" in done.stderr
    assert "Use --force" not in done.stderr
