"""Writing of source distributions (:pep:`625`, :pep:`643`): a gzipped tar whose bytes depend on its members alone."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

from rocwheel.core.writing import atomic_file
from rocwheel.distributions.formats.wheel import normalized_file_part

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["sdist_name", "sdist_stem", "write_sdist"]


def sdist_stem(distribution: str, version: str) -> str:
    """Return the name of an sdist's top folder: normalised distribution and version."""
    return f"{normalized_file_part(distribution)}-{version}"


def sdist_name(distribution: str, version: str) -> str:
    """Return the file name of an sdist."""
    return f"{sdist_stem(distribution, version)}.tar.gz"


def write_sdist(path: Path, stem: str, members: Mapping[str, bytes], *, mtime: int) -> bytes:
    """Write ``members`` (by path below ``stem/``) sorted, owned by root, dated ``mtime`` seconds after 1970.

    Returns the bytes of the file. Raises `WorkError` when the folder can't be written.
    """
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in sorted(members.items()):
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.size, info.mode, info.mtime = len(data), 0o644, mtime
            tar.addfile(info, io.BytesIO(data))
    packed = io.BytesIO()
    # Compressed here, not by tarfile: gzip's own header holds a name and a date, which must not vary.
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(raw.getvalue())
    with atomic_file(path) as target:
        target.write(packed.getvalue())
    return packed.getvalue()
