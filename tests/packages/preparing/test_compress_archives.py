"""Builds with compressed device code: kpack archives that somebody wrote without compression are compressed, too."""

from __future__ import annotations

import random
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.kpack.toc import Scheme
from tests.support.artifacts import artifact, build_packages, run_on_artifacts
from tests.support.kpack_files import by_hand, make_kpack, toc
from tests.support.kpack_reader import Archive

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
def test_a_plain_archive_is_compressed_and_keeps_its_code(tmp_path: Path, how: str) -> None:
    put_archive(tmp_path, CODE, scheme=Scheme.NONE)
    data = built(tmp_path, "--device-code", how).read(MEMBER)
    (tmp_path / "x.kpack").write_bytes(data)
    archive = Archive(tmp_path / "x.kpack")
    assert len(data) < 1000
    assert archive.kernel("lib/libx.so#0", "gfx906") == CODE
    assert archive.kernel("lib/libx.so#0", "gfx906:xnack-") == CODE
    assert archive.kernel("lib/libx.so#1", "gfx906") == b"x"


def test_code_that_no_key_names_is_left_out_and_told(tmp_path: Path) -> None:
    blobs = [{"offset": 16, "size": 4}, {"offset": 20, "size": 4}]
    table = {"lib/libx.so#0": {"gfx906": {"type": "hsaco", "ordinal": 1, "original_size": 4}}}
    artifact(tmp_path / "in", "blas_lib_gfx906", {ARCHIVE: by_hand(toc(blobs=blobs, toc=table))})
    artifact(tmp_path / "in", "blas_lib_generic", {"lib/libx.so": b"text"})
    _, told = build_packages(tmp_path, "--rocm", "7.0", "--device-code", "compress")
    assert f"warning: blas_lib_gfx906: {ARCHIVE}: left out 1 code object that no key names" in told


def test_a_compressed_archive_stays_byte_for_byte(tmp_path: Path) -> None:
    archive = put_archive(tmp_path, CODE, scheme=Scheme.ZSTD)
    assert built(tmp_path, "--device-code", "compress").read(MEMBER) == archive


def test_a_build_that_keeps_device_code_leaves_archives_alone(tmp_path: Path) -> None:
    archive = put_archive(tmp_path, CODE, scheme=Scheme.NONE)
    assert built(tmp_path).read(MEMBER) == archive


@pytest.mark.parametrize("size", [2 << 20, 100_000])
def test_what_is_compressed_already_is_stored(tmp_path: Path, size: int) -> None:
    put_archive(tmp_path, NOISE[:size], scheme=Scheme.NONE)
    member = built(tmp_path, "--device-code", "compress").getinfo(MEMBER)
    assert member.compress_type == zipfile.ZIP_STORED
    assert size < member.file_size < size + 1000


@pytest.mark.parametrize("scheme", Scheme)
def test_an_archive_is_not_deflated_again_even_where_its_table_could_be(tmp_path: Path, scheme: Scheme) -> None:
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
