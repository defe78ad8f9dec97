"""Tests of where archives are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.kpack.search import FoundFile, find_archives

if TYPE_CHECKING:
    from pathlib import Path


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


def found(root: Path, search_path: str) -> list[str]:
    return [str(file.path.relative_to(root)) for file in find_archives(root / "lib", search_path)]


def test_every_target_stands_for_the_placeholder(tmp_path: Path) -> None:
    names = ["gfx906", "gfx90a:xnack+", "gfx11-generic", "gfx1250-strict"]
    make(tmp_path, "lib/x", *(f".kpack/blas_{name}.kpack" for name in names))
    expected = [FoundFile(tmp_path / f".kpack/blas_{name}.kpack", name) for name in sorted(names)]
    assert find_archives(tmp_path / "lib", "../.kpack/blas_@GFXARCH@.kpack") == tuple(expected)


@pytest.mark.parametrize("name", ["blas_lib_gfx906.kpack", "blas_gfx906.kpack.bak", "blas_.kpack", "blas_x y.kpack"])
def test_archive_of_another_name_is_not_taken(tmp_path: Path, name: str) -> None:
    make(tmp_path, "lib/x", f".kpack/{name}")
    assert found(tmp_path, "../.kpack/blas_@GFXARCH@.kpack") == []


def test_second_placeholder_stands_for_itself(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", "gfx906/gfx906.kpack", "gfx906/@GFXARCH@.kpack")
    assert found(tmp_path, "../@GFXARCH@/@GFXARCH@.kpack") == ["gfx906/@GFXARCH@.kpack"]


def test_path_without_placeholder_is_one_file(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", "all.kpack")
    assert found(tmp_path, "../all.kpack") == ["all.kpack"]
    assert found(tmp_path, str(tmp_path / "all.kpack")) == ["all.kpack"]
    assert found(tmp_path, "../none.kpack") == []
    assert found(tmp_path, "..") == []


def test_signs_of_patterns_stand_for_themselves(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", "a/x_gfx906.kpack", "[a]/x_gfx906.kpack")
    assert found(tmp_path, "../[a]/x_@GFXARCH@.kpack") == ["[a]/x_gfx906.kpack"]


def test_paths_begin_in_the_folder_that_the_library_really_is_in(tmp_path: Path) -> None:
    make(tmp_path, "lib/x", ".kpack/x_gfx906.kpack")
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "far" / "away" / "link").symlink_to(tmp_path / "lib")
    assert find_archives(tmp_path / "far/away/link", "../.kpack/x_@GFXARCH@.kpack") == (
        FoundFile(tmp_path / ".kpack/x_gfx906.kpack", "gfx906"),
    )
