"""``rocwheel device list`` of kernels, and of wheels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip() and "──" not in line]


def test_kernels_are_listed_with_what_they_take(run: Run) -> None:
    status, out, err = run("device", "list", "--kernels", FIXTURES / "v22/libtwo.plain.so")
    assert (status, err) == (0, "")
    headings = "bundle target kernel VGPRs AGPRs SGPRs spilled LDS scratch wavefront workgroup"
    assert rows_of(out) == [
        headings.split(),
        ["0", "gfx1030", "saxpy", "6", "-", "9", "0", "0", "0", "32", "1024"],
        ["0", "gfx906", "saxpy", "6", "-", "11", "0", "0", "0", "64", "1024"],
        ["0", "gfx90a:xnack+", "saxpy", "8", "0", "11", "0", "0", "0", "64", "1024"],
        ["1", "gfx1030", "vadd", "6", "-", "9", "0", "0", "0", "32", "1024"],
        ["1", "gfx906", "vadd", "5", "-", "14", "0", "0", "0", "64", "1024"],
        ["1", "gfx90a:xnack+", "vadd", "5", "0", "14", "0", "0", "0", "64", "1024"],
    ]


def test_kernels_of_code_object_version_2_end_with_a_warning(run: Run) -> None:
    status, out, err = run("device", "list", "--kernels", FIXTURES / "v16/vadd.cov2.hipfb")
    assert status == 1
    assert rows_of(out)[1:] == [["0", "gfx906", "vadd", *"--------"]]
    assert err.startswith("warning: ")
    assert "code object version 2 describes its kernels in YAML, which is not read" in err


def test_kernels_are_told_to_machines(run: Run) -> None:
    path = FIXTURES / "v22/libtwo.plain.so"
    document = json.loads(run("device", "list", "--kernels", "--json", path).stdout)
    assert (document["schema"], document["problems"], len(document["codes"])) == ("rocwheel.device-kernels/1", [], 6)
    assert document["codes"][2] == {
        "file": str(path),
        "bundle": 0,
        "target": "gfx90a:xnack+",
        "version": 6,
        "kernels": [
            {
                "name": "saxpy",
                "symbol": "saxpy.kd",
                "vgprs": 8,
                "agprs": 0,
                "sgprs": 11,
                "vgpr_spills": 0,
                "sgpr_spills": 0,
                "lds": 0,
                "scratch": 0,
                "has_dynamic_stack": False,
                "kernarg": 28,
                "wavefront": 64,
                "max_workgroup": 1024,
            }
        ],
    }


def test_bundles_of_a_wheel_are_listed_by_member(run: Run, tmp_path: Path) -> None:
    bundle = FIXTURES / "v22/saxpy.ccob.hipfb"
    wheel = make_wheel(tmp_path, "demo", {"demo/a.hipfb": bundle, "demo/b.hipfb": bundle, "demo/c.py": b""})
    own = run("device", "list", bundle).stdout
    assert run("device", "list", wheel) == (0, f"demo/a.hipfb\n{own}demo/b.hipfb\n{own}", "")
    document = json.loads(run("device", "list", wheel, "--json").stdout)
    assert document["schema"] == "rocwheel.device-list-wheel/1"
    device = json.loads(run("device", "list", bundle, "--json").stdout)
    del device["schema"]
    assert [file["path"] for file in document["files"]] == ["demo/a.hipfb", "demo/b.hipfb"]
    assert [file["device"] for file in document["files"]] == [device, device]


def test_kernels_of_a_wheel_are_listed_by_member(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb"})
    status, out, _ = run("device", "list", wheel, "--kernels")
    assert (status, out.splitlines()[0]) == (0, f"{wheel}!demo/a.hipfb")
    assert "saxpy" in out


@pytest.mark.parametrize("options", [[], ["--kernels"]], ids=["entries", "kernels"])
def test_a_wheel_without_device_code_is_refused(run: Run, tmp_path: Path, options: list[str]) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/a.py": b""})
    status, out, err = run("device", "list", wheel, *options)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {wheel}: no device code; expected ")


def test_a_kernel_name_with_control_characters_is_escaped(run: Run, tmp_path: Path) -> None:
    data = (FIXTURES / "v22/saxpy.hipfb").read_bytes().replace(b"\xa5.name\xa5saxpy", b"\xa5.name\xa5s\x1bxpy")
    (tmp_path / "x.hipfb").write_bytes(data)
    assert "s\\x1bxpy" in run("device", "list", "--kernels", tmp_path / "x.hipfb").stdout
