"""What became of a tree that was split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.device.splitting.files import LackingCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.device.splitting.files import HostFile, SplitPlan
    from rocwheel.device.splitting.planning.library import PlannedArchive

__all__ = ["SplitLibraryReport", "SplitReport", "StayingCode", "TargetShare", "make_report"]


class SplitLibraryReport(msgspec.Struct, frozen=True, kw_only=True):
    """A library whose code went into archives; sizes in bytes, ``code`` is that of its code objects."""

    path: str
    units: int
    code: int
    size_before: int
    size_after: int
    archives: tuple[str, ...]
    zeros: int = 0
    """Bytes of zeros in the place of its code, which can't leave the file; 0 for less than a mebibyte."""


class StayingCode(msgspec.Struct, frozen=True):
    """A file of the host folder with device code in it, or what looks like it, and why that stays."""

    path: str
    reason: str


class TargetShare(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a target: its archives, its other files, and the bytes of all.

    In a dry run, where no archives are written, these are not known.
    """

    target: str
    archives: int
    files: int
    size: int | None


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tree: the number of files in its host folder, the libraries that were split, the targets."""

    host_files: int
    libraries: tuple[SplitLibraryReport, ...]
    targets: tuple[TargetShare, ...]
    staying: tuple[StayingCode, ...]
    left_out: tuple[str, ...]
    """Files for targets that were not to be kept."""
    lacking: tuple[LackingCode, ...] = ()
    """Libraries without any code for a target that was to be kept."""
    warnings: tuple[str, ...] = ()
    """What is wrong with libraries that were split before."""
    mended: tuple[str, ...] = ()
    """Libraries that were split before, and were mended."""


def make_report(plan: SplitPlan, sizes: Mapping[str, int] | None) -> SplitReport:
    """Return the report of ``plan``; ``sizes`` are those of the archives, by their paths, if they were written."""
    return SplitReport(
        host_files=len(plan.host),
        libraries=tuple(_report_library(file) for file in plan.host if file.library is not None),
        targets=tuple(_share(plan, target, sizes) for target in plan.targets),
        staying=tuple(StayingCode(file.path, file.remark) for file in plan.host if file.remark),
        left_out=plan.left_out,
        lacking=plan.lacking,
    )


def _report_library(file: HostFile) -> SplitLibraryReport:
    assert file.library is not None
    return SplitLibraryReport(
        path=file.path,
        units=len(file.library.units),
        code=file.library.code_size,
        size_before=file.content.size,
        size_after=file.size,
        archives=tuple(archive.path for archive in file.library.archives),
        zeros=file.zeros,
    )


def _share(plan: SplitPlan, target: str, sizes: Mapping[str, int] | None) -> TargetShare:
    archives = [archive for archive in plan.iter_archives() if archive.target == target]
    files = [file for file in plan.device if file.target == target]
    size = _size(archives, sizes)
    whole = None if size is None else size + sum(file.content.size for file in files)
    return TargetShare(target=target, archives=len(archives), files=len(files), size=whole)


def _size(archives: Sequence[PlannedArchive], sizes: Mapping[str, int] | None) -> int | None:
    """Return the size of some archives; none where they are not written."""
    if sizes is None:
        return None if archives else 0
    return sum(sizes[archive.path] for archive in archives)
