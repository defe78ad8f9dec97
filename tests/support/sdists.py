"""Sdists for tests, and how their tars are unpacked."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["unpack_tar", "write_sdist"]


def write_sdist(folder: Path, top: str, files: Mapping[str, bytes]) -> Path:
    """Write ``top.tar.gz`` with ``files``, by their paths below its one top folder."""
    path = folder / f"{top}.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def unpack_tar(archive: tarfile.TarFile, folder: Path, name: str = "data") -> None:
    """Unpack with the filter ``name``; Python 3.11.2, which is Debian 12's, and 3.10 before 3.10.12 have none."""
    options: dict[str, Any] = {"filter": name} if hasattr(tarfile, f"{name}_filter") else {}
    archive.extractall(folder, **options)
