"""Writes a set of GPU targets in the format of each tool and distribution.

See https://github.com/gentoo/gentoo/blob/master/eclass/rocm.eclass and profiles/desc/amdgpu_targets.desc in the same
repository.
"""

from __future__ import annotations

import re
import shlex
from enum import Enum
from typing import TYPE_CHECKING

from packaging.version import Version

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.workers import raise_all
from rocwheel.targets.catalog import SPIRV, is_specific, load_catalog
from rocwheel.targets.errors import NoFlagError
from rocwheel.targets.target_set import GPU_FIELD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.targets.target_set import TargetSet


def spell_cmake(targets: TargetSet) -> str:
    """Return a CMake list without a trailing separator, ``gfx906;gfx90a:xnack+``, which PyTorch also accepts."""
    return ";".join(targets.words)


def spell_commas(targets: TargetSet) -> str:
    """Return the format for Bazel's and TensorFlow's settings: ``gfx906,gfx90a:xnack+``."""
    return ",".join(targets.words)


def spell_spaces(targets: TargetSet) -> str:
    """Return the format for USE_EXPAND, Nix, and shells: ``gfx906 gfx90a:xnack+``."""
    return " ".join(targets.words)


def spell_offload_arch(targets: TargetSet) -> list[str]:
    """Return one clang and hipcc argument for each target: ``--offload-arch=gfx906``."""
    return [f"--offload-arch={word}" for word in targets.words]


def spell_lines(targets: TargetSet) -> str:
    """Return the content of a file for ``ROCM_TARGET_LST``: one processor per line, or ``gfx000`` (no GPU) if empty.

    Raises `NoFlagError` for SPIR-V, which isn't a processor, because readers of the file would ignore it.
    """
    if SPIRV in targets.processors:
        raise NoFlagError([SPIRV], what="line of ROCM_TARGET_LST", expected="processors, such as gfx1100")
    return "".join(f"{word}\n" for word in targets.processors or ("gfx000",))


def file_name_spelling(target: TargetId) -> str:
    """Return a target in the form that the libraries' kernel file names use, without the colon: ``gfx90a-xnack+``."""
    return str(target).replace(":", "-")


_SPACK_WITH_FEATURES = ("gfx900:xnack-", "gfx906:xnack-", "gfx908:xnack-", "gfx90a:xnack-", "gfx90a:xnack+")
"""The values that set features. The catalog's Spack list has the other values, with their sources."""


def spack_variant(targets: TargetSet) -> str:
    """Return the variant of a Spack spec.

    Raises `NoFlagError` for targets that the variant doesn't accept.
    """
    plain = next(row.targets for row in load_catalog().packagers if row.name == "spack")
    others = [word for word in targets.words if word not in (*plain, *_SPACK_WITH_FEATURES)]
    if others:
        expected = f"the targets in list@spack, or {', '.join(_SPACK_WITH_FEATURES)}"
        raise NoFlagError(others, what="value of amdgpu_target", expected=expected)
    return f"amdgpu_target={spell_commas(targets)}\n"


def debian_field(targets: TargetSet) -> str:
    """Return the field in which a Debian package declares its targets."""
    return f"{GPU_FIELD}: {spell_spaces(targets)}\n"


def debian_build(targets: TargetSet) -> str:
    """Return the variable for a Debian package build that makes ``rocm-target-arch`` return these targets.

    See https://manpages.debian.org/unstable/pkg-rocm-tools/rocm-target-arch.1.en.html.
    """
    return f'export ROCM_TARGET_ARCH_FIXED="{spell_spaces(targets)}"\n'


def rpm_macros(targets: TargetSet) -> str:
    """Return an RPM macro file with the value that Fedora's ROCm packages pass to CMake.

    The value is quoted, because spec files insert it without quotes into shell commands:
    ``-DGPU_TARGETS=%{rocm_gpu_list_default}``.
    """
    return f'%rocm_gpu_list_default "{spell_cmake(targets)}"\n'


