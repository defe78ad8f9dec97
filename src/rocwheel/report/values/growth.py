"""Changes of size since an older state, in bytes."""

from __future__ import annotations

import enum

import msgspec

from rocwheel.report.values.files import Totals

__all__ = ["Against", "Fate", "FileGrowth", "PackageGrowth", "TargetGrowth"]


class Fate(str, enum.Enum):
    """What became of the size of something."""

    CAME = "came"
    GREW = "grew"
    SAME = "same"
    SHRANK = "shrank"
    WENT = "went"


class PackageGrowth(msgspec.Struct, frozen=True):
    """What became of a package; 0 and none stand for a side that lacks it."""

    label: str
    fate: Fate
    old_size: int
    size: int
    old_packed: int | None
    packed: int | None


class FileGrowth(msgspec.Struct, frozen=True):
    """What became of a file; the path is empty on a side that lacks it."""

    package: str
    fate: Fate
    old_path: str
    path: str
    old_size: int
    size: int
    old_packed: int | None
    packed: int | None


class TargetGrowth(msgspec.Struct, frozen=True):
    """What became of the code for a GPU target; 0 for none."""

    target: str
    old_size: int
    size: int


class Against(msgspec.Struct, frozen=True):
    """What differs in size from an older state: what does not is left out."""

    path: str
    totals: Totals = Totals()
    """Of the older state."""
    packages: tuple[PackageGrowth, ...] = ()
    files: tuple[FileGrowth, ...] = ()
    """Those that differ most first."""
    targets: tuple[TargetGrowth, ...] = ()
    problem: str = ""
    """Why the older state could not be read; all else is empty then."""
