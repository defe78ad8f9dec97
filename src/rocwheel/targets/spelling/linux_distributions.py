"""What Gentoo, Spack, Debian and RPM distributions declare about GPU targets, ready to paste.

Gentoo's is equal in meaning to rocm.eclass: https://github.com/gentoo/gentoo/blob/master/eclass/rocm.eclass
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.targets.catalog.catalog import is_specific, load_catalog
from rocwheel.targets.errors import NoFlagError
from rocwheel.targets.spelling.spellings import spell_cmake, spell_commas, spell_spaces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.targets.spelling.target_set import TargetSet

__all__ = ["debian_field", "gentoo_variables", "rpm_macros", "spack_variant"]

_SPACK_WITH_FEATURES = ("gfx900:xnack-", "gfx906:xnack-", "gfx908:xnack-", "gfx90a:xnack-", "gfx90a:xnack+")
"""The values that set features; the catalogue's list of Spack has the others, with their sources."""


def gentoo_variables(targets: TargetSet, optional: Sequence[str] = ()) -> str:
    """Return ``AMDGPU_TARGETS`` for make.conf and the variables that rocm.eclass sets, as shell assignments.

    ``targets`` are on by default and ``optional`` processors off. Flags know no features: only processors are named.
    Raises `NoFlagError` for generic processors and SPIR-V, which Gentoo has no flags for.
    """
    named = (*targets.processors, *optional)
    without_flag = [name for name in dict.fromkeys(named) if not is_specific(TargetId(name))]
    if without_flag:
        raise NoFlagError(without_flag)
    flags = [f"amdgpu_targets_{name}" for name in targets.processors]
    others = [f"amdgpu_targets_{name}" for name in optional if name not in targets.processors]
    # || ( ): at least one. x(-)?: what is on here is on in the dependency, where a missing flag counts as off.
    variables = {
        "AMDGPU_TARGETS": " ".join(targets.processors),
        "IUSE": " ".join([*(f"+{flag}" for flag in flags), *others]),
        "ROCM_REQUIRED_USE": f"|| ( {' '.join([*flags, *others])} )",
        "ROCM_USEDEP": ",".join(f"{flag}(-)?" for flag in [*flags, *others]),
    }
    return "".join(f'{name}="{value}"\n' for name, value in variables.items())


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
    return f"X-ROCm-GPU-Architecture: {spell_spaces(targets)}\n"


def rpm_macros(targets: TargetSet) -> str:
    """Return an RPM macro file that sets what Fedora's ROCm packages pass to CMake.

    Its value is quoted, as spec files use it unquoted in shell commands: ``-DGPU_TARGETS=%{rocm_gpu_list_default}``.
    """
    return f'%rocm_gpu_list_default "{spell_cmake(targets)}"\n'
