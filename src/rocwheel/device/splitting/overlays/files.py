"""What becomes of files that are split into a common set and whole libraries for each target."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.reading import FileRange
from rocwheel.device.splitting.files import DeviceFile
from rocwheel.targets.overlay_names import overlay_path

__all__ = ["OverlaidLibrary", "OverlayChoice", "OverlayPlan"]


class OverlayChoice(msgspec.Struct, frozen=True):
    """Which code libraries keep for all GPUs, and which libraries can be chosen when they are loaded."""

    common: tuple[TargetId, ...]
    """The targets whose code stays; none for those of `default_common`."""
    is_chosen: Callable[[str], bool]
    """Whether a library of this SONAME is loaded by its SONAME, so that one for the GPU can take its place."""


class OverlaidLibrary(msgspec.Struct, frozen=True):
    """A library that keeps the code of the common set; each of ``targets`` gets a whole one."""

    path: str
    content: FileRange
    soname: str
    codes: tuple[TargetId, ...]
    """The targets of its code."""
    targets: tuple[str, ...] = ()

    def path_for(self, target: str) -> str:
        """Return the path of the library for a target."""
        return overlay_path(posixpath.join(posixpath.dirname(self.path), self.soname), target)


class OverlayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of all files: those that are in none of the lists stay as they are."""

    common: tuple[TargetId, ...]
    libraries: tuple[OverlaidLibrary, ...]
    device: tuple[DeviceFile, ...]
    """Kernel files, which go to their target as they are."""
    remarks: dict[str, str]
    """Files that keep their code for all GPUs, and why."""
