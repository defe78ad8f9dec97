"""The BUILD file of ``@jax//jaxlib/rocm`` as Bazel builds it, and the patch that sets run paths there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax_checkout.editing.patch import text_patch
from rocwheel.frameworks.jax_checkout.editing.splices import added_load, added_to_attribute, spliced
from rocwheel.frameworks.jax_checkout.editing.starlark import StarlarkFile, attribute, string_attribute
from rocwheel.frameworks.jax_checkout.reading.structure import JAX_BUILD, is_linked

if TYPE_CHECKING:
    import ast

    from rocwheel.frameworks.jax_checkout.editing.splices import Splice

__all__ = ["NO_SOLIB", "jax_patch", "run_path_splices"]

NO_SOLIB = '"no_solib_rpaths"'
"""The feature of JAX's toolchains that keeps Bazel's own ``_solib_`` folders out of run paths, as a literal."""

_RULES = "rocm_wheel:run_path.bzl"
_FUNCTION = "wheel_run_path_linkopts"
_JAX_RULES = ("nanobind_extension", "pybind_extension", "cc_binary")


def run_path_splices(file: StarlarkFile, calls: list[ast.Call], folder: str, workspace: str = "") -> list[Splice]:
    """Return what links libraries with the run path of a folder in site-packages; ``workspace`` names another one."""
    label = f"@{workspace}//{_RULES}" if workspace else f"//{_RULES}"
    splices: list[Splice] = []
    for call in calls:
        linkopts, features = attribute(call, "linkopts"), attribute(call, "features")
        if linkopts is None or _FUNCTION not in file.source(linkopts):
            splices += added_to_attribute(file, call, "linkopts", f'{_FUNCTION}("{folder}")')
        if features is None or NO_SOLIB not in file.source(features):
            splices += added_to_attribute(file, call, "features", NO_SOLIB, element=True)
    return [*added_load(file, label, _FUNCTION), *splices] if splices else []


def jax_patch(text: str, modules: list[str], folder: str, workspace: str, *, level: int = 1) -> str:
    """Return the patch of JAX's BUILD file, with ``level`` folders before its name.

    Raises `InputError` if the file doesn't link each of the modules.
    """
    file = StarlarkFile(f"@jax//{JAX_BUILD}", text)
    rules = {string_attribute(call, "name"): call for call in file.calls(*_JAX_RULES) if is_linked(call)}
    if missing := [name for name in modules if name.removesuffix(".so") not in rules and name not in rules]:
        found = f"has no rule that links {', '.join(missing)}"
        raise InputError(file.path, found, expected=f"one of {', '.join(_JAX_RULES)} for each")
    calls = [call for name, call in rules.items() if f"{name.removesuffix('.so')}.so" in modules]
    new = spliced(file, run_path_splices(file, calls, folder, workspace))
    names = ("a/" * level + JAX_BUILD, "b/" * level + JAX_BUILD)
    return text_patch(names, text, new)
