"""Files with the same content. All sizes are in bytes."""

from __future__ import annotations

import msgspec

__all__ = ["Copies", "Copy"]


class Copy(msgspec.Struct, frozen=True):
    """A file of a package, by the place of that in the list of packages."""

    package: int
    path: str


class Copies(msgspec.Struct, frozen=True):
    """Files with the same content; ``wasted`` is what one copy in each package but the first takes."""

    size: int
    wasted: int
    files: tuple[Copy, ...]
