"""Sdists for tests."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["write_sdist"]


def write_sdist(folder: Path, top: str, files: Mapping[str, bytes]) -> Path:
    """Write ``top.tar.gz`` with ``files``, by their paths below its one top folder."""
    path = folder / f"{top}.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path
