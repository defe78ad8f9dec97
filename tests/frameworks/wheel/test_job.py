"""Wheels made from build outputs: read back and installed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from installer.sources import WheelFile

from tests.frameworks.wheels import changed, read_member, run_job

if TYPE_CHECKING:
    from rocwheel.frameworks.jax.wheel_descriptions import JaxWheel


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the sample SDK is for x86-64"),
]


def test_the_pjrt_wheel_has_the_layout_that_jax_discovers(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    report = run_job("pjrt", outputs, tmp_path, sample_dist)
    assert Path(report.path).name == "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl"
    info = "jax_rocm7_pjrt-0.12.0.dist-info"
    with zipfile.ZipFile(report.path) as archive:
        assert archive.namelist() == [
            "jax_plugins/xla_rocm7/__init__.py",
            "jax_plugins/xla_rocm7/commit_info.py",
            "jax_plugins/xla_rocm7/version.py",
            "jax_plugins/xla_rocm7/xla_rocm_plugin.so",
            f"{info}/licenses/LICENSE",
            f"{info}/METADATA",
            f"{info}/WHEEL",
            f"{info}/entry_points.txt",
            f"{info}/RECORD",
        ]
        modes = {info.filename: oct(info.external_attr >> 16 & 0o777) for info in archive.infolist()}
    assert modes["jax_plugins/xla_rocm7/xla_rocm_plugin.so"] == "0o755"
    assert modes["jax_plugins/xla_rocm7/version.py"] == "0o644"
    assert read_member(report.path, "entry_points.txt") == "[jax_plugins]\nxla_rocm7 = jax_plugins.xla_rocm7\n"
    assert "Root-Is-Purelib: false\nTag: py3-none-manylinux_2_5_x86_64\n" in read_member(report.path, "WHEEL")


def test_the_plugin_wheel_is_for_one_python_and_requires_its_twin(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    report = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12")
    assert Path(report.path).name == "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_5_x86_64.whl"
    metadata = read_member(report.path, "METADATA")
    assert "Requires-Dist: jax-rocm7-pjrt==0.12.0.*\n" in metadata
    assert "License-Expression: Apache-2.0\nLicense-File: LICENSE\n" in metadata


def test_version_and_commits_are_stamped_as_in_the_metadata(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    wheel = run_job("plugin", outputs, tmp_path, sample_dist, python="3.12").path
    stamped: dict[str, Any] = {}
    exec(read_member(wheel, "/version.py") + read_member(wheel, "/commit_info.py"), stamped)
    assert stamped["__version__"] == "0.12.0"
    assert stamped["commits"] == {"ROCm/rocm-jax": "0123456789abcdef0123456789abcdef01234567"}


@pytest.mark.parametrize("kind", ["pjrt", "plugin"])
def test_record_and_contents_agree(kind: JaxWheel, outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    report = run_job(kind, outputs, tmp_path, sample_dist, python="3.12" if kind == "plugin" else "")
    with WheelFile.open(Path(report.path)) as wheel:
        wheel.validate_record(validate_contents=True)


def test_the_same_outputs_elsewhere_make_the_same_bytes(
    outputs: Path, sample_dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_job("pjrt", outputs, tmp_path / "one", sample_dist)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(outputs, elsewhere, copy_function=shutil.copy)
    for path in elsewhere.rglob("*"):
        os.utime(path, (0, 1_000_000_000))
    monkeypatch.chdir(elsewhere)
    second = run_job("pjrt", elsewhere, tmp_path / "two", sample_dist)
    assert Path(first.path).read_bytes() == Path(second.path).read_bytes()


def test_pip_installs_the_pair_with_the_sdk_and_the_plugin_loads(
    outputs: Path, sample_dist: Path, tmp_path: Path
) -> None:
    this, any_python = f"3.{sys.version_info.minor}", {"requires-python": ""}
    wheels = [
        run_job("pjrt", outputs, tmp_path / "dist", sample_dist, description=changed("pjrt", **any_python)).path,
        run_job(
            "plugin", outputs, tmp_path / "dist", sample_dist, description=changed("plugin", **any_python), python=this
        ).path,
    ]
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--find-links",
        str(sample_dist),
        "--target",
        str(site),
    ]
    subprocess.run([*pip, *wheels, "rocm-sdk-core"], check=True, env={"PIP_CONFIG_FILE": os.devnull})
    load = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).GetPjrtApi())"
    plugin = site / "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
    loaded = subprocess.run([sys.executable, "-c", load, plugin], env={}, capture_output=True, text=True, check=True)
    assert loaded.stdout == "100\n"


def test_inputs_may_come_from_a_runfiles_manifest(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "MANIFEST"
    rows = [f"_main/{path.relative_to(outputs)} {path}\n" for path in outputs.rglob("*") if path.is_file()]
    manifest.write_text("".join(rows))
    empty = tmp_path / "empty"
    empty.mkdir()
    by_manifest = run_job("pjrt", empty, tmp_path / "a", sample_dist, runfiles_manifest=manifest)
    by_folder = run_job("pjrt", outputs, tmp_path / "b", sample_dist)
    assert Path(by_manifest.path).read_bytes() == Path(by_folder.path).read_bytes()


def test_wheels_are_made_again_next_to_those_of_the_last_time(outputs: Path, sample_dist: Path, tmp_path: Path) -> None:
    dist = shutil.copytree(sample_dist, tmp_path / "dist")
    for _ in range(2):
        run_job("pjrt", outputs, dist, dist)
        for python in ("3.11", "3.12"):
            run_job("plugin", outputs, dist, dist, python=python)
    names = {path.name for path in dist.glob("jax*")}
    assert names == {
        "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp311-cp311-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_5_x86_64.whl",
    }
