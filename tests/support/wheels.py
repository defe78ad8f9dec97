"""Wheels of real libraries for tests, packed by the standard library's ``zipfile``."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

__all__ = ["make_wheel", "members", "pack_members", "write_wheel"]


def make_wheel(
    folder: Path,
    name: str,
    files: Mapping[str, Path | bytes],
    *,
    version: str = "1.0",
    tag: str = "py3-none-linux_x86_64",
    requires: tuple[str, ...] = (),
    extras: tuple[str, ...] = (),
    is_purelib: bool = False,
    links: Collection[str] = (),
) -> Path:
    """Write a wheel with ``files`` by their member names, a license, and a right RECORD; ``links`` are symlinks."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", "License-Expression: MIT"]
    lines += ["License-File: LICENSE", *(f"Requires-Dist: {requirement}" for requirement in requires)]
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    purelib = "true" if is_purelib else "false"
    contents = {path: data if isinstance(data, bytes) else data.read_bytes() for path, data in files.items()}
    contents[f"{info}/licenses/LICENSE"] = b"MIT\n"
    contents[f"{info}/METADATA"] = ("\n".join(lines) + "\n\nA description.\n").encode()
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: {purelib}\nTag: {tag}\n".encode()
    )
    folder.mkdir(parents=True, exist_ok=True)
    return write_wheel(folder / f"{module}-{version}-{tag}.whl", info, contents, dict.fromkeys(links, 0o120777))


def write_wheel(path: Path, info: str, members: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> Path:
    """Write ``members`` and a right RECORD of them in the folder ``info``; ELF files are executable unless told."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members, f"{info}/RECORD": _record(members, f"{info}/RECORD")}.items():
            entry = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10))
            default = 0o100755 if data.startswith(b"\x7fELF") else 0o100644
            entry.external_attr = (modes or {}).get(name, default) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def _record(members: Mapping[str, bytes], own_name: str) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([name, f"sha256={digest}", len(data)])
    rows.writerow([own_name, "", ""])
    return text.getvalue().encode()


def members(wheel: Path) -> dict[str, bytes]:
    """Return the unpacked members of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack_members(path: Path, contents: Mapping[str, bytes]) -> Path:
    """Write an archive with exactly these members, which may contradict each other."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path
