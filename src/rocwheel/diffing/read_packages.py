"""Packages as they are compared: their metadata and a list of their files, without reading what is in these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from rocwheel.diffing.values import Item, Metadata, Package
from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.formats.metadata.entry_points import parse_entry_points
from rocwheel.distributions.formats.record import parse_record
from rocwheel.distributions.formats.wheel_file_name import is_wheel_file_name, split_wheel_file_name
from rocwheel.distributions.tar.sdist_file import read_sdist
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.reader import ZipMember, read_member
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.installed.reading.member_paths import installed_path
from rocwheel.targets.coherence.declaration import DECLARATION_NAME, decode_declaration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from packaging.metadata import RawMetadata

__all__ = ["METADATA_FILES", "read_entry_points", "read_sdist_package", "read_wheel_package", "with_metadata"]

METADATA_FILES = ("METADATA", "RECORD", "entry_points.txt", DECLARATION_NAME)
"""The files of ``.dist-info`` that are read."""
_LINK, _KIND = 0o120000, 0o170000
_AGAIN = "Build or fetch it again."


def read_wheel_package(path: Path) -> Package:
    """Return the package in a wheel; raise `InputError` for what is no wheel, or has metadata that can't be read."""
    if not is_wheel_file_name(path.name):
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM.whl"
        raise InputError(path, "is not named like a wheel", expected=expected, remedy="Rename it back.")
    members = read_directory(path)
    dist_info = find_dist_info(path, (member.name for member in members))
    by_name = {member.name: member for member in members}
    texts = {
        name: read_member(by_name[f"{dist_info}/{name}"]) for name in METADATA_FILES if _has(by_name, dist_info, name)
    }
    hashes = _read_hashes(path, texts.get("RECORD", b""))
    items = tuple(_member_item(member, hashes) for member in members)
    package = Package(name="", source=str(path), dist_info=dist_info, items=items)
    return with_metadata(package, texts, tags=split_wheel_file_name(path.name).tags)


def read_sdist_package(path: Path) -> Package:
    """Return the package in an sdist; raise `InputError` for one that can't be read."""
    try:
        files = read_sdist(path)
    except OSError as e:
        raise read_error(path, e) from e
    items = tuple(
        Item(path=name, source=f"{path}!{name}", size=len(data), content=data) for name, data in files.items()
    )
    if "PKG-INFO" not in files:
        raise InputError(path, "has no PKG-INFO", expected="an sdist", remedy=_AGAIN)
    return with_metadata(Package(name="", source=str(path), items=items), {"METADATA": files["PKG-INFO"]})


def with_metadata(
    package: Package, texts: Mapping[str, bytes], *, tags: tuple[str, str, str] = ("", "", "")
) -> Package:
    """Return a package with what the files of its ``.dist-info`` say, by their names there.

    Raises `InputError` for one whose metadata can't be read, or doesn't name it.
    """
    source = package.source
    fields = _read_fields(source, texts.get("METADATA", b""))
    declared = texts.get(DECLARATION_NAME)
    metadata = Metadata(
        requires=tuple(fields.get("requires_dist", ())),
        requires_python=fields.get("requires_python", ""),
        extras=tuple(fields.get("provides_extra", ())),
        entry_points=read_entry_points(source, texts.get("entry_points.txt", b"")),
        targets=decode_declaration(declared, source=f"{source}!{DECLARATION_NAME}").rocm_targets if declared else (),
        license=fields.get("license_expression", "") or fields.get("license", ""),
        summary=fields.get("summary", ""),
        tags=tags,
    )
    return Package(
        name=canonicalize_name(fields["name"]),
        version=fields.get("version", ""),
        source=source,
        dist_info=package.dist_info,
        metadata=metadata,
        items=package.items,
    )


def _read_fields(source: str, text: bytes) -> RawMetadata:
    """Return the fields of METADATA, which has a name at least."""
    try:
        fields, _ = parse_core_metadata(text)
    except CoreMetadataError as e:
        raise InputError(source, f"its metadata can't be read ({e})", remedy=_AGAIN) from e
    if not fields.get("name"):
        raise InputError(source, "its metadata has no Name", remedy=_AGAIN)
    return fields


def _has(by_name: Mapping[str, ZipMember], dist_info: str, name: str) -> bool:
    return f"{dist_info}/{name}" in by_name


def _read_hashes(path: Path, record: bytes) -> dict[str, str]:
    try:
        return {entry.path: entry.hash for entry in parse_record(record, path)}
    except InputError as e:
        raise InputError(path, f"its RECORD {e.found}", remedy=_AGAIN) from e


def _member_item(member: ZipMember, hashes: Mapping[str, str]) -> Item:
    return Item(
        path=installed_path(member.name),
        source=member.source,
        size=member.size,
        packed=member.packed.size,
        mode=member.mode,
        link=read_member(member).decode(errors="surrogateescape") if member.mode & _KIND == _LINK else None,
        hash=hashes.get(member.name, ""),
        content=member,
    )


def read_entry_points(source: str, data: bytes) -> tuple[str, ...]:
    """Return the entry points (entry points specification), each as ``group: name``.

    Raises `InputError`, naming ``source``, for text that is none.
    """
    groups = parse_entry_points(source, data)
    return tuple(f"{group}: {name}" for group, names in groups.items() for name in names)
