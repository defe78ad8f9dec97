"""What the tests of repaired wheels share."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from tests.support.wheels import members

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["repaired_plugin", "with_members"]


def repaired_plugin(folder: Path) -> Path:
    """Return the repaired wheel of the fixture ``plugin_wheel`` in a folder."""
    (found,) = folder.glob("plugin-*.whl")
    return found


def with_members(wheel: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """Write a copy of a wheel in which members have another content, or none and are absent."""
    target.mkdir()
    contents = members(wheel) | changes
    with zipfile.ZipFile(target / wheel.name, "w") as archive:
        for name, data in contents.items():
            if data is not None:
                archive.writestr(name, data)
    return target / wheel.name
