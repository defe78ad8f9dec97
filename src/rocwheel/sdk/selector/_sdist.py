"""Writes the sdist from its own unpacked content: https://packaging.python.org/specifications/source-distribution-format/."""

from __future__ import annotations

import gzip
import tarfile

from ._metadata import file_stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_sdist"]


def write_sdist(source: Path, modules: Path, destination: Path, module: str) -> str:
    """Write ``{name}-{version}.tar.gz`` into the folder ``destination`` and return its name."""
    pkg_info = (source / "PKG-INFO").read_text(encoding="utf-8")
    stem = file_stem(pkg_info)
    name = f"{stem}.tar.gz"
    with gzip.GzipFile(destination / name, "wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for path in _source_files(source, modules, module):
            archive.add(path, f"{stem}/{path.relative_to(source).as_posix()}", filter=_anonymous)
    return name


def _source_files(source: Path, modules: Path, module: str) -> list[Path]:
    members = [source / "PKG-INFO", source / "pyproject.toml", *sorted(source.glob("LICENSE*"))]
    members += sorted(modules.glob("*.egg-info/*"))
    for folder in (module, "selector"):
        members += sorted(path for path in (modules / folder).rglob("*.py") if "__pycache__" not in path.parts)
    return members


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
