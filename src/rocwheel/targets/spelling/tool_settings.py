"""The settings by which each tool takes GPU targets."""

from __future__ import annotations

import shlex
from enum import Enum
from typing import TYPE_CHECKING

from rocwheel.targets.spelling.gentoo import ebuild_fragment, gentoo_variables, spell_desc
from rocwheel.targets.spelling.linux_distributions import debian_build, debian_field, rpm_macros, spack_variant
from rocwheel.targets.spelling.spellings import (
    file_name_spelling,
    spell_cmake,
    spell_commas,
    spell_lines,
    spell_offload_arch,
)

if TYPE_CHECKING:
    from rocwheel.targets.spelling.target_set import TargetSet

__all__ = ["WITH_OPTIONAL", "Tool", "flags_for"]


class Tool(str, Enum):
    """A tool, or a kind of file, that takes GPU targets."""

    CMAKE = "cmake"
    HIP = "hip"
    BAZEL = "bazel"
    TORCH = "torch"
    JAX = "jax"
    SPACK = "spack"
    NIX = "nix"
    GENTOO = "gentoo"
    GENTOO_DESC = "gentoo-desc"
    EBUILD = "ebuild"
    DEBIAN = "debian"
    DEBIAN_BUILD = "debian-build"
    RPM = "rpm"
    TARGET_LST = "target-lst"
    FILE_NAME = "file-name"


def flags_for(tool: Tool, targets: TargetSet, optional: TargetSet | None = None) -> str:
    """Return the settings for ``tool``, whole lines: command-line arguments, or the text of a file that it reads.

    Arguments are quoted for the shell where they need it. Only Gentoo has ``optional`` targets, off by default.
    Raises `NoFlagError` for what Gentoo, Spack or ``ROCM_TARGET_LST`` have no name for.
    """
    if tool in WITH_OPTIONAL:
        return WITH_OPTIONAL[tool](targets, optional.processors if optional else ())
    return _WRITERS[tool](targets)


def _cmake(targets: TargetSet) -> str:
    # GPU_TARGETS is today's name, AMDGPU_TARGETS that of older ROCm; CMake's HIP language has its own.
    names = ("CMAKE_HIP_ARCHITECTURES", "GPU_TARGETS", "AMDGPU_TARGETS")
    return shlex.join(f"-D{name}={spell_cmake(targets)}" for name in names) + "\n"


def _bazel(targets: TargetSet) -> str:
    kinds = ("repo_env", "action_env")
    return "".join(f"build --{kind}=TF_ROCM_AMDGPU_TARGETS={spell_commas(targets)}\n" for kind in kinds)


def _nix(targets: TargetSet) -> str:
    words = " ".join(f'"{word}"' for word in targets.words)
    return f"rocmPackages.clr.override {{ localGpuTargets = [ {words} ]; }}\n"


def _file_names(targets: TargetSet) -> str:
    return "".join(f"{file_name_spelling(target)}\n" for target in targets)


WITH_OPTIONAL = {Tool.GENTOO: gentoo_variables, Tool.EBUILD: ebuild_fragment}
"""The tools that also have targets which are off by default."""

_WRITERS = {
    Tool.CMAKE: _cmake,
    Tool.HIP: lambda targets: shlex.join(spell_offload_arch(targets)) + "\n",
    Tool.BAZEL: _bazel,
    Tool.TORCH: lambda targets: f"PYTORCH_ROCM_ARCH={shlex.quote(spell_cmake(targets))}\n",
    Tool.JAX: lambda targets: f"--rocm_amdgpu_targets={spell_commas(targets)}\n",
    Tool.SPACK: spack_variant,
    Tool.NIX: _nix,
    Tool.GENTOO_DESC: spell_desc,
    Tool.DEBIAN: debian_field,
    Tool.DEBIAN_BUILD: debian_build,
    Tool.RPM: rpm_macros,
    Tool.TARGET_LST: spell_lines,
    Tool.FILE_NAME: _file_names,
}
