"""The Starlark files; that Bazel takes them is test_bazel.py's to prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.starlark_files import HandEditedFilesError, starlark_package

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


def test_the_program_for_the_rules_of_jax_is_for_its_workspace_alone(tmp_path: Path) -> None:
    package = starlark_package(tmp_path, "workspace", jax_rules=True)
    assert set(package.files) == COMMON | {"jax_wheel_binary.bzl"}


def test_a_package_for_a_module_becomes_none_for_a_workspace_unnoticed(tmp_path: Path) -> None:
    starlark_package(tmp_path, "bzlmod").write(tmp_path)
    with pytest.raises(InputError) as caught:
        starlark_package(tmp_path, "workspace")
    assert str(caught.value) == (
        f"{tmp_path}: has the files for MODULE.bazel; expected the files for WORKSPACE, or no files. "
        "Give --bzlmod, or delete extensions.bzl first."
    )
    (tmp_path / "extensions.bzl").write_text("# of somebody else\n")
    assert set(starlark_package(tmp_path, "workspace").files) == COMMON


def test_only_the_c_rules_differ_between_the_two(tmp_path: Path) -> None:
    old, new = (starlark_package(tmp_path, kind).files for kind in ("workspace", "bzlmod"))
    assert [name for name in sorted(COMMON) if old[name] != new[name]] == ["cc.bzl"]


def test_edited_files_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    package = starlark_package(tmp_path, "workspace")
    package.write(tmp_path)
    assert package.write(tmp_path) == ""
    (tmp_path / "BUILD.bazel").unlink()
    for name in ("cc.bzl", "run_path.bzl"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(HandEditedFilesError) as caught:
        package.write(tmp_path)
    found = "was edited by hand, or made by something else. Put the changes elsewhere, or give --force to lose them."
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path / name}: {found}" for name in ("cc.bzl", "run_path.bzl")
    ]
    assert not (tmp_path / "BUILD.bazel").exists()
    assert "-mine\n" in package.write(tmp_path, force=True)


def test_the_workspace_itself_is_the_package_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "WORKSPACE").touch()
    assert starlark_package(tmp_path, "workspace").declaration.startswith('load("//:rocm_wheel_repository.bzl"')


def test_a_folder_that_no_label_can_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be a package of Bazel"):
        starlark_package(tmp_path / 'a b"c', "workspace")
