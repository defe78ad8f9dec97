"""Subfolders with libraries for newer processors (``ld.so(8)``, "Hardware capabilities"; x86-64 psABI, section 3.1.1).

In each folder, glibc's loader first looks into ``glibc-hwcaps/LEVEL`` for the levels that the processor has, the
highest one first. Of the machines that ROCm runs on, only x86-64 has such levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CpuLevel", "has_level", "hwcaps_folders", "searched_folders"]

CpuLevel = Literal["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
"""The levels of the x86-64 psABI. Every processor has the first."""

_FOLDER = "glibc-hwcaps"


def hwcaps_folders(level: CpuLevel) -> tuple[str, ...]:
    """Return the subfolders that a processor of ``level`` takes libraries from, in the loader's order."""
    levels = get_args(CpuLevel)
    return tuple(f"{_FOLDER}/{name}" for name in reversed(levels[1 : levels.index(level) + 1]))


def has_level(folder: str) -> bool:
    """Return whether a folder holds libraries for some processors only: run paths name the folder above it."""
    return f"/{_FOLDER}/" in f"/{folder}/"


def searched_folders(folders: Iterable[str], level: CpuLevel) -> tuple[str, ...]:
    """Return the folders that run paths name to find a library that is in ``folders``.

    These are the folders that serve every processor. Only if there are none, they are the folders above those
    subfolders that a processor of ``level`` takes libraries from.
    """
    found = tuple(dict.fromkeys(folders))
    plain = tuple(folder for folder in found if not has_level(folder))
    above = ((f"/{folder}".removesuffix(f"/{inner}"), folder) for inner in hwcaps_folders(level) for folder in found)
    return plain or tuple(dict.fromkeys(top[1:] for top, folder in above if top != f"/{folder}"))
