"""Artifact archives (``.tar.xz``) that tell nothing of the machine that packed them."""

from __future__ import annotations

import io
import lzma
import stat
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["archive"]

MTIME = 315532800  # 1980-01-01, the first day that zip archives know


def find_stages(artifact: Path) -> list[str]:
    """Return the stage folders of an exploded artifact."""
    return sorted(path.relative_to(artifact).as_posix() for path in artifact.rglob("stage") if path.is_dir())


def archive(artifact: Path, output: Path) -> None:
    """Pack an exploded artifact, its manifest first."""
    stages = find_stages(artifact)
    members = sorted(path for stage in stages for path in (artifact / stage).rglob("*"))
    with lzma.open(output, "wb", preset=9 | lzma.PRESET_EXTREME) as file, tarfile.open(mode="w", fileobj=file) as tar:
        add(tar, "artifact_manifest.txt", "\n".join(stages).encode())
        for path in members:
            name = path.relative_to(artifact).as_posix()
            if path.is_symlink():
                add(tar, name, link=str(path.readlink()))
            elif path.is_dir():
                add(tar, name, kind=tarfile.DIRTYPE, mode=0o755)
            else:
                add(tar, name, path.read_bytes(), mode=0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def add(
    tar: tarfile.TarFile, name: str, data: bytes = b"", *, mode: int = 0o644, link: str = "", kind: bytes = b""
) -> None:
    """Add a member whose header tells nothing of this machine."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, MTIME
    info.type = kind or (tarfile.SYMTYPE if link else tarfile.REGTYPE)
    info.linkname = link
    tar.addfile(info, io.BytesIO(data))
