"""A merged selector under real pip and uv: on this machine, and by its markers on Windows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.metadata import Metadata

from rocwheel.build.merging.merge import merge_selectors
from rocwheel.index.write_index import write_index
from rocwheel.sdk.selector import take_facts
from tests.build.merging.selectors import facts_of, on_machine, windows, write_plan, write_selector
from tests.build.selectors import literals
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.slow

NAMES = ("core", "libraries", "device-gfx942", "device-gfx1100", "device-gfx1151")


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return a folder with the merged selector of builds for Linux and Windows, and with the packages."""
    linux = write_selector(tmp_path / "linux", "gfx942", "gfx1100")
    win = write_selector(tmp_path / "win", "gfx1100", "gfx1151", change=windows)
    merge_selectors([win, linux], tmp_path / "dist")
    for name in NAMES:
        module = f"rocm_sdk_{name.replace('-', '_')}"
        make_wheel(tmp_path / "dist", f"rocm-sdk-{name}", {f"{module}.py": b""}, version="7.0.0", tag="py3-none-any")
    return tmp_path / "dist"


def install(tool: str, dist: Path, requirement: str, **environ: str) -> Path:
    """Install from an index of the folder, and return where to."""
    site, index = dist.parent / "site", dist.parent / "simple"
    write_index(dist, index)
    command = [find_uv(), "pip"] if tool == "uv" else [sys.executable, "-m", "pip"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "ROCM_", "HSA_"))}
    caches = {"PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1", "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
    arguments = ["install", requirement, "--target", str(site), "--index-url", index.as_uri()]
    done = subprocess.run(
        [*command, *arguments], env={**kept, **caches, **environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return site


def dists(site: Path) -> list[str]:
    return sorted(path.name.partition("-")[0] for path in site.glob("*.dist-info"))


@pytest.mark.parametrize(
    ("tool", "requirement", "devices"),
    [
        ("pip", "rocm[libraries,device-gfx942]", ["rocm_sdk_device_gfx942"]),
        ("uv", "rocm[libraries,device-gfx942]", ["rocm_sdk_device_gfx942"]),
        ("uv", "rocm[libraries,device-all]", ["rocm_sdk_device_gfx1100", "rocm_sdk_device_gfx942"]),
        ("uv", "rocm[libraries,device-gfx1151]", []),
    ],
)
def test_installers_pick_the_packages_built_for_this_platform(
    dist: Path, tool: str, requirement: str, devices: list[str]
) -> None:
    site = install(tool, dist, requirement)
    assert dists(site) == ["rocm", "rocm_sdk_core", *devices, "rocm_sdk_libraries"]


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_the_selector_chooses_among_the_packages_for_the_platform(dist: Path, tool: str) -> None:
    site = install(tool, dist, "rocm[device]", ROCM_SDK_TARGET_FAMILY="gfx942")
    assert dists(site) == ["rocm", "rocm_sdk_core", "rocm_sdk_device_gfx942"]
    assert (
        literals((site / "rocm_sdk/_build_info.py").read_text())["LIBRARIES"]
        == facts_of(dist.parent / "linux/rocm-7.0.0.tar.gz")["LIBRARIES"]
    )


def test_on_windows_the_markers_select_the_windows_packages(dist: Path) -> None:
    site = install("pip", dist, "rocm")
    metadata = Metadata.from_email((site / "rocm-7.0.0.dist-info/METADATA").read_bytes())

    def brought(extra: str) -> list[str]:
        environment = {"sys_platform": "win32", "extra": extra}
        rows = metadata.requires_dist or []
        return sorted(row.name for row in rows if row.marker and row.marker.evaluate(environment))

    assert brought("device-all") == ["rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx1151"]
    assert brought("device-gfx1151") == ["rocm-sdk-device-gfx1151"]
    assert brought("device-gfx942") == []
    assert brought("libraries") == ["rocm-sdk-libraries"]


def test_a_wheel_built_on_windows_has_the_windows_facts(dist: Path) -> None:
    build_info = SimpleNamespace(**facts_of(dist / "rocm-7.0.0.tar.gz"))
    added = take_facts(build_info, "win32")
    assert build_info.LIBRARIES["amdhip64"]["pattern"] == "amdhip64*.dll"
    assert literals(added)["LIBRARIES"] == build_info.LIBRARIES
    assert take_facts(SimpleNamespace(), "win32") == ""


@pytest.mark.parametrize(("built_on", "runs_on"), [("linux", "win32"), ("win32", "linux")])
def test_a_wheel_uses_the_facts_of_the_platform_where_it_runs(
    dist: Path, monkeypatch: pytest.MonkeyPatch, built_on: str, runs_on: str
) -> None:
    there = facts_of(dist / "rocm-7.0.0.tar.gz")
    added = take_facts(SimpleNamespace(**there), built_on)
    monkeypatch.setattr(sys, "platform", runs_on)
    exec(added, there)
    folder = {"linux": "linux", "win32": "win"}[runs_on]
    assert there["LIBRARIES"] == facts_of(dist.parent / folder / "rocm-7.0.0.tar.gz")["LIBRARIES"]


@pytest.mark.parametrize(
    ("platform", "requirement", "devices"),
    [
        ("x86_64-unknown-linux-gnu", "rocm[device-all]", ["gfx1100", "gfx942"]),
        ("x86_64-pc-windows-msvc", "rocm[device-all]", ["gfx1100", "gfx1151"]),
        ("aarch64-unknown-linux-gnu", "rocm[device-all]", ["gfx90a", "gfx942"]),
        ("x86_64-unknown-linux-gnu", "rocm[device-gfx942]", ["gfx942"]),
        ("x86_64-pc-windows-msvc", "rocm[device-gfx1151]", ["gfx1151"]),
        ("aarch64-unknown-linux-gnu", "rocm[device-gfx90a]", ["gfx90a"]),
        ("aarch64-unknown-linux-gnu", "rocm[device-gfx1100]", []),
    ],
)
def test_uv_resolves_all_gpus_on_every_platform(
    tmp_path: Path, platform: str, requirement: str, devices: list[str]
) -> None:
    found = compiled(tmp_path, platform, requirement, plans(tmp_path))
    assert found == ["rocm", "rocm-sdk-core", *(f"rocm-sdk-device-{target}" for target in devices)]


@pytest.mark.parametrize("platform", ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"])
def test_without_a_merge_one_platform_would_lose_its_gpus(tmp_path: Path, platform: str) -> None:
    # What the reference does: the upload of the second platform takes the place of the first one's.
    found = compiled(tmp_path, platform, "rocm[device-all]", plans(tmp_path)[-1:])
    assert found == ["rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx1151"]


def plans(tmp_path: Path) -> list[Path]:
    """Return the plans of builds for Linux on two machines, and for Windows."""
    return [
        write_plan(tmp_path / "linux.json", "gfx942", "gfx1100"),
        write_plan(tmp_path / "arm.json", "gfx942", "gfx90a", change=on_machine("aarch64")),
        write_plan(tmp_path / "win.json", "gfx1100", "gfx1151", change=windows),
    ]


def compiled(tmp_path: Path, platform: str, requirement: str, merged: list[Path]) -> list[str]:
    """Return what uv resolves a requirement to for a platform, with what was merged and the wheels for all."""
    uv = find_uv()
    merge_selectors(merged, tmp_path / "dist")
    tag = "py3-none-manylinux_2_28_x86_64.manylinux_2_28_aarch64.win_amd64"
    for name in (*NAMES, "device-gfx90a"):
        make_wheel(tmp_path / "dist", f"rocm-sdk-{name}", {f"{name}.py": b""}, version="7.0.0", tag=tag)
    write_index(tmp_path / "dist", tmp_path / "simple")
    (tmp_path / "wanted.in").write_text(requirement, encoding="utf-8")
    options = ["--python-platform", platform, "--index-url", (tmp_path / "simple").as_uri(), "--no-header", "--quiet"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "ROCM_", "HSA_"))}
    done = subprocess.run(
        [uv, "pip", "compile", *options, "--no-annotate", "--no-cache", "wanted.in"],
        env={**kept, "UV_NO_CONFIG": "1"}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.partition("==")[0].partition("[")[0] for line in done.stdout.splitlines()]


def find_uv() -> str:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        pytest.skip("needs uv")
    return uv
