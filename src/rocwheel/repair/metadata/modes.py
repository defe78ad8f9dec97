"""Permission bits of members: none by which a file runs as another user, or by which others may write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.writing import PERMISSIONS, UNSAFE, safe_mode
from rocwheel.repair.changes import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import InstalledFile

__all__ = ["mode_changes"]


def mode_changes(files: Iterable[InstalledFile]) -> list[Change]:
    """Return the changes to the modes of files that are unsafe.

    A file that only its group may write to is no reason to write a wheel again, but loses that, too, when it is.
    """
    return [
        Change(file.member, "mode", f"{file.mode & PERMISSIONS:04o}", f"{safe_mode(file.mode):04o}")
        for file in files
        if file.mode & UNSAFE
    ]
