"""What an old command line of ``build/build.py`` asks for, with what the old tool took where it says nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.bazel_settings import BazelSettings

if TYPE_CHECKING:
    from rocwheel.frameworks.build_py import OldCommand

__all__ = [
    "WHEEL_KINDS",
    "bazel_configs",
    "compiler",
    "cpu_features",
    "gpu_targets",
    "python_version",
    "uses_clang",
    "wheel_names",
]

WHEEL_KINDS = {"jax-rocm-plugin": "plugin", "jax-rocm-pjrt": "pjrt"}
"""The wheels that the workspace builds, to what ``rocwheel jax wheel`` calls them."""

_TARGETS = "gfx908,gfx90a,gfx9-4-generic,gfx10-3-generic,gfx11-generic,gfx12-generic"
_CLANG = "/usr/lib/llvm-18/bin/clang"
_GCC = "/usr/bin/gcc"
_PYTHON = "3.12"
_CLANG_CONFIG_FROM = 16


def python_version(old: OldCommand) -> str:
    """Return the Python that is built for; by default the one that ran the old tool, where its name tells it."""
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
    """Tell whether the C++ compiler is a clang."""
    return old.text("use_clang", "true").lower() == "true"


def compiler(old: OldCommand) -> str:
    """Return the C++ compiler's path."""
    return (old.text("clang_path") or _CLANG) if uses_clang(old) else (old.text("gcc_path") or _GCC)


def bazel_configs(old: OldCommand) -> list[str]:
    """Return the configs of the workspace's own ``.bazelrc`` that the old tool chose."""
    configs = ["rocm_base", *(["rocm"] if uses_clang(old) else [])]
    major = BazelSettings(1, compiler(old), (), ()).compiler_major
    if uses_clang(old) and (major or 0) >= _CLANG_CONFIG_FROM:
        configs.append("clang")
    if old.has("disable_nccl"):
        configs.append("nonccl")
    if not old.has("disable_mkl_dnn"):
        configs.append("mkl_aarch64_threadpool" if old.text("target_cpu") == "aarch64" else "mkl_open_source_only")
    return configs


def wheel_names(old: OldCommand) -> list[str]:
    """Return the names of the wheels; their ``jax-`` may be left out on the command line."""
    words = [word for word in old.text("wheels").split(",") if word]
    return [word if "jax" in word or not re.search("plugin|pjrt", word) else f"jax-{word}" for word in words]
