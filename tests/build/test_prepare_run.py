"""Tests of `rocwheel.build.prepare`."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.artifacts import artifact, build_packages, run_on_artifacts
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle, require_same_code
from tests.support.kpack_files import split_two

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


pytestmark = pytest.mark.slow

KERNELS = "lib/rocblas/library/TensileLibrary_gfx906.dat"


def fat(path: Path, *units: str) -> None:
    build_fat_library(path, [make_bundle(number, text) for number, text in enumerate(units)])


def codes(*units: str) -> list[dict[str, bytes]]:
    return [{target: code_of(number, target) for target in text.split()} for number, text in enumerate(units)]


def install(dist: Path, site: Path, packages: Sequence[str]) -> list[str]:
    """Unpack wheels, and return the files of the libraries' folder."""
    for name in packages:
        [wheel] = dist.glob(f"{name}-*.whl")
        zipfile.ZipFile(wheel).extractall(site)
    root = site / "_rocm_sdk_libraries"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_the_code_for_each_gpu_goes_into_its_package(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic", {KERNELS: b"kernels", "lib/readme.txt": b"text"})
    fat(stage / "lib/librocblas.so.5", "gfx906 gfx90a", "gfx906 gfx90a:xnack+ gfx90a:xnack-")
    dist, _ = build_packages(tmp_path, "--split-device")
    assert install(dist, tmp_path / "site", ["rocm_sdk_libraries", "rocm_sdk_device_gfx906"]) == [
        ".devel_links/gfx906.json",
        ".device-gfx906",
        ".kpack/librocblas.so.5_gfx906.kpack",
        "__init__.py",
        "lib/librocblas.so.5",
        "lib/readme.txt",
        "lib/rocblas/library/TensileLibrary_gfx906.dat",
    ]
    install(dist, tmp_path / "site", ["rocm_sdk_device_gfx90a"])
    library = tmp_path / "site/_rocm_sdk_libraries/lib/librocblas.so.5"
    assert require_same_code(library, codes("gfx906 gfx90a", "gfx906 gfx90a:xnack+ gfx90a:xnack-")) > 0


def test_without_the_option_device_code_stays_in_the_library(tmp_path: Path) -> None:
    fat(artifact(tmp_path / "in", "blas_lib_generic") / "lib/librocblas.so.5", "gfx906 gfx90a")
    dist, _ = build_packages(tmp_path)
    assert sorted(path.name.partition("-")[0] for path in dist.glob("*.whl")) == [
        "rocm_sdk_core",
        "rocm_sdk_devel",
        "rocm_sdk_libraries",
    ]


def test_a_library_in_the_core_package_keeps_its_code(tmp_path: Path) -> None:
    fat(artifact(tmp_path / "in", "core-hip_lib_generic") / "lib/libamdhip64.so.7", "gfx906")
    fat(artifact(tmp_path / "in", "blas_lib_generic") / "lib/librocblas.so.5", "gfx906")
    dist, _ = build_packages(tmp_path, "--split-device")
    install(dist, tmp_path / "site", ["rocm_sdk_core", "rocm_sdk_libraries"])
    original = (tmp_path / "in/core-hip_lib_generic/stage/lib/libamdhip64.so.7").read_bytes()
    assert code_of(0, "gfx906") in original
    assert code_of(0, "gfx906") in (tmp_path / "site/_rocm_sdk_core/lib/libamdhip64.so.7").read_bytes()


def test_the_selector_chooses_among_the_built_packages(tmp_path: Path) -> None:
    fat(artifact(tmp_path / "in", "blas_lib_generic") / "lib/librocblas.so.5", "gfx906 gfx11-generic")
    done = run_on_artifacts("plan", tmp_path, "--split-device", "--selector", "wheel", "--json")
    [selector] = [row for row in json.loads(done.stdout)["wheels"] if row["package"] == "selector"]
    assert "rocm-sdk-device-gfx11-generic==7.0; extra == 'device-gfx1103'" in selector["metadata"]["requires"]


def test_code_that_is_not_split_is_reported_with_the_reason(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic", {"lib/rocblas/library/kernels.co": make_bundle(0, "gfx906")})
    fat(stage / "lib/librocblas.so.5", "gfx906")
    _, told = build_packages(tmp_path, "--split-device")
    assert "warning: lib/rocblas/library/kernels.co: keeps its device code for all GPUs: " in told


def test_a_set_without_a_runtime_for_archives_causes_a_warning(tmp_path: Path) -> None:
    fat(artifact(tmp_path / "in", "blas_lib_generic") / "lib/librocblas.so.5", "gfx906")
    _, told = build_packages(tmp_path, "--split-device")
    assert "because librocm_kpack.so, which the HIP runtime uses for device code archives, is missing" in told
    artifact(tmp_path / "in", "core-kpack_lib_generic", {"lib/librocm_kpack.so.0": b"text"})
    _, told = build_packages(tmp_path, "--split-device")
    assert "librocm_kpack" not in told


@pytest.mark.parametrize("options", [(), ("--split-device",)])
def test_a_set_of_already_split_libraries_without_a_runtime_causes_a_warning(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    split_two(artifact(tmp_path / "in", "blas_lib_generic"))
    _, told = build_packages(tmp_path, *options)
    assert ".kpack/two_gfx1030.kpack and 2 more: can't be read, because librocm_kpack.so, which" in told
    artifact(tmp_path / "in", "core-kpack_lib_generic", {"lib/librocm_kpack.so.0": b"text"})
    _, told = build_packages(tmp_path, *options)
    assert "librocm_kpack" not in told


def test_family_artifacts_are_refused(tmp_path: Path) -> None:
    artifact(tmp_path / "in", "blas_lib_gfx110X-dgpu", {"lib/x.txt": b""})
    done = run_on_artifacts("plan", tmp_path, "--split-device")
    assert done.returncode == 2
    assert "has artifacts for families, such as gfx110X-dgpu" in done.stderr
    assert "rocwheel artifacts merge" in done.stderr


def test_the_same_inputs_give_the_same_packages_with_any_number_of_workers(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    fat(stage / "lib/librocblas.so.5", "gfx906 gfx90a", "gfx906 gfx90a", "gfx906")
    dist, _ = build_packages(tmp_path, "--split-device", "--jobs", "1")
    first = {path.name: path.read_bytes() for path in dist.iterdir()}
    dist, _ = build_packages(tmp_path, "--split-device=kpack", "--jobs", "3")
    assert {path.name: path.read_bytes() for path in dist.iterdir()} == first


def test_no_temporary_files_are_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    fat(artifact(tmp_path / "in", "blas_lib_generic") / "lib/librocblas.so.5", "gfx906")
    build_packages(tmp_path, "--split-device")
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("words", [("--split-device",), ("--split-device=kpack",), ("--split-device", "kpack")])
def test_the_value_of_the_option_is_optional(tmp_path: Path, words: tuple[str, ...]) -> None:
    fat(artifact(tmp_path / "in", "blas_lib_generic") / "lib/librocblas.so.5", "gfx906")
    dist, _ = build_packages(tmp_path, *words)
    assert list(dist.glob("rocm_sdk_device_gfx906-*"))
