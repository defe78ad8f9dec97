"""Permission bits of members: none by which a file runs as another user, or by which others may write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.repair.changes import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import InstalledFile

__all__ = ["mode_changes", "repaired_mode"]

_SAFE = 0o755
_PERMISSIONS = 0o7777
_UNSAFE = 0o6002
"""Setuid, setgid, and write permission for everybody: what the audit calls wrong."""


def repaired_mode(mode: int) -> int:
    """Return the permission bits that a member gets: those that installers set where the archive has none."""
    return mode & _SAFE or 0o644


def mode_changes(files: Iterable[InstalledFile]) -> list[Change]:
    """Return the changes to the modes of files that are unsafe.

    A file that only its group may write to is no reason to write a wheel again, but loses that, too, when it is.
    """
    return [
        Change(file.member, "mode", f"{file.mode & _PERMISSIONS:04o}", f"{repaired_mode(file.mode):04o}")
        for file in files
        if file.mode & _UNSAFE
    ]
