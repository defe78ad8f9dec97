"""Builds with whole libraries for each target: what is in which package, and what keeps its code."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import open_workers
from rocwheel.device import edit_file
from tests.support.artifacts import artifact, build_packages, run_on_artifacts
from tests.support.command_line import rocwheel
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle
from tests.support.kpack_files import split_two
from tests.support.overlay_packages import KERNELS, add_library, build_overlays, unpack

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import AbstractContextManager
    from pathlib import Path

pytestmark = pytest.mark.slow

ROOT = "_rocm_sdk_libraries"


def members(dist: Path, package: str) -> list[str]:
    """Return the files of a package in the libraries' folder, without those that say what is installed."""
    [wheel] = dist.glob(f"{package}-*.whl")
    names = [name.removeprefix(f"{ROOT}/") for name in zipfile.ZipFile(wheel).namelist() if name.startswith(ROOT)]
    return sorted(name for name in names if name.startswith("lib/"))


def targets_of(site: Path, library: str) -> list[str]:
    with FileRange.whole(site / ROOT / "lib" / library).view() as data:
        return sorted(map(str, device_targets(data, name=library)))


def test_each_target_gets_whole_libraries_besides_the_common_libraries(tmp_path: Path) -> None:
    dist, told = build_overlays(tmp_path)
    assert members(dist, "rocm_sdk_device_gfx906") == [
        "lib/librocblas.so.5.gfx906",
        "lib/librocsparse.so.1.gfx906",
        KERNELS,
    ]
    assert members(dist, "rocm_sdk_device_gfx90a") == ["lib/librocblas.so.5.gfx90a"]
    site = unpack(dist, tmp_path / "site", "gfx906", "gfx90a")
    assert targets_of(site, "librocblas.so.5") == ["gfx1030"]
    assert targets_of(site, "librocblas.so.5.gfx90a") == ["gfx90a"]
    assert code_of(1, "gfx906") in (site / ROOT / "lib/librocblas.so.5.gfx906").read_bytes()
    assert "kpack" not in told


