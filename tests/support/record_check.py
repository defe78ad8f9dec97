"""A plain verifier of RECORD: what it lists against what is there, for every distribution of an environment."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["record_faults"]


def record_faults(site: Path) -> list[str]:
    """Return what is wrong with the RECORDs of ROCm's packages, and which files of their folders none accounts for.

    A folder without hash and size is what pip and uv remove as a whole: it must be there, and accounts for its content.
    """
    faults, listed = [], set()
    for record in sorted(site.glob("*.dist-info/RECORD")):
        with record.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        listed |= {os.path.normpath(site / row[0]) for row in rows}
        if record.parent.name.startswith("rocm"):
            faults += [f"{record.parent.name}: {fault}" for row in rows for fault in _row_faults(site, row)]
    paths = [path for folder in site.glob("*rocm*") if folder.is_dir() for path in folder.rglob("*")]
    return faults + [
        f"{path.relative_to(site)} is not listed"
        for path in sorted(paths)
        if "__pycache__" not in path.parts and (path.is_symlink() or not path.is_dir()) and not _covered(path, listed)
    ]


def _row_faults(site: Path, row: list[str]) -> list[str]:
    if len(row) != 3:
        return [f"{row} has not three cells"]
    name, digest, size = row
    path = site / name
    if not path.exists():
        return [f"{name} is absent"]
    if path.is_dir():
        return [f"{name} is a folder with a hash or a size"] if digest or size else []
    data = path.read_bytes()
    faults = [f"{name} has {len(data)} bytes, not {size}"] if size not in ("", str(len(data))) else []
    actual = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return faults + ([f"{name} has the hash {actual}, not {digest}"] if digest not in ("", actual) else [])


def _covered(path: Path, listed: set[str]) -> bool:
    return any(str(place) in listed for place in (path, *path.parents))