_MOST_PROBLEMS = 10
_LINE = re.compile(r"(\S+)\s+-\s+(\S.*)")
_KINDS = {"data-center": "accelerator", "integrated": "integrated GPU"}
_EBUILD = """\
# A ROCm library has ROCm's version; any other package sets the ROCm version that it needs.
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
"""GPU_TARGETS is the current name, and AMDGPU_TARGETS is the name in older ROCm versions."""


def gentoo_variables(targets: TargetSet, optional: Sequence[str] = ()) -> str:
    """Return ``AMDGPU_TARGETS`` for make.conf and the variables that rocm.eclass sets, as shell assignments.

    ``targets`` are on by default, and ``optional`` processors are off. Flags don't include features, so they represent
    only processors. Raises `NoFlagError` for generic processors and SPIR-V, for which Gentoo has no flags.
    """
    return f'AMDGPU_TARGETS="{" ".join(targets.processors)}"\n' + _eclass_variables(targets, optional)


def ebuild_fragment(targets: TargetSet, optional: Sequence[str] = ()) -> str:
    """Return the lines of an ebuild that builds with CMake and hipcc for the enabled targets.

    ``ROCM_VERSION`` is the version of the ebuild itself, as rocm.eclass documents for ROCm libraries. If the eclass has
    these lists for some versions, a comment mentions these versions; otherwise, ``ROCM_SKIP_GLOBALS`` keeps the eclass
    from setting its own lists. Raises the same errors as `gentoo_variables`.
    """
    variables = _eclass_variables(targets, optional)
    version, end = _versions_with(targets.processors, optional)
    span = f"from version {version} up to, but not including, {end}"
    lists = f"# rocm.eclass has these GPU lists {span}.\ninherit cmake rocm\n"
    if not version:
        reason = "# rocm.eclass doesn't have these lists of GPUs for any version, so it must not set its own lists."
        lists = f"{reason}\nROCM_SKIP_GLOBALS=1\ninherit cmake rocm\n\n{variables}"
    return _EBUILD.format(lists=lists)


def parse_desc(text: str, source: str) -> dict[str, str]:
    """Read ``amdgpu_targets.desc``; return the description of each flag, keyed by the flag, which is a target name.

    Raises `InputError`, or `ProblemsError` for several problems, for malformed lines and repeated flags. After ten such
    lines, the file is treated as a different kind of file, and later lines aren't reported.
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
            problems.append(InputError(place, f"repeats the flag {quoted(match[1])}", expected="each flag only once"))
        else:
            found[match[1]] = match[2]
        if len(problems) == _MOST_PROBLEMS:
            break
    raise_all(source, problems)
    return found


def spell_desc(targets: TargetSet) -> str:
    """Return ``amdgpu_targets.desc`` for the targets' processors; raise the same errors as `gentoo_variables`."""
    _check_flags(targets.processors)
    rows = {row.name: row for row in load_catalog().targets}
    return "".join(
        f"{name} - {_KINDS.get(rows[name].kind, 'GPU')}{_including(rows[name].products)}\n"
        for name in targets.processors
    )


def _including(products: Sequence[str]) -> str:
    return f", including {', '.join(products)}" if products else ", no known products"


def _eclass_variables(targets: TargetSet, optional: Sequence[str]) -> str:
    _check_flags((*targets.processors, *optional))
    flags = [f"amdgpu_targets_{name}" for name in targets.processors]
    others = [f"amdgpu_targets_{name}" for name in optional if name not in targets.processors]
    # || ( ): at least one. x(-)?: if a flag is on here, it is on in the dependency. A missing flag there counts as off.
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
    """Return the start and the end of the newest version range for which the eclass has these lists, or empty strings.

    Versions have three numbers, because the eclass's patterns require that.
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


class Tool(str, Enum):
    """A tool, or a kind of file, that accepts GPU targets."""

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
    """Return the settings for ``tool`` as complete lines: command-line arguments, or the text of a file for the tool.

    Arguments are quoted for the shell as needed. Only Gentoo has ``optional`` targets, which are off by default. Raises
    `NoFlagError` for targets that have no name in Gentoo, Spack, or ``ROCM_TARGET_LST``.
    """
    if tool in WITH_OPTIONAL:
        return WITH_OPTIONAL[tool](targets, optional.processors if optional else ())
    return _WRITERS[tool](targets)


def _cmake(targets: TargetSet) -> str:
    # GPU_TARGETS is the current name, and AMDGPU_TARGETS is the name in older ROCm. CMake's HIP language has its own.
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
"""The tools for which targets can be off by default."""

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
