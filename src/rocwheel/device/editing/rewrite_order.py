"""An edit of device code as it is asked for, and the report of what was done."""

from __future__ import annotations

import msgspec

from rocwheel.binary.bundles.storage import Storage
from rocwheel.core.progress import SILENT, Progress
from rocwheel.device.editing.bundle import BundleEdit

__all__ = ["RewriteOrder", "RewriteReport"]


class RewriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a file: its bundles, how many of them changed, and their size before and after, in bytes.

    A code object by itself is not a bundle, but it counts as changed.
    """

    path: str
    bundles: int
    changed: int
    size_before: int
    size_after: int
    versions: tuple[int, ...] = ()
    """The header versions of the compressed bundles in the result, whether they changed or not."""
    warnings: tuple[str, ...] = ()
    """What is doubtful about the result."""
    faults: tuple[str, ...] = ()
    """What packages of runtimes that may load the result do wrong with compressed bundles, though these are sound."""
    hosts_spelled: int = 0
    """The number of compressed bundles whose host entries were spelled so that later readers take them."""
    is_archive: bool = False
    """Whether the file is a kpack archive, whose code objects count instead of bundles."""
    trimmed: int = 0
    """By how many bytes the file became smaller; 0 unless it was to be trimmed."""


class RewriteOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done to the device code of files: the edit, none to compress alone, and how bundles are stored."""

    edit: BundleEdit | None
    storage: Storage
    trim: bool = False
    """Whether freed space is taken out, which is for shared libraries only."""
    jobs: int = 1
    """How many bundles are worked on at a time."""
    progress: Progress = SILENT
