"""Tests of `rocwheel.build.variant_wheels`."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from installer.sources import WheelFile

from rocwheel.build.variant_wheels import GpuPackage, add_variants, make_choices, split_distribution
from rocwheel.core.errors import RocwheelError
from tests.support.variant_wheels import add_gpu_package
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


def package(word: str, *declared: str) -> GpuPackage:
    return GpuPackage("torch-device", word, "1", ("py3", "none", "any"), declared)


def choices(*packages: GpuPackage) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return targets and names of packages by label."""
    return {one.label: (one.targets, tuple(p.word for p in one.packages)) for one in make_choices(packages)}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("rocm-sdk-device-gfx942", ("rocm-sdk-device", "gfx942")),
        ("rocm_sdk_device_gfx9_4_generic", ("rocm-sdk-device", "gfx9-4-generic")),
        ("rocm-sdk-libraries-gfx94X-dcgpu", ("rocm-sdk-libraries", "gfx94x-dcgpu")),
        ("torch-device-gfx12-0", ("torch-device", "gfx12-0")),
        ("rocm-sdk-core", None),
        ("rocm-sdk-device-gfx", None),
        ("thing-gfx942x", None),
        ("gfx942", None),
    ],
)
def test_a_gpu_package_is_recognized_by_the_gpu_that_ends_its_name(name: str, parts: tuple[str, str] | None) -> None:
    assert split_distribution(name) == parts


def test_each_target_is_a_variant() -> None:
    assert choices(package("gfx1100"), package("gfx90a", "gfx90a")) == {
        "gfx90a": (("gfx90a",), ("gfx90a",)),
        "gfx1100": (("gfx1100",), ("gfx1100",)),
    }


def test_a_family_is_one_variant_for_its_targets() -> None:
    assert choices(package("gfx94x-dcgpu", "gfx942"), package("gfx110x-all")) == {
        "gfx94x_dcgpu": (("gfx942",), ("gfx94x-dcgpu",)),
        "gfx110x_all": (("gfx1100", "gfx1101", "gfx1102", "gfx1103"), ("gfx110x-all",)),
    }


def test_generic_code_serves_targets_without_their_own_package() -> None:
    assert choices(package("gfx9-4-generic"), package("gfx942")) == {
        "gfx9_4_generic": (("gfx950",), ("gfx9-4-generic",)),
        "gfx942": (("gfx942",), ("gfx942",)),
    }


