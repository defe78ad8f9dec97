"""Tests of what changed since an older state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.report.make_report import make_report
from rocwheel.report.values import Against, SizeChange, TargetGrowth
from tests.support.artifacts import artifact
from tests.support.bundles import bundle_of
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


def compared(old: Path, new: Path) -> Against:
    """Return what differs."""
    found = make_report([new], unread=[], against=old).against
    assert found is not None
    return found


def test_each_planted_change_is_found(tmp_path: Path) -> None:
    old = {"a/same": b"12", "a/lib-1.0.txt": b"1", "a/grew": b"1", "a/shrank": b"123", "a/went": b"1" * 50}
    new = {"a/same": b"21", "a/lib-2.0.txt": b"12345678", "a/grew": b"12", "a/shrank": b"1", "a/came": b"1" * 99}
    make_wheel(tmp_path / "old", "alpha", {**old, "k.hsaco": bundle_of("gfx906", "gfx942")}, version="1.0")
    make_wheel(tmp_path / "new", "alpha", {**new, "k.hsaco": bundle_of("gfx906", "gfx1100")}, version="2.0")
    make_wheel(tmp_path / "old", "gone", {})
    make_wheel(tmp_path / "new", "fresh", {})
    found = compared(tmp_path / "old", tmp_path / "new")
    files = {
        one.path or one.old_path: (one.fate, one.old_size, one.size) for one in found.files if one.package == "alpha"
    }
    assert {path: what for path, what in files.items() if path.startswith("a/")} == {
        "a/came": (SizeChange.CAME, 0, 99),
        "a/went": (SizeChange.WENT, 50, 0),
        "a/lib-2.0.txt": (SizeChange.GREW, 1, 8),
        "a/grew": (SizeChange.GREW, 1, 2),
        "a/shrank": (SizeChange.SHRANK, 3, 1),
    }
    assert {one.label: one.fate for one in found.packages if one.label != "alpha"} == {
        "gone": SizeChange.WENT,
        "fresh": SizeChange.CAME,
    }
    assert found.targets == (TargetGrowth("gfx942", 4, 0), TargetGrowth("gfx1100", 0, 4))


def test_a_report_compared_with_itself_shows_no_differences(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"a": b"1", "k.hsaco": bundle_of("gfx906")})
    found = compared(wheel, wheel)
    assert (found.packages, found.files, found.targets) == ((), (), ())


def test_artifacts_are_compared_by_name(tmp_path: Path) -> None:
    artifact(tmp_path / "old", "blas_lib_gfx906", {"lib/x": b"1"})
    artifact(tmp_path / "new", "blas_lib_gfx906", {"lib/x": b"12"})
    artifact(tmp_path / "new", "blas_lib_gfx942", {"lib/y": b"1"})
    found = compared(tmp_path / "old", tmp_path / "new")
    assert [(one.label, one.fate, one.old_size, one.size) for one in found.packages] == [
        ("blas", SizeChange.GREW, 1, 3)
    ]
    assert [(one.path, one.fate) for one in found.files] == [("lib/x", SizeChange.GREW), ("lib/y", SizeChange.CAME)]


def test_the_total_growth_is_the_sum_over_files(tmp_path: Path) -> None:
    old = make_wheel(tmp_path / "old", "alpha", {"a": b"1" * 7, "b": b"2"})
    new = make_wheel(tmp_path / "new", "alpha", {"a": b"1", "c": b"3" * 9}, version="2.0")
    report = make_report([new], unread=[], against=old)
    assert report.against is not None
    growth = sum(one.size - one.old_size for one in report.against.files)
    assert growth == report.totals.size - report.against.totals.size
