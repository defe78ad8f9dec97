"""``rocwheel device split`` of wheels as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

LIBRARY = FIXTURES / "v22/libtwo.plain.so"


def test_wheels_become_host_and_device_wheels(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    other = make_wheel(tmp_path, "more", {"more/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    status, text, err = run("device", "split", wheel, other, "--dest-dir", out)
    assert (status, "warning" in err) == (0, False)
    assert [line.partition(", ")[0] for line in text.splitlines()[:4]] == [
        f"{out}/{wheel.name}: 1 library split",
        f"{out}/demo_device_gfx906-1.0-py3-none-linux_x86_64.whl: 1 archive",
        f"{out}/demo_device_gfx90a-1.0-py3-none-linux_x86_64.whl: 1 archive",
        f"{out}/demo_device_gfx1030-1.0-py3-none-linux_x86_64.whl: 1 archive",
    ]
    assert len(list(out.iterdir())) == 8


def test_a_gpu_runs_what_the_given_device_wheels_bring(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--dest-dir", out, "--quiet")
    host, device = out / wheel.name, next(out.glob("*gfx1030*"))
    same = "(the same processor with the same features)"
    status, text, err = run("targets", "runs-on", "gfx1030", host, device)
    assert (status, err) == (0, "")
    assert (
        text.splitlines()[0] == f"{host}!demo/libtwo.so: gfx1030 on a stock runtime: uses gfx1030 in 2 bundles {same}"
    )
    status, text, err = run("targets", "runs-on", "gfx906", host, device)
    assert (status, err) == (1, "")
    assert text.splitlines()[0].startswith(
        f"{host}!demo/libtwo.so: gfx906 on a stock runtime: finds nothing in 2 bundles"
    )
    status, text, err = run("targets", "runs-on", "gfx906", host)
    why = "finds nothing in 2 bundles (no archive at .kpack/libtwo.so_@GFXARCH@.kpack)"
    assert (status, text.splitlines()[0]) == (1, f"{host}!demo/libtwo.so: gfx906 on a stock runtime: {why}")


def test_the_document_tells_all(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    status, text, err = run("device", "split", wheel, "--dest-dir", tmp_path / "out", "-t", "gfx906", "--json")
    document = json.loads(text)
    [report] = document["wheels"]
    assert (status, err, document["schema"]) == (0, "", "rocwheel.device-split-wheels/1")
    assert (report["size"], report["overlay_root"], report["libraries"]) == (
        wheel.stat().st_size,
        "demo",
        ["demo/libtwo.so"],
    )
    assert [(device["target"], device["archives"], device["files"]) for device in report["devices"]] == [
        ("gfx906", 1, 0)
    ]


def test_options_for_wheels_are_refused_for_folders(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    status, _, err = run("device", "split", tmp_path / "tree", "--overlay-root", "x", "--dest-dir", tmp_path / "out")
    assert (status, err) == (2, f"error: {tmp_path}/tree: is not a wheel; expected wheels for --overlay-root\n")
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    status, _, err = run("device", "split", tmp_path / "tree", wheel, "--dest-dir", tmp_path / "out")
    found = "is split together with something else; expected one file or folder, or wheels"
    assert (status, err) == (2, f"error: {wheel}: {found}\n")


def test_wheels_are_joined_again(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--dest-dir", out, "--quiet")
    devices = sorted(out.glob("demo_device*"))
    status, text, err = run("device", "join", out / wheel.name, *devices, "--dest-dir", tmp_path / "fat", "--json")
    report = json.loads(text)
    assert (status, err, report["schema"], report["libraries"]) == (
        *(0, "", "rocwheel.device-join-wheel/1"),
        ["demo/libtwo.so"],
    )
    assert members(tmp_path / "fat" / wheel.name).keys() == members(wheel).keys()
