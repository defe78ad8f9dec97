"""Tests of `rocwheel.build.building`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.build.building import find_leftovers, remove_unfinished
from rocwheel.build.plan import PlanWarning

if TYPE_CHECKING:
    from pathlib import Path


def fill(folder: Path, *names: str) -> list[str]:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return [str(folder / name) for name in names]


def test_a_folder_with_only_this_build_has_no_leftovers(tmp_path: Path) -> None:
    built = fill(tmp_path, "a-1-py3-none-any.whl", "rocm-1.tar.gz", "gfx94X-dcgpu/b-1-py3-none-any.whl")
    fill(tmp_path, "a-1-py3-none-any.whl.metadata", ".a-2-py3-none-any.whl", "readme.txt")
    assert find_leftovers(tmp_path, built) == ()


def test_distributions_from_other_builds_are_reported(tmp_path: Path) -> None:
    built = fill(tmp_path, "a-2-py3-none-any.whl")
    others = ("a-1-py3-none-any.whl", "gfx94X-dcgpu/b-1-py3-none-any.whl", "rocm-1.tar.gz")
    fill(tmp_path, *others)
    assert find_leftovers(tmp_path, built) == (
        PlanWarning(
            "earlier-build",
            str(tmp_path),
            f"contains distributions that are not from this build: {', '.join(others)}",
            "An index of this folder would list them. If they are from earlier builds, remove them.",
            others,
        ),
    )


def test_a_missing_folder_has_no_leftovers(tmp_path: Path) -> None:
    assert find_leftovers(tmp_path / "dist", []) == ()


def test_files_left_by_killed_builds_are_removed_from_all_folders(tmp_path: Path) -> None:
    names = tuple(
        f"{name}.rocwheel"
        for name in (".a-1.whl.abcdefgh", ".rocm-1.tar.gz.01234567", "gfx94X-dcgpu/.b-1.whl._bcdefgh")
    )
    fill(tmp_path, "a-1-py3-none-any.whl", *names)
    for name in names:
        (tmp_path / name).chmod(0o600)
    assert remove_unfinished(tmp_path) == tuple(tmp_path / name for name in names)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a-1-py3-none-any.whl", "gfx94X-dcgpu"]
