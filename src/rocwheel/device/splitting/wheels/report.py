"""What became of a wheel that was split."""

from __future__ import annotations

import msgspec

from rocwheel.device.splitting.files import LackingCode

__all__ = ["DeviceWheel", "StayingFile", "WheelSplit"]


class DeviceWheel(msgspec.Struct, frozen=True):
    """The wheel of a target or a family: its path, the archives and other files in it, and its size in bytes.

    It has no size in a dry run.
    """

    path: str
    target: str
    archives: int
    files: int
    size: int | None


class StayingFile(msgspec.Struct, frozen=True):
    """A file of the host wheel with device code in it, or what looks like it, and why that stays."""

    path: str
    reason: str


class WheelSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel that was split: its size, the host wheel and its size, the device wheels, all in bytes.

    In a dry run, what would be written has no size.
    """

    source: str
    size: int
    overlay_root: str
    host: str
    host_size: int | None
    libraries: tuple[str, ...]
    """The files whose code went into archives."""
    disk_before: int = 0
    """Bytes of these files once installed, before the split."""
    disk_after: int = 0
    zeros: dict[str, int] = {}
    """Those of them with a mebibyte or more of zeros in the place of their code, which can't leave the file."""
    devices: tuple[DeviceWheel, ...]
    staying: tuple[StayingFile, ...]
    left_out: tuple[str, ...]
    """Files for targets that were not to be kept."""
    lacking: tuple[LackingCode, ...] = ()
    """Members without any code for a target that was to be kept."""
    warnings: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    """Libraries that another tool had split with wrong indices."""
    replaced: tuple[str, ...] = ()
    """Wheels of an earlier split that got new content."""
    removed: tuple[str, ...] = ()
    """Device wheels of an earlier split, for targets that this one doesn't have."""
