"""Tests of duplicates across packages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.report.make_report import make_report
from rocwheel.report.values import Copies, Copy
from tests.support.artifacts import artifact
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


def duplicates_in(*paths: Path) -> list[Copies]:
    """Return the duplicates but for metadata."""
    found = make_report(paths, unread=[]).duplicates
    return [copies for copies in found if "dist-info" not in copies.files[0].path]


def test_files_of_two_wheels_with_the_same_content_are_found(tmp_path: Path) -> None:
    data = os.urandom(500)
    make_wheel(tmp_path, "alpha", {"a/x": data, "a/again": data, "a/other": b"1" * 500})
    make_wheel(tmp_path, "beta", {"b/x": data, "b/short": b"1"})
    assert duplicates_in(tmp_path) == [Copies(500, 500, (Copy(0, "a/again"), Copy(0, "a/x"), Copy(1, "b/x")))]


def test_one_copy_counts_for_each_package(tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        make_wheel(tmp_path, name, {f"{name}/{number}": b"12345" for number in range(10)})
    (copies,) = duplicates_in(tmp_path)
    assert (copies.size, copies.wasted, len(copies.files)) == (5, 10, 30)


def test_copies_in_one_package_do_not_count(tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {"a": b"123", "b": b"123"})
    assert duplicates_in(tmp_path) == []


def test_files_on_disk_are_compared_with_members_of_wheels(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "alpha", {"a": b"12345"})
    artifact(tmp_path / "in", "base_lib_generic", {"x": b"12345", "y": b"54321"})
    assert duplicates_in(wheel, tmp_path / "in") == [Copies(5, 5, (Copy(0, "a"), Copy(1, "x")))]


def test_empty_files_do_not_count(tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {"a": b""})
    make_wheel(tmp_path, "beta", {"b": b""})
    assert duplicates_in(tmp_path) == []
