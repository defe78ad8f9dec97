"""One wheel or sdist as an index lists it: names from its file name, facts from its core metadata."""

from __future__ import annotations

import hashlib
import lzma
import re
import struct
import zipfile
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    canonicalize_version,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from rocwheel.distributions.formats.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.tar.sdist_file import read_sdist_file
from rocwheel.distributions.zip.dist_info import find_metadata
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.metadata import RawMetadata

__all__ = ["SUFFIXES", "IndexEntry", "read_entry"]

SUFFIXES = (".whl", ".tar.gz")
"""How the names of the files that an index lists end."""

_METADATA_LIMIT = 16 << 20
_BLOCK = 1 << 20
_TAG = re.compile(r"\w+-\w+-\w+", re.ASCII)
_DEPENDENCY_FIELDS = {"requires-dist", "requires-python", "provides-extra"}


class IndexEntry(msgspec.Struct, frozen=True):
    """A wheel or sdist."""

    filename: str
    project: str
    """The normalised project name (:pep:`503`)."""
    version: str
    """The version, in normal form."""
    identity: str
    """What no other file of the project may share: version and, for a wheel, build and tags, all in normal form."""
    size: int
    sha256: str
    requires_python: str | None
    metadata: bytes | None
    """The core metadata that an installer may rely on (:pep:`658`); none for an sdist that decides it when built."""


class _FileName(msgspec.Struct, frozen=True):
    project: str
    version: Version
    identity: str


def read_entry(path: Path) -> IndexEntry:
    """Read a wheel or sdist, hashing all of it.

    Raises `InputError` for a name that is not a distribution's, for a file that can't be read as one, and for metadata
    that disagrees with the name.
    """
    name = _parse_filename(path)
    is_wheel = path.name.endswith(".whl")
    try:
        data = _read_wheel_metadata(path, name) if is_wheel else _read_sdist_metadata(path)
        size, sha256 = path.stat().st_size, _hash(path)
    except OSError as e:
        raise read_error(path, e, remedy="Check its permissions.") from e
    metadata = _parse_metadata(path, data)
    _check(path, name, metadata)
    return IndexEntry(
        filename=path.name,
        project=name.project,
        version=str(name.version),
        identity=name.identity,
        size=size,
        sha256=sha256,
        requires_python=metadata.get("requires_python"),
        metadata=data if is_wheel or _is_static(metadata) else None,
    )


def _parse_filename(path: Path) -> _FileName:
    try:
        if path.name.endswith(".whl"):
            project, version, build, tags = parse_wheel_filename(path.name)
            identity = " ".join([canonicalize_version(version), *map(str, build), *sorted(map(str, tags))])
        else:
            project, version = parse_sdist_filename(path.name)
            identity = f"{canonicalize_version(version)} sdist"
            tags = frozenset()
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion) as e:
        raise _bad_name(path) from e
    if not all(_TAG.fullmatch(str(tag)) for tag in tags):
        raise _bad_name(path)
    return _FileName(project, version, identity)


def _bad_name(path: Path) -> InputError:
    expected = "NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz"
    return InputError(path, "not the name of a distribution", expected=expected, remedy="Rename it, or remove it.")


def _read_wheel_metadata(path: Path, name: _FileName) -> bytes:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            expected = f"one *.dist-info/METADATA of {name.project} {name.version}"
            member = archive.getinfo(find_metadata(path, archive.namelist(), expected=expected))
            if member.file_size > _METADATA_LIMIT:
                found = f"{member.filename} is {member.file_size} bytes long"
                raise InputError(path, found, expected="at most 16 MiB")
            return archive.read(member)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, struct.error) as e:
        raise InputError(path, f"not a readable zip archive ({e})", remedy="Build or fetch it again.") from e


def _read_sdist_metadata(path: Path) -> bytes:
    found = read_sdist_file(path, "PKG-INFO", to_end=True)
    if found is None:
        raise InputError(path, "not an sdist: no NAME-VERSION/PKG-INFO inside")
    return found


def _parse_metadata(path: Path, data: bytes) -> RawMetadata:
    try:
        return parse_core_metadata(data)[0]
    except CoreMetadataError as e:
        raise InputError(path, f"its metadata can't be read: {e}") from e


def _check(path: Path, name: _FileName, metadata: RawMetadata) -> None:
    if canonicalize_name(metadata.get("name", "")) != name.project:
        found = f"its metadata names the project {metadata.get('name', '')!r}"
        raise InputError(path, found, expected=f"{name.project!r} as in the file name")
    version = None
    with suppress(InvalidVersion):
        version = Version(metadata.get("version", ""))
    if version != name.version:
        found = f"its metadata gives the version {metadata.get('version', '')!r}"
        raise InputError(path, found, expected=f"{str(name.version)!r} as in the file name")
    try:
        SpecifierSet(metadata.get("requires_python", ""))
    except InvalidSpecifier as e:
        found = f"its metadata has Requires-Python {metadata.get('requires_python')!r}"
        raise InputError(path, found, expected="a version specifier such as '>=3.10'") from e


def _is_static(metadata: RawMetadata) -> bool:
    """Return whether every build of an sdist would have this metadata (:pep:`643`)."""
    dynamic = {field.lower() for field in metadata.get("dynamic", [])}
    with suppress(InvalidVersion):
        return Version(metadata.get("metadata_version", "")) >= Version("2.2") and not dynamic & _DEPENDENCY_FIELDS
    return False


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