def test_relabeled_code_serves_its_declared_targets() -> None:
    assert choices(package("gfx1030", "gfx1030", "gfx1031"), package("gfx10-3-generic")) == {
        "gfx1030": (("gfx1030", "gfx1031"), ("gfx1030",)),
        "gfx10_3_generic": (("gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), ("gfx10-3-generic",)),
    }


def test_shared_kernels_are_required_by_the_variant_of_each_target() -> None:
    assert choices(package("gfx1200"), package("gfx1201"), package("gfx12-0")) == {
        "gfx1200": (("gfx1200",), ("gfx1200", "gfx12-0")),
        "gfx1201": (("gfx1201",), ("gfx1201", "gfx12-0")),
    }


def test_two_variants_with_the_same_first_package_have_different_labels() -> None:
    found = choices(package("gfx1153", "gfx1153", "gfx1200"), package("gfx12-0", "gfx1200"))
    assert found == {
        "gfx1153": (("gfx1153",), ("gfx1153",)),
        "gfx1153_gfx1200": (("gfx1200",), ("gfx1153", "gfx12-0")),
    }


STEM = "rocm_sdk_device-7.0.0"
FILES = ("METADATA", "RECORD", "WHEEL", "licenses/LICENSE")


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return a folder of device packages for three GPUs."""
    for target in ("gfx942", "gfx1100", "gfx1201"):
        add_gpu_package(tmp_path, f"rocm-sdk-device-{target}", targets=[target])
    return tmp_path


def read(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"{STEM}.dist-info/{name}").decode()


def requirements(path: Path) -> list[str]:
    return re.findall(r"^Requires-Dist: (.*)$", read(path, "METADATA"), re.MULTILINE)


def test_there_is_a_wheel_for_each_gpu_a_null_wheel_and_a_plain_wheel(dist: Path) -> None:
    added = add_variants(dist)
    assert added.wheels == added.written == (
        f"{STEM}-py3-none-any-gfx1100.whl",
        f"{STEM}-py3-none-any-gfx1201.whl",
        f"{STEM}-py3-none-any-gfx942.whl",
        f"{STEM}-py3-none-any-null.whl",
        f"{STEM}-py3-none-any.whl",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("label", "required"),
    [
        ("-gfx942", ["rocm-sdk-device-gfx942==7.0.0"]),
        ("-null", ["rocm-sdk-libraries==7.0.0"]),
        ("", ["rocm-sdk-device-gfx942==7.0.0", "rocm-sdk-device-gfx1100==7.0.0", "rocm-sdk-device-gfx1201==7.0.0"]),
    ],
)
def test_each_wheel_requires_the_packages_for_its_machines(dist: Path, label: str, required: list[str]) -> None:
    add_variants(dist)
    assert requirements(dist / f"{STEM}-py3-none-any{label}.whl") == required


@pytest.mark.parametrize(
    ("label", "properties"), [("gfx942", {"amd": {"gfx_arch": ["gfx942"]}}), ("null", {})], ids=["gfx942", "null"]
)
def test_every_variant_names_a_provider_with_all_known_targets(
    dist: Path, label: str, properties: dict[str, dict[str, list[str]]]
) -> None:
    add_variants(dist)
    document = json.loads(read(dist / f"{STEM}-py3-none-any-{label}.whl", "variant.json"))
    assert document["variants"] == {label: properties}
    assert {"gfx90a", "gfx942", "gfx1100", "gfx1201"} < set(
        document["providers"]["amd"]["static-properties"]["gfx_arch"]
    )


def test_the_plain_wheel_is_not_a_variant(dist: Path) -> None:
    add_variants(dist)
    with zipfile.ZipFile(dist / f"{STEM}-py3-none-any.whl") as archive:
        assert sorted(archive.namelist()) == [f"{STEM}.dist-info/{name}" for name in FILES]


def test_the_metadata_of_all_wheels_mentions_the_draft_status(dist: Path) -> None:
    for name in add_variants(dist).wheels:
        assert "wheel variants, a draft" in read(dist / name, "METADATA")


def test_the_record_of_each_variant_wheel_is_valid(dist: Path) -> None:
    for name in add_variants(dist).wheels:
        with WheelFile.open(dist / name) as wheel:
            wheel.validate_record()


def test_variant_wheels_have_the_same_bytes_in_any_folder(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    for target in ("gfx1201", "gfx942", "gfx1100"):
        add_gpu_package(other, f"rocm-sdk-device-{target}", targets=[target])
    for name in add_variants(dist).wheels:
        add_variants(other)
        assert (dist / name).read_bytes() == (other / name).read_bytes()


def test_adding_a_gpu_does_not_change_the_wheels_for_other_gpus(dist: Path) -> None:
    before = {name: (dist / name).read_bytes() for name in add_variants(dist).wheels}
    add_gpu_package(dist, "rocm-sdk-device-gfx90a", targets=["gfx90a"])
    assert add_variants(dist).written == (f"{STEM}-py3-none-any-gfx90a.whl", f"{STEM}-py3-none-any.whl")
    assert [name for name in before if (dist / name).read_bytes() != before[name]] == [f"{STEM}-py3-none-any.whl"]


def test_a_second_run_writes_nothing(dist: Path) -> None:
    add_variants(dist)
    stamps = {path: path.stat().st_mtime_ns for path in dist.iterdir()}
    assert add_variants(dist).written == ()
    assert {path: path.stat().st_mtime_ns for path in dist.iterdir()} == stamps


def test_a_wheel_for_a_gpu_without_a_package_is_reported_as_stale(dist: Path) -> None:
    add_variants(dist)
    next(dist.glob("rocm_sdk_device_gfx1201-*")).unlink()
    assert add_variants(dist).stale == (f"{STEM}-py3-none-any-gfx1201.whl",)


def test_packages_for_several_machines_get_separate_wheels(tmp_path: Path) -> None:
    for tag in ("py3-none-manylinux_2_17_x86_64", "py3-none-win_amd64"):
        add_gpu_package(tmp_path, "rocm-sdk-device-gfx942", targets=["gfx942"], tag=tag)
    add_gpu_package(tmp_path, "rocm-sdk-device-gfx1100", targets=["gfx1100"], tag="py3-none-manylinux_2_28_x86_64")
    assert add_variants(tmp_path).wheels == (
        f"{STEM}-py3-none-manylinux_2_17_x86_64-gfx942.whl",
        f"{STEM}-py3-none-manylinux_2_28_x86_64-gfx1100.whl",
        f"{STEM}-py3-none-manylinux_2_28_x86_64-null.whl",
        f"{STEM}-py3-none-manylinux_2_28_x86_64.whl",
        f"{STEM}-py3-none-win_amd64-gfx942.whl",
        f"{STEM}-py3-none-win_amd64-null.whl",
        f"{STEM}-py3-none-win_amd64.whl",
    )


def test_family_libraries_share_one_distribution_name(tmp_path: Path) -> None:
    for family in ("gfx94x-dcgpu", "gfx110x-all"):
        add_gpu_package(tmp_path, f"rocm-sdk-libraries-{family}", requires=("rocm-sdk-core==7.0.0",))
    stem = "rocm_sdk_libraries-7.0.0-py3-none-any"
    assert add_variants(tmp_path).wheels == tuple(
        f"{stem}{label}.whl" for label in ("-gfx110x_all", "-gfx94x_dcgpu", "-null", "")
    )


def test_a_folder_without_gpu_packages_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, "rocm-sdk-core", {"core.py": b""})
    with pytest.raises(RocwheelError) as raised:
        add_variants(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}: contains no packages for single GPUs; expected packages whose names end with a GPU, such as "
        "rocm-sdk-device-gfx942"
    )


def test_a_distribution_with_files_is_never_replaced_by_a_variant_wheel(dist: Path) -> None:
    stranger = make_wheel(dist, "rocm-sdk-device", {"mine.py": b""}, version="7.0.0", tag="py3-none-any")
    before = stranger.read_bytes()
    with pytest.raises(
        RocwheelError, match=f"^{re.escape(str(stranger))}: contains files, but has the name of a wheel "
    ):
        add_variants(dist)
    assert stranger.read_bytes() == before
    assert len(list(dist.iterdir())) == 4


def test_problems_in_several_packages_are_reported_together(dist: Path) -> None:
    for target in ("gfx906", "gfx908"):
        (dist / f"rocm_sdk_device_{target}-7.0.0-py3-none-any.whl").write_bytes(b"PK")
    with pytest.raises(RocwheelError, match="2 problems"):
        add_variants(dist)
    assert not list(dist.glob(f"{STEM}-*"))


KILLED = """
import os, signal
from pathlib import Path
import {module} as module
from rocwheel.build.variant_wheels import add_variants
real, calls = module.{name}, []
def stop(*given, **named):
    calls.append(1)
    if len(calls) > 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **named)
module.{name} = stop
add_variants(Path({folder!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("rocwheel.wheels.writing", "WheelWriter.close"),
        ("rocwheel.wheels.writing", "render_record"),
        ("rocwheel.core.writing", "os.replace"),
    ],
)
def test_a_killed_run_leaves_only_complete_wheels_and_the_next_run_finishes(
    dist: Path, tmp_path_factory: pytest.TempPathFactory, module: str, name: str
) -> None:
    whole = tmp_path_factory.mktemp("whole")
    for path in dist.iterdir():
        shutil.copy(path, whole)
    wheels = add_variants(whole).wheels
    script = KILLED.format(module=module, name=name, folder=str(dist))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    standing = list(dist.glob(f"{STEM}-*"))
    assert len(standing) == 2
    assert all(path.read_bytes() == (whole / path.name).read_bytes() for path in standing)
    assert add_variants(dist).wheels == wheels
    assert {path.name: path.read_bytes() for path in dist.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }
