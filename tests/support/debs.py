"""Debian packages made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.artifacts.conftest import ar_archive, deb_tar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["write_deb"]


def write_deb(folder: Path, package: str, tree: Mapping[str, bytes | str], *, fields: str = "") -> Path:
    """Write ``folder/package.deb``; ``fields`` are further lines of its control file."""
    control = f"Package: {package}\nVersion: 6.4.3-1\nArchitecture: amd64\n{fields}Description: text\n"
    parts = {"control.tar": deb_tar({"./control": control.encode()}), "data.tar": deb_tar(dict(tree))}
    path = folder / f"{package}.deb"
    path.write_bytes(ar_archive({"debian-binary": b"2.0\n", **parts}))
    return path
