"""Subfolders with libraries for newer processors (``ld.so(8)``, "Hardware capabilities"; x86-64 psABI, section 3.1.1).

In each folder glibc's loader looks into ``glibc-hwcaps/LEVEL`` first, for the levels that the processor has, the
highest one first. Of the machines that ROCm runs on only x86-64 has such levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CpuLevel", "has_level", "hwcaps_folders", "searched_folders"]

CpuLevel = Literal["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
"""The levels of the x86-64 psABI; the first is what every processor has."""

_FOLDER = "glibc-hwcaps"


def hwcaps_folders(level: CpuLevel) -> tuple[str, ...]:
    """Return the subfolders that a processor of ``level`` takes libraries from, in the loader's order."""
    levels = get_args(CpuLevel)
    return tuple(f"{_FOLDER}/{name}" for name in reversed(levels[1 : levels.index(level) + 1]))


def has_level(folder: str) -> bool:
    """Tell whether a folder holds libraries for some processors alone: run paths name the one above."""
    return f"/{_FOLDER}/" in f"/{folder}/"


def searched_folders(folders: Iterable[str], level: CpuLevel) -> tuple[str, ...]:
    """Return the folders that run paths name to find a library which lies in ``folders``.

    Those that serve every processor; only where there are none, those above the subfolders for one of ``level``.
    """
    found = tuple(dict.fromkeys(folders))
    plain = tuple(folder for folder in found if not has_level(folder))
    above = ((f"/{folder}".removesuffix(f"/{inner}"), folder) for inner in hwcaps_folders(level) for folder in found)
    return plain or tuple(dict.fromkeys(top[1:] for top, folder in above if top != f"/{folder}"))
