"""The links among the members of a tar, and what is written through them: it ends up under another name."""

from __future__ import annotations

from typing import Any

__all__ = ["MemberLinks"]

_IS_LINK = ""
"""What marks a link among the names in a folder, none of which is empty."""


class MemberLinks:
    """The links that an archive has had so far, symbolic and hard ones."""

    def __init__(self) -> None:
        """Begin with none."""
        self._names: dict[str, Any] = {}

    def add(self, path: str) -> None:
        """Add the link of a path in its shortest form."""
        names = self._names
        for name in path.split("/"):
            names = names.setdefault(name, {})
        names[_IS_LINK] = {}

    def leading(self, path: str) -> str | None:
        """Return the link through which a member of that path is written: itself or a folder above it; none without.

        An unpacker that finds a link there follows it. Takes time that is linear in the path, whatever the links are.
        """
        names: dict[str, Any] | None = self._names
        parts = path.split("/")
        for depth, name in enumerate(parts, 1):
            names = names.get(name) if names else None
            if names and _IS_LINK in names:
                return "/".join(parts[:depth])
        return None
