"""Renders ``rocm.toml`` from the settings in a checkout's files."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax.bazel_files import StarlarkFile, attribute, config_options, environment
from rocwheel.frameworks.jax.build_py import DEFAULT_CLANG, clang_configs
from rocwheel.frameworks.jax.checkout import WORKSPACE
from rocwheel.frameworks.jax.editing import ask
from rocwheel.frameworks.jax.settings import PYTHON_VERSION, BazelSettings, settings_line
from rocwheel.frameworks.jax.starlark import jax_wheel_description

if TYPE_CHECKING:
    from rocwheel.frameworks.jax.checkout import Checkout, Structure

BUILDERS = ("jaxlib_ext/tools/build_gpu_kernels_wheel.py", "pjrt/tools/build_gpu_plugin_wheel.py")
"""The old scripts that assemble wheels, relative to the workspace."""

_ROCM = "/opt/rocm"
_WIDTH = 110
_ROCM_PATH_OPTION = re.compile(r"--rocm_path=([\w./+-]+)")
_SYSTEM_FOLDER = re.compile(r"/[\w.+/-]*/lib(/[\w.+/-]*)?")
_COMMIT_CONSTANTS = {"ROCm/xla": ("xla", ("XLA_COMMIT", "COMMIT")), "jax": ("jax", ("JAX_COMMIT", "COMMIT"))}


def plugin_modules() -> list[str]:
    """Return the file names of the extension modules that the wheel contains from ``@jax//jaxlib/rocm``."""
    files: list[dict[str, str]] = jax_wheel_description("plugin")["files"]
    return [str(file["from"]).rpartition("/")[2] for file in files]


def settings_text(checkout: Checkout, structure: Structure) -> str:
    """Return the text of ``rocm.toml``. Above each setting that the checkout doesn't decide, there is a question."""
    configs = config_options(checkout.text(structure.bazelrc))
    variables = environment([*configs.get("rocm_base", []), *configs.get("rocm", [])])
    questions: dict[str, str] = {}
    fields = {
        "schema": 1,
        "compiler": _compiler(variables, questions),
        "rocm-path": _rocm_path(checkout, variables, questions),
        "targets": _targets(variables, questions),
        "python-versions": _python_versions(checkout, structure, questions),
        "search": _search(checkout, questions),
        "configs": _configs(configs, variables),
        "pjrt-targets": [f"//pjrt:{structure.pjrt_library}"],
        "plugin-targets": [f"@jax//jaxlib/rocm:{name}" for name in plugin_modules()],
        "wheel-sources": _wheel_sources(checkout, questions),
        "commits": _commits(checkout),
    }
    lines = [
        (ask(questions[name]) if name in questions else "") + settings_line(name, value, width=_WIDTH)
        for name, value in fields.items()
        if value
    ]
    return "# The input of `rocwheel jax bazelrc` and `rocwheel jax commands`.\n" + "".join(lines)


def _compiler(variables: dict[str, str], questions: dict[str, str]) -> str:
    if "CLANG_COMPILER_PATH" in variables:
        return variables["CLANG_COMPILER_PATH"]
    questions["compiler"] = (
        "which compiler? .bazelrc doesn't set CLANG_COMPILER_PATH, and build.py used the first compiler on PATH."
    )
    return DEFAULT_CLANG


def _rocm_path(checkout: Checkout, variables: dict[str, str], questions: dict[str, str]) -> str:
    if "ROCM_PATH" in variables:
        return variables["ROCM_PATH"]
    given = {str(path) for file in checkout.files.values() for path in _ROCM_PATH_OPTION.findall(file.text)}
    if len(given) == 1:
        return next(iter(given))
    found = f"the callers of build.py name {', '.join(sorted(given))}" if given else "no file in this checkout names it"
    questions["rocm-path"] = f"which ROCm does the build use? {found[0].upper()}{found[1:]}."
    return _ROCM


def _targets(variables: dict[str, str], questions: dict[str, str]) -> list[str]:
    if variables.get("TF_ROCM_AMDGPU_TARGETS"):
        return variables["TF_ROCM_AMDGPU_TARGETS"].split(",")
    questions["targets"] = (
        "which GPU targets? .bazelrc doesn't set TF_ROCM_AMDGPU_TARGETS; these are the defaults of rocm-jax."
    )
    return ["list@rocm-jax"]


def _python_versions(checkout: Checkout, structure: Structure, questions: dict[str, str]) -> list[str]:
    file = StarlarkFile(structure.workspace, checkout.text(structure.workspace))
    for call in file.calls("python_init_repositories"):
        value = attribute(call, "requirements")
        keys = value.keys if isinstance(value, ast.Dict) else []
        texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        if versions := [text for text in texts if PYTHON_VERSION.fullmatch(text)]:
            return versions
    questions["python-versions"] = (
        "which Python versions? WORKSPACE doesn't call python_init_repositories with requirements."
    )
    return ["3.12"]


def _search(checkout: Checkout, questions: dict[str, str]) -> list[str]:
    """Return the search folders from the old builders' patchelf calls.

    System folders stay, and ``$SDK`` replaces packages.
    """
    texts = [checkout.text(f"{WORKSPACE}/{path}") for path in BUILDERS]
    if any("_rocm_sdk_libraries_" in text for text in texts):
        questions["search"] = (
            "does each family have its own SDK? The builders searched _rocm_sdk_libraries_FAMILY for every family. "
            "If so, set target-family."
        )
    strings = [string for text in texts if "patchelf" in text for string in StarlarkFile("builder", text).strings()]
    folders = dict.fromkeys(string for string in strings if _SYSTEM_FOLDER.fullmatch(string))
    return ["$SDK", *folders] if folders else []


def _configs(configs: dict[str, list[str]], variables: dict[str, str]) -> list[str]:
    """Return the workspace's configs that build.py selected, except configs that another of them includes."""
    compiler = BazelSettings(1, variables.get("CLANG_COMPILER_PATH", DEFAULT_CLANG), (), ())
    wanted = ["rocm", "rocm_base", *clang_configs(compiler.compiler_major)]
    there = [name for name in (*wanted, "mkl_open_source_only") if name in configs]
    brought = {option.partition("=")[2] for name in there for option in configs[name] if option.startswith("--config=")}
    return [name for name in there if name not in brought]


def _wheel_sources(checkout: Checkout, questions: dict[str, str]) -> list[str]:
    sources = list(BazelSettings(1, "", (), ()).wheel_sources)
    missing = [path for path in sources if f"{WORKSPACE}/{path}" not in checkout.files]
    if missing:
        questions["wheel-sources"] = f"where are these files? This checkout doesn't contain {', '.join(missing)}."
    return sources


def _commits(checkout: Checkout) -> dict[str, str]:
    commits = {}
    for repository, (folder, names) in _COMMIT_CONSTANTS.items():
        path = f"third_party/{folder}/workspace.bzl"
        text = checkout.text(f"{WORKSPACE}/{path}")
        constants = StarlarkFile(path, text).constants() if text else {}
        constant = next((name for name in names if name in constants), "")
        if constant:
            commits[repository] = f"{path}:{constant}"
    return commits
