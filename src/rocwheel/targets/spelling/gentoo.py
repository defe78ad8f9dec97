"""Gentoo: the variables of rocm.eclass, ebuilds that use it, and the file that describes its USE flags.

https://github.com/gentoo/gentoo/blob/master/eclass/rocm.eclass and profiles/desc/amdgpu_targets.desc beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.targets.catalog.catalog import is_specific, load_catalog
from rocwheel.targets.errors import NoFlagError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.targets.spelling.target_set import TargetSet

__all__ = ["ebuild_fragment", "gentoo_variables", "parse_desc", "spell_desc"]

_MOST_PROBLEMS = 10
_LINE = re.compile(r"(\S+)\s+-\s+(\S.*)")
_KINDS = {"data-centre": "accelerator", "integrated": "integrated GPU"}
_EBUILD = """\
# A library of ROCm has ROCm's version; any other package writes the ROCm version that it needs.
ROCM_VERSION=${{PV}}
{lists}
REQUIRED_USE="${{ROCM_REQUIRED_USE}}"
# For each library with device code: sci-libs/rocBLAS[${{ROCM_USEDEP}}]

src_configure() {{
\trocm_use_hipcc
\tlocal mycmakeargs=(
\t\t-DGPU_TARGETS="$(get_amdgpu_flags)"
\t\t-DAMDGPU_TARGETS="$(get_amdgpu_flags)"
\t)
\tcmake_src_configure
}}
"""
"""GPU_TARGETS is today's name, AMDGPU_TARGETS that of older ROCm."""


def gentoo_variables(targets: TargetSet, optional: Sequence[str] = ()) -> str:
    """Return ``AMDGPU_TARGETS`` for make.conf and the variables that rocm.eclass sets, as shell assignments.

    ``targets`` are on by default and ``optional`` processors off. Flags know no features: only processors are named.
    Raises `NoFlagError` for generic processors and SPIR-V, which Gentoo has no flags for.
    """
    return f'AMDGPU_TARGETS="{" ".join(targets.processors)}"\n' + _eclass_variables(targets, optional)


def ebuild_fragment(targets: TargetSet, optional: Sequence[str] = ()) -> str:
    """Return the lines of an ebuild that builds with CMake and hipcc for the targets whose flags are on.

    ``ROCM_VERSION`` is the ebuild's own version, as rocm.eclass documents for ROCm's libraries. Where the eclass has
    these lists for some versions, a comment names these; otherwise ``ROCM_SKIP_GLOBALS`` keeps the eclass from setting
    its own. Raises as `gentoo_variables` does.
    """
    variables = _eclass_variables(targets, optional)
    version, end = _versions_with(targets.processors, optional)
    lists = f"# From {version} on and before {end}, rocm.eclass has these lists of GPUs.\ninherit cmake rocm\n"
    if not version:
        reason = "# For no version does rocm.eclass have these lists of GPUs: it must not set its own."
        lists = f"{reason}\nROCM_SKIP_GLOBALS=1\ninherit cmake rocm\n\n{variables}"
    return _EBUILD.format(lists=lists)


def parse_desc(text: str, source: str) -> dict[str, str]:
    """Read ``amdgpu_targets.desc``: return each flag, which is a target's name, with its description.

    Raises `InputError`, or `ProblemsError` for several, for lines of another form and for flags that are there twice. A
    file of ten such lines is another file, and none behind them is told.
    """
    found: dict[str, str] = {}
    problems: list[InputError] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match, place = _LINE.fullmatch(line.strip()), f"{source}:{number}"
        if match is None:
            problems.append(InputError(place, f"has {quoted(line)}", expected="FLAG - DESCRIPTION"))
        elif match[1] in found:
            problems.append(InputError(place, f"describes {quoted(match[1])} again", expected="each flag once"))
        else:
            found[match[1]] = match[2]
        if len(problems) == _MOST_PROBLEMS:
            break
    raise_all(source, problems)
    return found


def spell_desc(targets: TargetSet) -> str:
    """Return ``amdgpu_targets.desc`` for the processors of targets; raises as `gentoo_variables` does."""
    _check_flags(targets.processors)
    rows = {row.name: row for row in load_catalog().targets}
    return "".join(
        f"{name} - {_KINDS.get(rows[name].kind, 'GPU')}{_including(rows[name].products)}\n"
        for name in targets.processors
    )


def _including(products: Sequence[str]) -> str:
    return f", including {', '.join(products)}" if products else ", of which no product is known"


def _eclass_variables(targets: TargetSet, optional: Sequence[str]) -> str:
    _check_flags((*targets.processors, *optional))
    flags = [f"amdgpu_targets_{name}" for name in targets.processors]
    others = [f"amdgpu_targets_{name}" for name in optional if name not in targets.processors]
    # || ( ): at least one. x(-)?: what is on here is on in the dependency, where a missing flag counts as off.
    variables = {
        "IUSE": " ".join([*(f"+{flag}" for flag in flags), *others]),
        "ROCM_REQUIRED_USE": f"|| ( {' '.join([*flags, *others])} )",
        "ROCM_USEDEP": ",".join(f"{flag}(-)?" for flag in [*flags, *others]),
    }
    return "".join(f'{name}="{value}"\n' for name, value in variables.items())


def _check_flags(names: Sequence[str]) -> None:
    without_flag = [name for name in dict.fromkeys(names) if not is_specific(TargetId(name))]
    if without_flag:
        raise NoFlagError(without_flag)


def _versions_with(official: Sequence[str], optional: Sequence[str]) -> tuple[str, str]:
    """Return the newest version from which on the eclass has these lists, and the first without; empty for none.

    They have three numbers, as the patterns of the eclass ask for.
    """
    wanted = ({*official}, {*optional} - {*official})
    later = Version("0")
    for row in reversed(load_catalog().releases):
        since = Version(row.since)
        if ({*row.official}, {*row.unofficial}) == wanted:
            end = later if later.major == since.major else Version(f"{since.major + 1}")
            return _three(since), _three(end)
        later = since
    return "", ""


def _three(version: Version) -> str:
    return ".".join(map(str, (*version.release, 0, 0)[:3]))
