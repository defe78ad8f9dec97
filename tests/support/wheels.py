"""Wheels of real libraries for tests, packed by the standard library's ``zipfile``."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

__all__ = ["make_wheel", "members"]


def make_wheel(
    folder: Path,
    name: str,
    files: Mapping[str, Path | bytes],
    *,
    version: str = "1.0",
    tag: str = "py3-none-linux_x86_64",
    requires: tuple[str, ...] = (),
    is_purelib: bool = False,
    links: Collection[str] = (),
) -> Path:
    """Write a wheel with ``files`` by their member names, a licence, and a right RECORD; ``links`` are symlinks."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", "License-Expression: MIT"]
    lines += ["License-File: LICENSE", *(f"Requires-Dist: {requirement}" for requirement in requires)]
    purelib = "true" if is_purelib else "false"
    contents = {path: data if isinstance(data, bytes) else data.read_bytes() for path, data in files.items()}
    contents[f"{info}/licenses/LICENSE"] = b"MIT\n"
    contents[f"{info}/METADATA"] = ("\n".join(lines) + "\n\nA description.\n").encode()
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: {purelib}\nTag: {tag}\n".encode()
    )
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    target = folder / f"{name}-{version}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, (2024, 5, 6, 7, 8, 10))
            mode = 0o100755 if data.startswith(b"\x7fELF") else 0o100644
            entry.external_attr = (0o120777 if path in links else mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return target


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def members(wheel: Path) -> dict[str, bytes]:
    """Return the unpacked members of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
