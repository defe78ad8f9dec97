"""The links among the members of a tar, and what is written through them: it ends up under another name."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["MOST_LINK_NAMES", "MemberLinks"]

MOST_LINK_NAMES: Final = 50_000
"""Names of links and of the folders above them that are kept, which takes some 20 MB."""

_IS_LINK = ""
"""What marks a link among the names in a folder, none of which is empty."""


class MemberLinks:
    """The links that an archive has had so far, symbolic and hard ones, as a tree of names."""

    def __init__(self) -> None:
        """Begin with none."""
        self._names: dict[str, Any] = {}
        self._count = 0

    def add(self, path: str) -> None:
        """Add the link of a path in its shortest form; raise `ValueError` beyond `MOST_LINK_NAMES`."""
        names = self._names
        for name in (*path.split("/"), _IS_LINK):
            if name not in names:
                self._count += 1
                if self._count > MOST_LINK_NAMES:
                    msg = f"its links and their folders have more than {MOST_LINK_NAMES} names"
                    raise ValueError(msg)
                names[name] = {}
            names = names[name]

    def above(self, path: str) -> str | None:
        """Return the outermost link among the folders above a path, which an unpacker follows; none without.

        Takes time that is linear in the path, whatever the links are.
        """
        return self._find(path.split("/")[:-1])

    def at(self, path: str) -> bool:
        """Return whether a link has that path itself."""
        return self._find(path.split("/")) == path

    def _find(self, parts: list[str]) -> str | None:
        names: dict[str, Any] | None = self._names
        for depth, name in enumerate(parts, 1):
            names = names.get(name) if names else None
            if names and _IS_LINK in names:
                return "/".join(parts[:depth])
        return None
