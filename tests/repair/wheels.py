"""What the tests of repaired wheels share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.wheels import members, pack_members, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["repaired_plugin", "with_members"]


def repaired_plugin(folder: Path) -> Path:
    """Return the repaired wheel of the fixture ``plugin_wheel`` in a folder."""
    (found,) = folder.glob("plugin-*.whl")
    return found


def with_members(wheel: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """Write a copy of a wheel in which members have another content, or none and are absent.

    Unless it is among them, RECORD is right.
    """
    target.mkdir()
    contents = {name: data for name, data in (members(wheel) | changes).items() if data is not None}
    info = next(name for name in contents if ".dist-info/" in name).partition("/")[0]
    if f"{info}/RECORD" in changes:
        return pack_members(target / wheel.name, contents)
    del contents[f"{info}/RECORD"]
    return write_wheel(target / wheel.name, info, contents)
