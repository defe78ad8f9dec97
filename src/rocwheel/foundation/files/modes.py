"""Permission bits of files that are made from others: no rights are added."""

from __future__ import annotations

__all__ = ["PERMISSIONS", "UNSAFE", "plain_mode", "safe_mode"]

PERMISSIONS = 0o7777
"""All bits that chmod(2) takes."""
UNSAFE = 0o6002
"""Setuid, setgid, and write permission for everybody: what the audit calls wrong."""
_SAFE = 0o755
_READABLE = 0o644
_ANY_EXECUTE = 0o111


def safe_mode(mode: int) -> int:
    """Return the bits that a copy keeps: none by which it runs as another user, or by which others may write to it.

    Without any, as in archives that have none, they are those that installers set.
    """
    return mode & _SAFE or _READABLE


def plain_mode(mode: int) -> int:
    """Return 0o755 for anything executable, else 0o644: the umask of whoever made it must not show."""
    return _SAFE if mode & _ANY_EXECUTE else _READABLE
