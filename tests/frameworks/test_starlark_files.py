"""The Starlark files; that Bazel takes them is test_bazel.py's to prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.frameworks.generated_file import HandEditedError
from rocwheel.frameworks.starlark_files import starlark_package

if TYPE_CHECKING:
    from pathlib import Path

COMMON = {
    "BUILD.bazel",
    "cc.bzl",
    "rocm_shared_library.bzl",
    "rocm_wheel.bzl",
    "rocm_wheel_repository.bzl",
    "run_path.bzl",
    "runtime_library.bzl",
}


def test_a_workspace_declares_the_repository(tmp_path: Path) -> None:
    (tmp_path / "WORKSPACE").touch()
    package = starlark_package(tmp_path / "third_party/rocm_wheel", "workspace")
    assert set(package.files) == COMMON
    assert package.declaration == (
        'load("//third_party/rocm_wheel:rocm_wheel_repository.bzl", "rocm_wheel_repository")\n\n'
        'rocm_wheel_repository(name = "rocm_wheel")\n'
    )


def test_a_module_uses_the_extension(tmp_path: Path) -> None:
    package = starlark_package(tmp_path / "rocm_wheel", "bzlmod")
    assert set(package.files) == COMMON | {"extensions.bzl"}
    assert package.declaration == (
        'bazel_dep(name = "rules_cc", version = "0.1.1")\n\n'
        'rocm_wheel = use_extension("//rocm_wheel:extensions.bzl", "rocm_wheel")\n'
        'use_repo(rocm_wheel, "rocm_wheel")\n'
    )


def test_only_the_c_rules_differ_between_the_two(tmp_path: Path) -> None:
    old, new = (starlark_package(tmp_path, kind).files for kind in ("workspace", "bzlmod"))
    assert [name for name in sorted(COMMON) if old[name] != new[name]] == ["cc.bzl"]


def test_an_edited_file_is_not_overwritten(tmp_path: Path) -> None:
    package = starlark_package(tmp_path, "workspace")
    package.write(tmp_path)
    assert package.write(tmp_path) == ""
    (tmp_path / "run_path.bzl").write_text("mine")
    with pytest.raises(HandEditedError):
        package.write(tmp_path)
    assert "-mine\n" in package.write(tmp_path, force=True)