def test_generic_targets_are_the_common_set_by_default(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    add_library(stage, "librocblas.so.5", ["gfx906 gfx1030 gfx11-generic gfx1100"])
    add_library(stage, "libhipblas.so.3", needed=["librocblas.so.5"])
    dist, _ = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel")
    assert targets_of(unpack(dist, tmp_path / "site"), "librocblas.so.5") == ["gfx11-generic"]
    options = ("--split-device=overlay", "--common", "gfx906;gfx1030", "--selector", "wheel")
    dist, _ = build_packages(tmp_path, *options)
    site = unpack(dist, tmp_path / "other", "gfx1100")
    assert targets_of(site, "librocblas.so.5") == ["gfx1030", "gfx906"]
    assert targets_of(site, "librocblas.so.5.gfx1100") == ["gfx1100"]


def test_a_bundle_without_code_for_a_target_keeps_its_smallest_code_object(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    add_library(stage, "librocblas.so.5", ["gfx906 gfx1030", "gfx90a gfx1030", "gfx1030"])
    add_library(stage, "libhipblas.so.3", needed=["librocblas.so.5"])
    dist, _ = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel")
    site = unpack(dist, tmp_path / "site", "gfx906")
    data = (site / ROOT / "lib/librocblas.so.5.gfx906").read_bytes()
    assert [code_of(0, "gfx906") in data, code_of(1, "gfx90a") in data, code_of(2, "gfx1030") in data] == [True] * 3
    assert code_of(0, "gfx1030") not in data


def test_a_plugin_opened_by_its_path_keeps_all_its_code(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    add_library(stage, "librocblas.so.5", ["gfx906 gfx1030"])
    add_library(stage, "libhipblas.so.3", needed=["librocblas.so.5"])
    add_library(stage, "plugin.so", ["gfx906 gfx1030"])
    dist, told = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel")
    assert (
        "warning: lib/plugin.so: keeps its device code for all GPUs: no file depends on this library by SONAME" in told
    )
    assert targets_of(unpack(dist, tmp_path / "site"), "plugin.so") == ["gfx1030", "gfx906"]


def test_a_library_without_code_for_the_common_set_keeps_all_its_code(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    add_library(stage, "librocblas.so.5", ["gfx906 gfx1030"])
    add_library(stage, "libhipblas.so.3", needed=["librocblas.so.5"])
    add_library(stage, "libhipsparselt.so.0", ["gfx942 gfx950"])
    dist, told = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel", "--common", "gfx942")
    reason = "keeps its device code for all GPUs: the file has no code for the common set, gfx942"
    assert f"warning: lib/librocblas.so.5: {reason}" in told
    assert members(dist, "rocm_sdk_device_gfx942") == ["lib/libhipsparselt.so.0.gfx942"]


def test_a_library_with_only_spir_v_code_keeps_all_its_code(tmp_path: Path) -> None:
    add_library(artifact(tmp_path / "in", "blas_lib_generic"), "libhipblas.so.3", ["amdgcnspirv"])
    dist, told = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel")
    assert (
        "warning: lib/libhipblas.so.3: keeps its device code for all GPUs: the file's code isn't for specific GPUs"
        in told
    )
    assert list(dist.glob("*device*")) == []


def test_libraries_that_were_already_split_are_reported_by_name(tmp_path: Path) -> None:
    split_two(stage := artifact(tmp_path / "in", "blas_lib_generic"))
    split_two(tmp_path / "other")
    (tmp_path / "other/lib/libtwo.so").rename(stage / "lib/libother.so")
    done = run_on_artifacts("build", tmp_path, "--dest-dir", str(tmp_path / "out"), "--split-device=overlay")
    assert done.returncode == 2
    for name in ("lib/libtwo.so", "lib/libother.so"):
        assert f"{name}: is a split library, whose code runtimes without kpack can't find; expected" in done.stderr
    assert "Join the library first: rocwheel device join HOST TARGET... --output FOLDER" in done.stderr
    assert not (tmp_path / "out/dist").exists()


def test_a_common_set_without_code_in_any_library_is_refused(tmp_path: Path) -> None:
    add_library(artifact(tmp_path / "in", "blas_lib_generic"), "libhipblas.so.3", ["gfx906 gfx1030"])
    done = run_on_artifacts("plan", tmp_path, "--split-device=overlay", "--common", "gfx942")
    assert done.returncode == 2
    assert (
        "has no library with code for the common set, gfx942; expected code for at least one of gfx906, gfx1030"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--common", "gfx906"), "--common: has no effect, because libraries are not split per target"),
        (("--split-device=overlay", "--common", ""), "--common"),
        (("--split-device=overlay", "--common", "gfx9999"), "gfx9999"),
    ],
)
def test_an_invalid_common_set_is_refused(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    add_library(artifact(tmp_path / "in", "blas_lib_generic"), "libhipblas.so.3", ["gfx906"])
    done = run_on_artifacts("plan", tmp_path, *options)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_selector_chooses_among_the_built_packages(tmp_path: Path) -> None:
    add_library(artifact(tmp_path / "in", "blas_lib_generic"), "libhipblas.so.3", ["gfx906 gfx11-generic"])
    done = run_on_artifacts("plan", tmp_path, "--split-device=overlay", "--selector", "wheel", "--json")
    document = json.loads(done.stdout)
    [selector] = [row for row in document["wheels"] if row["package"] == "selector"]
    assert "rocm-sdk-device-gfx11-generic==7.0; extra == 'device-gfx1103'" in selector["metadata"]["requires"]
    assert document["gaps"] == []


def test_the_same_inputs_give_the_same_packages_with_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist, _ = build_overlays(tmp_path, "--jobs", "1")
    first = {path.name: path.read_bytes() for path in dist.iterdir()}
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    dist, _ = build_overlays(tmp_path, "--jobs", "3")
    assert {path.name: path.read_bytes() for path in dist.iterdir()} == first


@pytest.mark.parametrize(
    "options", [{"split_device": "overlay", "selector": "wheel"}, {"retarget": ("gfx1030=gfx1031",)}]
)
@pytest.mark.parametrize("jobs", [1, 3])
def test_device_code_is_edited_by_the_requested_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], jobs: int
) -> None:
    asked: list[int | None] = []

    def count_workers(count: int | None = None) -> AbstractContextManager[ThreadPoolExecutor]:
        asked.append(count)
        return open_workers(count)

    monkeypatch.setattr(edit_file, "open_workers", count_workers)
    add_library(artifact(tmp_path / "in", "blas_lib_generic"), "libhipblas.so.3", ["gfx906 gfx1030"])
    inputs = PlanJob(tmp_path / "in", options=PlanOptions(version="7.0", **options))
    add_library(artifact(tmp_path / "in", "core-hip_lib_generic"), "libamdhip64.so.7")
    BuildJob(inputs, tmp_path / "out", jobs=jobs).run()
    assert set(asked) == {jobs}


def test_compressed_bundles_stay_compressed(tmp_path: Path) -> None:
    dist, _ = build_overlays(tmp_path, "--device-code", "compress", "--rocm", "6.4")
    site = unpack(dist, tmp_path / "site", "gfx906")
    assert targets_of(site, "librocblas.so.5.gfx906") == ["gfx906"]
    assert b"CCOB" in (site / ROOT / "lib/librocblas.so.5.gfx906").read_bytes()


def test_runs_on_counts_the_library_for_the_gpu_instead_of_the_common_library(tmp_path: Path) -> None:
    dist, _ = build_overlays(tmp_path)
    site = unpack(dist, tmp_path / "site", "gfx906")
    assert rocwheel("targets", "runs-on", "gfx906", str(site)).returncode == 0
    for gpu, found in {"gfx1030": "uses gfx1030", "gfx90a": "finds nothing"}.items():
        text = rocwheel("targets", "runs-on", gpu, str(site)).stdout
        assert f"librocsparse.so.1: {gpu} on a stock runtime of ROCm 7.0: {found} in 1 bundle" in text
    wheels = [str(path) for name in ("libraries", "device_gfx906") for path in dist.glob(f"rocm_sdk_{name}-*.whl")]
    assert rocwheel("targets", "runs-on", "gfx906", *wheels).returncode == 0
    assert rocwheel("targets", "runs-on", "gfx906", *[name for name in wheels if "libraries" in name]).returncode == 1


def test_the_option_adds_no_audit_findings(tmp_path: Path) -> None:
    dist, _ = build_overlays(tmp_path, "--common", "gfx1030")
    found = findings(dist)
    dist, _ = build_packages(tmp_path, "--selector", "wheel")
    assert found - findings(dist) == set()


def findings(dist: Path) -> set[str]:
    done = rocwheel("audit", "--json", *map(str, sorted(dist.glob("*.whl"))))
    return {row["rule"] for row in json.loads(done.stdout)["findings"]}


def test_a_damaged_library_is_reported_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    bundle = bytearray(make_bundle(0, "gfx906 gfx1030"))
    bundle[24:32] = (99).to_bytes(8, "little")
    build_fat_library(stage / "lib/libhipblas.so.3", [bytes(bundle)], options=["-Wl,-soname,libhipblas.so.3"])
    out = str(tmp_path / "out")
    done = run_on_artifacts("build", tmp_path, "--dest-dir", out, "--split-device=overlay")
    assert done.returncode == 2
    assert "lib/libhipblas.so.3" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "out").rglob("*.whl"))


def test_no_temporary_files_are_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    build_overlays(tmp_path)
    assert list((tmp_path / "tmp").iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from rocwheel.device.split import overlays as write
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
write.FileRewrite.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
options = PlanOptions(version="7.0", split_device="overlay")
BuildJob(PlanJob(Path({artifacts!r}), None, options), Path({output!r})).run()
"""


def test_a_killed_build_leaves_no_package_and_the_next_build_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    dist, _ = build_overlays(tmp_path)
    script = KILLED.format(artifacts=str(tmp_path / "in"), output=str(tmp_path / "other"))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert not list((tmp_path / "other").rglob("*.whl"))
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    first = {path.name: path.read_bytes() for path in dist.iterdir()}
    dist, _ = build_overlays(tmp_path)
    assert {path.name: path.read_bytes() for path in dist.iterdir()} == first
    assert list((tmp_path / "tmp").iterdir()) == []
