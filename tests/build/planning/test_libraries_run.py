"""Tests of `rocwheel.build.planning.libraries`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.artifacts import artifact, build_packages
from tests.support.overlay_packages import add_library, build_overlays, unpack

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


def told(dist: Path, site: Path) -> dict[str, Any]:
    tree = ast.parse((unpack(dist, site) / "rocm_sdk/_build_info.py").read_text())
    pairs = [(line.targets[0], line.value) for line in tree.body if isinstance(line, ast.Assign)]
    return {name.id: ast.literal_eval(value) for name, value in pairs if isinstance(name, ast.Name)}


def test_libraries_come_after_their_dependencies(tmp_path: Path) -> None:
    dist, _ = build_overlays(tmp_path)
    assert told(dist, tmp_path / "site")["OVERLAID"] == {
        "hipblas": ["lib/librocblas.so.5"],
        "hipsparse": ["lib/librocblas.so.5", "lib/librocsparse.so.1"],
    }


def test_libraries_that_need_each_other_are_listed_once(tmp_path: Path) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    add_library(stage, "librocblas.so.5", ["gfx906 gfx1030"])
    add_library(stage, "libhipblas.so.3", ["gfx906 gfx1030"], ["librocblas.so.5"])
    add_library(stage, "librocblas.so.5", ["gfx906 gfx1030"], ["libhipblas.so.3"])
    dist, _ = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel")
    assert told(dist, tmp_path / "site")["OVERLAID"] == {"hipblas": ["lib/librocblas.so.5", "lib/libhipblas.so.3"]}


@pytest.mark.parametrize(
    ("common", "gpus"),
    [
        ("gfx906", ["gfx906"]),
        ("gfx11-generic", ["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"]),
    ],
)
def test_gpus_that_all_common_libraries_support_are_listed(tmp_path: Path, common: str, gpus: list[str]) -> None:
    stage = artifact(tmp_path / "in", "blas_lib_generic")
    add_library(stage, "libhipblas.so.3", ["gfx906:xnack- gfx1030 gfx11-generic"])
    dist, _ = build_packages(tmp_path, "--split-device=overlay", "--selector", "wheel", "--common", common)
    assert told(dist, tmp_path / "site")["COMMON_GPUS"] == gpus


def test_without_overlaid_libraries_no_gpus_are_listed(tmp_path: Path) -> None:
    add_library(artifact(tmp_path / "in", "blas_lib_generic"), "libhipblas.so.3", ["gfx906"])
    dist, _ = build_packages(tmp_path, "--selector", "wheel")
    facts = told(dist, tmp_path / "site")
    assert (facts["OVERLAID"], facts["COMMON_GPUS"]) == ({}, [])
