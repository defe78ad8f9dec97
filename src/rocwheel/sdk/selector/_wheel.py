"""Writes a pure wheel: https://packaging.python.org/specifications/binary-distribution-format/."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile

from ._metadata import field_values, file_stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dist_info_files", "write_wheel"]

WHEEL = "Wheel-Version: 1.0\nGenerator: rocwheel selector\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = "[console_scripts]\nrocm-sdk = {module}._cli:main\n"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""Time of every member, the earliest that a zip can hold: the same choice gives the same bytes."""


def dist_info_files(source: Path, module: str, metadata: str) -> tuple[str, dict[str, bytes]]:
    """Return the name of the ``.dist-info`` folder and its files (path -> bytes), all but RECORD."""
    folder = f"{file_stem(metadata)}.dist-info"
    files = {
        "METADATA": metadata.encode(),
        "WHEEL": WHEEL.encode(),
        "entry_points.txt": ENTRY_POINTS.format(module=module).encode(),
    }
    for name in field_values(metadata, "License-File"):
        files[f"licenses/{name}"] = (source / name).read_bytes()
    return folder, {f"{folder}/{name}": data for name, data in files.items()}


def write_wheel(source: Path, package: Path, destination: Path, metadata: str, added: dict[str, str]) -> str:
    """Write the wheel of the folder ``package`` into the folder ``destination`` and return its name.

    ``added`` is text that files of the folder get at their ends, by their names.
    """
    module = package.name
    files = {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in _module_files(package)}
    for name, text in added.items():
        files[f"{module}/{name}"] = files.get(f"{module}/{name}", b"") + text.encode()
    folder, dist_info = dist_info_files(source, module, metadata)
    files.update(dist_info)
    files[f"{folder}/RECORD"] = _record(files, f"{folder}/RECORD")
    name = f"{file_stem(metadata)}-py3-none-any.whl"
    with zipfile.ZipFile(destination / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            member = zipfile.ZipInfo(path, EARLIEST)
            member.external_attr = 0o100644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)
    return name


def _module_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def _record(files: dict[str, bytes], own_path: str) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.writerow([path, f"sha256={digest}", len(data)])
    rows.writerow([own_path, "", ""])
    return text.getvalue().encode()
