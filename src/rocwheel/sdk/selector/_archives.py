"""Writes the wheel for a machine, and the sdist, with their core metadata."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import re
import tarfile
import zipfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def field_values(text: str, name: str) -> list[str]:
    """Return all values of a field, in order."""
    prefix = f"{name}: "
    header = text.partition("\n\n")[0]
    return [line[len(prefix) :].strip() for line in header.split("\n") if line.startswith(prefix)]


def file_stem(metadata: str) -> str:
    """Return the name and version as in file names: in lowercase, with ``_`` instead of runs of ``-_.`` in the name."""
    name, version = (field_values(metadata, field)[0] for field in ("Name", "Version"))
    return f"{re.sub(r'[-_.]+', '_', name).lower()}-{version.replace('-', '_')}"


def metadata_text(pkg_info: str, requires: list[str], extras: dict[str, list[list[str]]]) -> str:
    """Return METADATA: the fields of PKG-INFO except ``Dynamic``, then requirements, then extras, then the body.

    ``extras`` maps an extra to pairs of a requirement and a marker, which is empty if there is no condition.
    """
    header, separator, body = pkg_info.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in header.removesuffix("\n").split("\n") if not line.startswith("Dynamic:")]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    for extra, pairs in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {requirement}; {_with_extra(marker, extra)}" for requirement, marker in pairs]
    return "\n".join(lines) + (separator + body if separator else "\n")


def _with_extra(marker: str, extra: str) -> str:
    condition = f"extra == '{extra}'"
    return f"({marker}) and {condition}" if marker else condition


WHEEL = "Wheel-Version: 1.0\nGenerator: rocwheel selector\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = "[console_scripts]\nrocm-sdk = {module}._cli:main\n"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest possible time in a zip file, used for every member so that equal choices produce the same bytes."""


def dist_info_files(source: Path, module: str, metadata: str) -> tuple[str, dict[str, bytes]]:
    """Return the name of the ``.dist-info`` folder and the content of its files, keyed by path, except RECORD."""
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
    """Write the wheel of the folder ``package`` into the folder ``destination``, and return its name.

    ``added`` contains the text to append to each file of the folder, keyed by name.
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


def write_sdist(source: Path, modules: Path, destination: Path, module: str) -> str:
    """Write ``{name}-{version}.tar.gz`` into the folder ``destination``, and return its name."""
    pkg_info = (source / "PKG-INFO").read_text(encoding="utf-8")
    stem = file_stem(pkg_info)
    name = f"{stem}.tar.gz"
    with gzip.GzipFile(destination / name, "wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        members = [source / "PKG-INFO", source / "pyproject.toml", *sorted(source.glob("LICENSE*"))]
        members += sorted(modules.glob("*.egg-info/*"))
        for folder in (module, "selector"):
            members += sorted(path for path in (modules / folder).rglob("*.py") if "__pycache__" not in path.parts)
        for path in members:
            archive.add(path, f"{stem}/{path.relative_to(source).as_posix()}", filter=_anonymous)
    return name


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
