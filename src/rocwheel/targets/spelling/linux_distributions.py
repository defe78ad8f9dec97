"""What Spack, Debian and RPM distributions declare about GPU targets, ready to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.errors import NoFlagError
from rocwheel.targets.spelling.spellings import spell_cmake, spell_commas, spell_spaces
from rocwheel.targets.spelling.target_set import GPU_FIELD

if TYPE_CHECKING:
    from rocwheel.targets.spelling.target_set import TargetSet

__all__ = ["debian_build", "debian_field", "rpm_macros", "spack_variant"]

_SPACK_WITH_FEATURES = ("gfx900:xnack-", "gfx906:xnack-", "gfx908:xnack-", "gfx90a:xnack-", "gfx90a:xnack+")
"""The values that set features; the catalogue's list of Spack has the others, with their sources."""


def spack_variant(targets: TargetSet) -> str:
    """Return the variant of a Spack spec.

    Raises `NoFlagError` for targets that the variant does not take.
    """
    plain = next(row.targets for row in load_catalog().packagers if row.name == "spack")
    others = [word for word in targets.words if word not in (*plain, *_SPACK_WITH_FEATURES)]
    if others:
        expected = f"those of list@spack, or {', '.join(_SPACK_WITH_FEATURES)}"
        raise NoFlagError(others, what="value of amdgpu_target", expected=expected)
    return f"amdgpu_target={spell_commas(targets)}\n"


def debian_field(targets: TargetSet) -> str:
    """Return the field by which a Debian package declares the targets that it carries."""
    return f"{GPU_FIELD}: {spell_spaces(targets)}\n"


def debian_build(targets: TargetSet) -> str:
    """Return the variable by which a build of a Debian package makes ``rocm-target-arch`` name these targets.

    https://manpages.debian.org/unstable/pkg-rocm-tools/rocm-target-arch.1.en.html
    """
    return f'export ROCM_TARGET_ARCH_FIXED="{spell_spaces(targets)}"\n'


def rpm_macros(targets: TargetSet) -> str:
    """Return an RPM macro file that sets what Fedora's ROCm packages pass to CMake.

    Its value is quoted, as spec files use it unquoted in shell commands: ``-DGPU_TARGETS=%{rocm_gpu_list_default}``.
    """
    return f'%rocm_gpu_list_default "{spell_cmake(targets)}"\n'
