"""The Starlark files for a user's workspace: a package with rules for libraries and wheels of ROCm."""

from __future__ import annotations

import importlib.resources
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.generated_file import GeneratedFile, HandEditedError, refuse_edited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["HandEditedFilesError", "StarlarkPackage", "Workspace", "starlark_package"]

Workspace = Literal["workspace", "bzlmod"]
"""How the workspace declares what it depends on: WORKSPACE, or MODULE.bazel."""

_PACKAGE = re.compile(r"[\w./+=,@~-]*", re.ASCII)
_NOTE = "Made by rocwheel jax starlark;"
_FOLDER = "starlark"
_VARIANT = "cc.bzl"
_EXTENSIONS = "extensions.bzl"
_COMMON = (
    "BUILD.bazel",
    "rocm_shared_library.bzl",
    "rocm_wheel.bzl",
    "rocm_wheel_repository.bzl",
    "run_path.bzl",
    "runtime_library.bzl",
)
_JAX_RULES = "jax_wheel_binary.bzl"
_MARKERS = ("MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel")


class HandEditedFilesError(ProblemsError):
    """Files were edited by hand, or made by something else, and so none is written."""

    exit_status = 1


class StarlarkPackage(msgspec.Struct, frozen=True):
    """The files of the package by name, and the lines that declare it."""

    files: dict[str, GeneratedFile]
    declaration: str
    """Lines for WORKSPACE or MODULE.bazel."""

    def write(self, folder: Path, *, force: bool = False) -> str:
        """Write the files and return the unified diffs from the old texts.

        Unless ``force`` is given, raises `HandEditedFilesError` with all that were edited, before any is written.
        Raises what `GeneratedFile.write` raises.
        """
        if not force and (edited := list(self._edited(folder))):
            raise HandEditedFilesError(str(folder), edited)
        return "".join(file.write(folder / name, force=force) for name, file in self.files.items())

    def diff(self, folder: Path) -> str:
        """Return the unified diffs from the texts in ``folder``."""
        return "".join(file.diff(folder / name) for name, file in self.files.items())

    def _edited(self, folder: Path) -> Iterator[HandEditedError]:
        for name in self.files:
            try:
                refuse_edited(folder / name)
            except HandEditedError as e:  # noqa: PERF203 (all of them are reported)
                yield e


def starlark_package(folder: Path, workspace: Workspace, *, jax_rules: bool = False) -> StarlarkPackage:
    """Return the package for ``folder``, which is in a workspace or becomes the package ``//NAME`` of one.

    With ``jax_rules``, it has the program for JAX's own wheel rules, which loads files of JAX's repository.
    Raises `InputError` for a folder that no label can name, and for one that has the files for MODULE.bazel when those
    for WORKSPACE are asked for.
    """
    if workspace == "workspace" and _is_generated(folder / _EXTENSIONS):
        remedy = f"Give --bzlmod, or delete {_EXTENSIONS} first."
        raise InputError(
            folder, "has the files for MODULE.bazel", expected="the files for WORKSPACE, or no files", remedy=remedy
        )
    sources = {name: name for name in _COMMON} | {_VARIANT: f"cc.{workspace}.bzl"}
    if jax_rules:
        sources[_JAX_RULES] = _JAX_RULES
    if workspace == "bzlmod":
        sources[_EXTENSIONS] = _EXTENSIONS
    files = {name: GeneratedFile(_NOTE, _read(source)) for name, source in sorted(sources.items())}
    return StarlarkPackage(files, _declaration(_package_name(folder), workspace))


def _is_generated(path: Path) -> bool:
    return path.is_file() and path.read_bytes().startswith(f"# {_NOTE}".encode())


def _read(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(_FOLDER).joinpath(name).read_text()


def _package_name(folder: Path) -> str:
    """Return the folder's path in its workspace, empty for the workspace itself; its name if it is in no workspace.

    Raises `InputError` for a name that no label can have.
    """
    folder = folder.resolve()
    roots = [parent for parent in (folder, *folder.parents) if any((parent / marker).exists() for marker in _MARKERS)]
    name = folder.relative_to(roots[0]).as_posix().removeprefix(".") if roots else folder.name
    if not _PACKAGE.fullmatch(name):
        raise InputError(folder, "can't be a package of Bazel", expected="a path of letters, digits and /-.@_+=,~")
    return name


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
