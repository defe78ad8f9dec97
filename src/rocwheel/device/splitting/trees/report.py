"""What became of a tree that was split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.device.splitting.files import HostFile, SplitPlan

__all__ = ["SplitLibraryReport", "SplitReport", "StayingCode", "TargetShare", "make_report"]


class SplitLibraryReport(msgspec.Struct, frozen=True, kw_only=True):
    """A library whose code went into archives; sizes in bytes, ``code`` is that of its code objects."""

    path: str
    units: int
    code: int
    size_before: int
    size_after: int
    archives: tuple[str, ...]


class StayingCode(msgspec.Struct, frozen=True):
    """A file of the host folder with device code in it, or what looks like it, and why that stays."""

    path: str
    reason: str


class TargetShare(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a target: its archives, its other files, and the bytes of all; archives have none in a dry run."""

    target: str
    archives: int
    files: int
    size: int


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tree: the number of files in its host folder, the libraries that were split, the targets."""

    host_files: int
    libraries: tuple[SplitLibraryReport, ...]
    targets: tuple[TargetShare, ...]
    staying: tuple[StayingCode, ...]
    left_out: tuple[str, ...]
    """Files for targets that were not to be kept."""
    warnings: tuple[str, ...] = ()
    """What is wrong with libraries that were split before."""
    mended: tuple[str, ...] = ()
    """Libraries that were split before, and were mended."""


def make_report(plan: SplitPlan, sizes: Mapping[str, int]) -> SplitReport:
    """Return the report of ``plan``; ``sizes`` are those of the archives that were written, by their paths."""
    return SplitReport(
        host_files=len(plan.host),
        libraries=tuple(_report_library(file) for file in plan.host if file.library is not None),
        targets=tuple(_share(plan, target, sizes) for target in plan.targets),
        staying=tuple(StayingCode(file.path, file.remark) for file in plan.host if file.remark),
        left_out=plan.left_out,
    )


def _report_library(file: HostFile) -> SplitLibraryReport:
    assert file.library is not None
    assert file.patch is not None
    return SplitLibraryReport(
        path=file.path,
        units=len(file.library.units),
        code=file.library.code_size,
        size_before=file.content.size,
        size_after=file.patch.size,
        archives=tuple(archive.path for archive in file.library.archives),
    )


def _share(plan: SplitPlan, target: str, sizes: Mapping[str, int]) -> TargetShare:
    archives = [archive for archive in plan.iter_archives() if archive.target == target]
    files = [file for file in plan.device if file.target == target]
    size = sum(sizes.get(archive.path, 0) for archive in archives) + sum(file.content.size for file in files)
    return TargetShare(target=target, archives=len(archives), files=len(files), size=size)
