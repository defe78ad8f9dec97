"""What an old command line of ``build/build.py`` asks for, with the old tool's defaults where it says nothing."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax_migration.build_py import option_fates, variable_fates

if TYPE_CHECKING:
    from rocwheel.frameworks.jax_migration.build_py import OldCommand

__all__ = [
    "DEFAULT_CLANG",
    "STAMPED",
    "WHEEL_KINDS",
    "bazel_configs",
    "carried_options",
    "clang_configs",
    "compiler",
    "compiler_major",
    "cpu_features",
    "gpu_targets",
    "overridden_repositories",
    "python_version",
    "uses_clang",
    "wheel_names",
]

WHEEL_KINDS = {"jax-rocm-plugin": "plugin", "jax-rocm-pjrt": "pjrt"}
"""The wheels that the workspace builds, with their names in ``rocwheel jax wheel``."""

STAMPED = {"xla": "ROCm/xla", "jax": "jax"}
"""The repositories of the workspace whose commits wheels record, with their names there."""

DEFAULT_CLANG = "/usr/lib/llvm-18/bin/clang"
"""The compiler where nothing names one."""

_TARGETS = "gfx908,gfx90a,gfx9-4-generic,gfx10-3-generic,gfx11-generic,gfx12-generic"
_GCC = "/usr/bin/gcc"
_PYTHON = "3.12"
_CLANG_CONFIG_FROM = 16
_OVERRIDE_OPTION = "--override_repository"


def python_version(old: OldCommand) -> str:
    """Return the Python that is built for; by default the one that ran the old tool, if the program's name says it."""
    return old.text("python_version") or old.interpreter or _PYTHON


def gpu_targets(old: OldCommand) -> list[str]:
    """Return the GPU targets; by default those of the last version of the old tool."""
    return (old.text("rocm_amdgpu_targets") or _TARGETS).split(",")


def cpu_features(old: OldCommand) -> str:
    """Return the CPU features as settings name them: ``release`` stood for AVX, which only x86-64 has."""
    features = old.text("target_cpu_features", "release")
    is_x86 = old.text("target_cpu", "x86_64").endswith("x86_64")
    return features if is_x86 or features != "release" else "default"


def uses_clang(old: OldCommand) -> bool:
    """Return whether the C++ compiler is a clang."""
    return old.text("use_clang", "true").lower() == "true"


def compiler(old: OldCommand) -> str:
    """Return the C++ compiler's path."""
    return (old.text("clang_path") or DEFAULT_CLANG) if uses_clang(old) else (old.text("gcc_path") or _GCC)


def compiler_major(old: OldCommand) -> int | None:
    """Return the compiler's major version, if its path says it."""
    return BazelSettings(1, compiler(old), (), ()).compiler_major


def overridden_repositories(old: OldCommand) -> dict[str, str]:
    """Return the repositories that ``--bazel_options`` replace by a folder; Bazel takes the last one of each name."""
    words = old.texts("bazel_options")
    pairs = zip_longest(words, words[1:], fillvalue="")
    joined = (f"{word}={following}" if word == _OVERRIDE_OPTION else word for word, following in pairs)
    values = (word.partition("=")[2] for word in joined if word.startswith(f"{_OVERRIDE_OPTION}="))
    paths = {name: path for name, _, path in (value.partition("=") for value in values)}
    return {name: path for name, path in paths.items() if path}


def bazel_configs(old: OldCommand) -> list[str]:
    """Return the configs of the workspace's own ``.bazelrc`` that the old tool chose."""
    configs = ["rocm_base", *(["rocm", *clang_configs(compiler_major(old))] if uses_clang(old) else [])]
    if old.has("disable_nccl"):
        configs.append("nonccl")
    if not old.has("disable_mkl_dnn"):
        configs.append("mkl_aarch64_threadpool" if old.text("target_cpu") == "aarch64" else "mkl_open_source_only")
    return configs


def clang_configs(major: int | None) -> list[str]:
    """Return the config that a clang of this version needs besides, none for an older or unknown one."""
    return ["clang"] if (major or 0) >= _CLANG_CONFIG_FROM else []


def carried_options(old: OldCommand) -> list[str]:
    """Return the options of Bazel that say what settings can't: values that are known only when the commands run."""
    fates = option_fates() | variable_fates()
    return [option + value for name, value in old.carried.items() if name in fates for option in fates[name].carried]


def wheel_names(old: OldCommand) -> list[str]:
    """Return the names of the wheels; their ``jax-`` may be left out on the command line."""
    words = [word for word in old.text("wheels").split(",") if word]
    return [word if "jax" in word or not re.search("plugin|pjrt", word) else f"jax-{word}" for word in words]
