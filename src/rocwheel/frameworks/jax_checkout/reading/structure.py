"""Where everything is in a checkout of rocm-jax's kind."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax_checkout.editing.rc_file import config_options
from rocwheel.frameworks.jax_checkout.editing.starlark import StarlarkFile, attribute, called, string_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.frameworks.jax_checkout.checkout import Checkout

__all__ = [
    "BUILD_NAMES",
    "JAX_BUILD",
    "LINKING_RULES",
    "WORKSPACE",
    "Structure",
    "find_structure",
    "is_linked",
    "jax_rules",
    "strip_level",
]

WORKSPACE = "jax_rocm_plugin"
"""The folder of the Bazel workspace."""

JAX_BUILD = "jaxlib/rocm/BUILD"
"""The file of JAX that links the extension modules."""

LINKING_RULES = ("cc_binary", "nanobind_extension", "pybind_extension")
"""Rules that link shared libraries; a ``cc_binary`` does with ``linkshared``."""

BUILD_NAMES = ("BUILD.bazel", "BUILD")
"""Names of a package's file, of which Bazel reads the first that is there."""

_STRIP = re.compile(r"[\"']-p(\d)[\"']")
_PATCHED = ("git_repository", "http_archive", "new_git_repository")


class Structure(msgspec.Struct, frozen=True):
    """Paths of files below the checkout's root."""

    bazelrc: str
    workspace: str
    """The file ``WORKSPACE``."""
    workspace_name: str
    """The name by which other repositories call the workspace."""
    pjrt: str
    """The BUILD file of the PJRT plugin."""
    pjrt_library: str
    """The plugin's target."""
    plugin_tools: str
    """The BUILD file of the builder of the extension modules' wheel."""
    jax: str
    """The Starlark file that fetches ``@jax``."""


def is_linked(call: ast.Call) -> bool:
    """Return whether a rule links a shared library."""
    linkshared = attribute(call, "linkshared")
    is_shared = isinstance(linkshared, ast.Constant) and bool(linkshared.value)
    return called(call) in LINKING_RULES and (called(call) != "cc_binary" or is_shared)


def find_structure(checkout: Checkout, source: str) -> Structure:
    """Return where everything is; raise `ProblemsError` with all that was expected and is not there."""
    search = _Search(checkout)
    bazelrc = search.file(f"{WORKSPACE}/.bazelrc", "the configs rocm or rocm_base", _has_rocm_config)
    workspace = search.file(f"{WORKSPACE}/WORKSPACE", "workspace(name = ...)", _workspace_name)
    pjrt = search.build_file(f"{WORKSPACE}/pjrt", "one cc_binary with linkshared, the plugin", _plugin_library)
    tools = search.build_file(
        f"{WORKSPACE}/jaxlib_ext/tools", "what the wheel of the extension modules takes", _anything
    )
    jax = search.file(f"{WORKSPACE}/third_party/jax/workspace.bzl", "a rule that fetches @jax with patches", _jax_rule)
    if search.problems:
        subject = f"{source}: is no checkout of rocm-jax's kind"
        raise ProblemsError(subject, search.problems)
    return Structure(bazelrc[0], workspace[0], workspace[1], pjrt[0], pjrt[1], tools[0], jax[0])


class _Search:
    """Files that are looked for, and the problems with them."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self.problems: list[InputError] = []

    def file(self, path: str, expected: str, find: Callable[[str, str], str]) -> tuple[str, str]:
        """Return a file and what is found in it, empty if nothing is."""
        return self._first([path], path, expected, find)

    def build_file(self, folder: str, expected: str, find: Callable[[str, str], str]) -> tuple[str, str]:
        """Return a package's BUILD file and what is found in it."""
        paths = [f"{folder}/{name}" for name in BUILD_NAMES]
        return self._first(paths, f"{folder}/BUILD", expected, find)

    def _first(self, paths: list[str], name: str, expected: str, find: Callable[[str, str], str]) -> tuple[str, str]:
        there = next((path for path in paths if path in self._checkout.files), "")
        if not there:
            self.problems.append(InputError(name, "is not there", expected=f"this file with {expected}"))
            return "", ""
        try:
            found = find(there, self._checkout.text(there))
        except InputError as e:
            self.problems.append(e)
            return there, ""
        if not found:
            self.problems.append(InputError(there, "is of another kind", expected=expected))
        return there, found


def _anything(path: str, text: str) -> str:
    return path + text


def _has_rocm_config(path: str, text: str) -> str:
    del path
    return "yes" if {"rocm", "rocm_base"} & config_options(text).keys() else ""


def _workspace_name(path: str, text: str) -> str:
    calls = StarlarkFile(path, text).calls("workspace")
    return next((name for call in calls if (name := string_attribute(call, "name"))), "")


def _plugin_library(path: str, text: str) -> str:
    names = [string_attribute(call, "name") for call in StarlarkFile(path, text).calls("cc_binary") if is_linked(call)]
    return names[0] if len(names) == 1 else ""


def _jax_rule(path: str, text: str) -> str:
    return next((string_attribute(call, "name") for call in jax_rules(StarlarkFile(path, text))), "")


def jax_rules(file: StarlarkFile) -> Iterator[ast.Call]:
    """Yield the calls of rules that fetch ``@jax``."""
    return (call for call in file.calls(*_PATCHED) if string_attribute(call, "name") == "jax")


def strip_level(file: StarlarkFile, rule: ast.Call) -> int:
    """Return how many folders a rule strips from the names in patches: ``-p0`` is Bazel's default."""
    given = attribute(rule, "patch_args")
    levels = _STRIP.findall(file.source(given)) if given else []
    return int(levels[-1]) if levels else 0
