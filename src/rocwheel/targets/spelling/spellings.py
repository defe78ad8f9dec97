"""How each tool spells a set of GPU targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.targets.catalog.catalog import SPIRV
from rocwheel.targets.errors import NoFlagError

if TYPE_CHECKING:
    from rocwheel.binary.code_objects import TargetId
    from rocwheel.targets.spelling.target_set import TargetSet

__all__ = [
    "file_name_spelling",
    "spell_cmake",
    "spell_commas",
    "spell_lines",
    "spell_offload_arch",
    "spell_spaces",
]


def spell_cmake(targets: TargetSet) -> str:
    """Return a CMake list, ``gfx906;gfx90a:xnack+``, without a trailing separator; PyTorch takes the same."""
    return ";".join(targets.words)


def spell_commas(targets: TargetSet) -> str:
    """Return what Bazel's and TensorFlow's settings take: ``gfx906,gfx90a:xnack+``."""
    return ",".join(targets.words)


def spell_spaces(targets: TargetSet) -> str:
    """Return what USE_EXPAND, Nix and shells take: ``gfx906 gfx90a:xnack+``."""
    return " ".join(targets.words)


def spell_offload_arch(targets: TargetSet) -> list[str]:
    """Return one argument of clang and hipcc for each target: ``--offload-arch=gfx906``."""
    return [f"--offload-arch={word}" for word in targets.words]


def spell_lines(targets: TargetSet) -> str:
    """Return the content of a file for ``ROCM_TARGET_LST``: a processor a line, ``gfx000`` (no GPU) for none.

    Raises `NoFlagError` for SPIR-V, which is not a processor: readers of the file would ignore it.
    """
    if SPIRV in targets.processors:
        raise NoFlagError([SPIRV], what="line of ROCM_TARGET_LST", expected="processors, such as gfx1100")
    return "".join(f"{word}\n" for word in targets.processors or ("gfx000",))


def file_name_spelling(target: TargetId) -> str:
    """Return a target as the libraries' kernel files spell it, without the colon: ``gfx90a-xnack+``."""
    return str(target).replace(":", "-")
