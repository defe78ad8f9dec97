"""The Starlark files that a consumer's workspace takes: a package with rules for libraries and wheels of ROCm."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.frameworks.generated_file import GeneratedFile

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["StarlarkPackage", "Workspace", "starlark_package"]

Workspace = Literal["workspace", "bzlmod"]
"""How the workspace declares what it depends on: WORKSPACE, or MODULE.bazel."""

_NOTE = "Made by rocwheel jax starlark;"
_FOLDER = "starlark"
_VARIANT = "cc.bzl"
_COMMON = (
    "BUILD.bazel",
    "rocm_shared_library.bzl",
    "rocm_wheel.bzl",
    "rocm_wheel_repository.bzl",
    "run_path.bzl",
    "runtime_library.bzl",
)
_MARKERS = ("MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel")


class StarlarkPackage(msgspec.Struct, frozen=True):
    """The files of the package by name, and the lines that declare it."""

    files: dict[str, GeneratedFile]
    declaration: str
    """Lines for WORKSPACE or MODULE.bazel."""

    def write(self, folder: Path, *, force: bool = False) -> str:
        """Write the files and return the unified diffs to what stood there; raises as `GeneratedFile.write` does."""
        return "".join(file.write(folder / name, force=force) for name, file in self.files.items())


def starlark_package(folder: Path, workspace: Workspace) -> StarlarkPackage:
    """Return the package for ``folder``, which lies in a workspace or becomes one's ``//NAME``."""
    sources = {name: name for name in _COMMON} | {_VARIANT: f"cc.{workspace}.bzl"}
    if workspace == "bzlmod":
        sources["extensions.bzl"] = "extensions.bzl"
    files = {name: GeneratedFile(_NOTE, _read(source)) for name, source in sorted(sources.items())}
    return StarlarkPackage(files, _declaration(_package_name(folder), workspace))


def _read(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(_FOLDER).joinpath(name).read_text()


def _package_name(folder: Path) -> str:
    """Return the folder's path in its workspace; its own name where no workspace is around it."""
    folder = folder.resolve()
    roots = [parent for parent in folder.parents if any((parent / marker).exists() for marker in _MARKERS)]
    return folder.relative_to(roots[0]).as_posix() if roots else folder.name


def _declaration(package: str, workspace: Workspace) -> str:
    if workspace == "bzlmod":
        return (
            'bazel_dep(name = "rules_cc", version = "0.1.1")\n\n'
            f'rocm_wheel = use_extension("//{package}:extensions.bzl", "rocm_wheel")\n'
            'use_repo(rocm_wheel, "rocm_wheel")\n'
        )
    return (
        f'load("//{package}:rocm_wheel_repository.bzl", "rocm_wheel_repository")\n\n'
        'rocm_wheel_repository(name = "rocm_wheel")\n'
    )
