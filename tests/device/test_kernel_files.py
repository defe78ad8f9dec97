"""Tests of `rocwheel.device.retarget`."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from rocwheel.device.retarget import find_named_members
from rocwheel.targets.retarget_pairs import parse_pairs

if TYPE_CHECKING:
    from pathlib import Path


def test_files_that_are_looked_up_by_name_are_counted_by_folder(tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("a_gfx1030.co", "b_gfx1030.dat", "a_gfx906.co"):
            archive.writestr(f"demo/lib/rocblas/library/{name}", b"")
        archive.writestr("demo/.kpack/x_gfx1030.kpack", b"")
    ways = "libraries look them up by name. Retarget the folder that the wheel is built from."
    assert find_named_members(wheel, parse_pairs("gfx1030=gfx1031")) == (
        f"{wheel}: demo/.kpack: 1 file for gfx1030 is offered to no other GPU: {ways}",
        f"{wheel}: demo/lib/rocblas/library: 2 files for gfx1030 are offered to no other GPU: {ways}",
    )
    assert find_named_members(wheel, parse_pairs("gfx1034=gfx1035")) == ()
