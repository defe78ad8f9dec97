"""One wheel or sdist as an index lists it: names from its file name, facts from its core metadata."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.specifiers import InvalidSpecifier
from packaging.version import Version

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.messages import count, quoted
from rocwheel.core.reading import FileStamp, unchanged
from rocwheel.distributions.formats.identity import check_identity
from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.formats.requirements.requirements import read_specifier
from rocwheel.distributions.index.entries.about import DECLARED_TARGETS, About, describe, read_requires_txt
from rocwheel.distributions.index.entries.check_members import check_members
from rocwheel.distributions.index.entries.file_name import FileName, parse_path
from rocwheel.distributions.index.entries.variant_text import read_variant_text
from rocwheel.distributions.tar.sdist_file import read_sdist_file
from rocwheel.distributions.zip.directory import read_archive, read_directory
from rocwheel.distributions.zip.dist_info import find_metadata
from rocwheel.distributions.zip.reader import read_member

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.metadata import RawMetadata

__all__ = [
    "IndexEntry",
    "Reading",
    "read_entry",
    "read_metadata",
]

_METADATA_LIMIT = 16 << 20
_DEPENDENCY_FIELDS = {"requires-dist", "requires-python", "provides-extra"}


class IndexEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A wheel or sdist."""

    filename: str
    project: str
    """The normalised project name (:pep:`503`)."""
    version: str
    """The version, in normal form."""
    identity: str
    """What no other file of the project may share: version and, for a wheel, build, tags and label, in normal form."""
    size: int
    sha256: str
    """Empty for a file whose bytes may change."""
    requires_python: str | None
    metadata_sha256: str | None
    """Of the core metadata that an installer may rely on (:pep:`658`); none for an sdist whose build decides it."""
    upload_time: int
    """Microseconds since 1970 (:pep:`700`); of a file that was just read, when it was last written."""
    about: About = About()
    """What it says of itself to people."""
    label: str = ""
    """Of a wheel variant (:pep:`825`, a draft); empty for none."""
    variant: str = ""
    """What the variant says of itself: its ``variant.json``."""


class Reading(msgspec.Struct, frozen=True):
    """A file that has been read, and which file that was."""

    entry: IndexEntry
    metadata: bytes | None
    """The core metadata whose hash the entry has."""
    stamp: FileStamp


class _Texts(NamedTuple):
    """What a distribution says of itself."""

    metadata: bytes
    declared: bytes = b""
    """The list of GPU targets; empty without one, and for one that can't be read."""
    variant: str = ""
    """``variant.json`` as `IndexEntry` has it."""


def read_entry(path: Path) -> Reading:
    """Read a wheel or sdist: all of it is hashed and unpacked, and compared with its checksums.

    Raises `InputError` for a name that is not a distribution's, for a file that can't be read as one or is damaged, for
    metadata that disagrees with the name, and for a RECORD that does with the members; `ProblemsError` for several.
    """
    name = parse_path(path)
    is_wheel = path.name.endswith(".whl")
    try:
        with unchanged(path) as stamp:
            sha256 = hash_file(path)
            texts = _read_checked_texts(path, name) if is_wheel else _Texts(_read_sdist_metadata(path))
            required = () if is_wheel else _read_sdist_requirements(path, name)
    except OSError as e:
        raise read_error(path, e, remedy="Check its permissions.") from e
    metadata = _parse_metadata(path, texts.metadata)
    _check(path, name, metadata)
    shown = texts.metadata if is_wheel or _is_static(metadata) else None
    entry = IndexEntry(
        filename=path.name,
        project=name.project,
        version=str(name.version),
        identity=name.identity,
        size=stamp.size,
        sha256=sha256,
        requires_python=metadata.get("requires_python"),
        metadata_sha256=hashlib.sha256(shown).hexdigest() if shown is not None else None,
        upload_time=stamp.modified // 1000,
        about=describe(metadata, texts.declared, required),
        label=name.label,
        variant=texts.variant,
    )
    return Reading(entry, shown, stamp)


def read_metadata(path: Path) -> bytes:
    """Return the core metadata of a distribution that `read_entry` has read before; raises as that does."""
    if not path.name.endswith(".whl"):
        return _read_sdist_metadata(path)
    members = {member.name: member for member in read_directory(path)}
    return read_member(members[find_metadata(path, members)])


def _read_checked_texts(path: Path, name: FileName) -> _Texts:
    archive = read_archive(path)
    members = {member.name: member for member in archive.members}
    expected = f"one *.dist-info/METADATA of {name.project} {name.version}"
    found = members[find_metadata(path, members, expected=expected)]
    if found.size > _METADATA_LIMIT:
        raise InputError(path, f"{found.name} is {count(found.size, 'byte')} long", expected="at most 16 MiB")
    check_members(path, members, archive.refused)
    declared = members.get(found.name.removesuffix("METADATA") + DECLARED_TARGETS)
    is_readable = declared is not None and declared.size <= _METADATA_LIMIT
    return _Texts(
        read_member(found),
        read_member(declared) if declared is not None and is_readable else b"",
        read_variant_text(path, members, name.label),
    )


def _read_sdist_metadata(path: Path) -> bytes:
    found = read_sdist_file(path, "PKG-INFO", to_end=True)
    if found is None:
        raise InputError(path, "not an sdist: no NAME-VERSION/PKG-INFO inside")
    return found


def _read_sdist_requirements(path: Path, name: FileName) -> tuple[tuple[str, str], ...]:
    """Return what an sdist's build may require, as far as setuptools or the selector's maker has listed it."""
    info = f"{name.project.replace('-', '_')}.egg-info/requires.txt"
    found = read_sdist_file(path, f"src/{info}") or read_sdist_file(path, info) or b""
    return tuple(read_requires_txt(found.decode(errors="replace")))


def _parse_metadata(path: Path, data: bytes) -> RawMetadata:
    try:
        return parse_core_metadata(data)[0]
    except CoreMetadataError as e:
        raise InputError(path, f"its metadata can't be read: {e}") from e


def _check(path: Path, name: FileName, metadata: RawMetadata) -> None:
    check_identity(path, metadata, name.project, name.version)
    try:
        read_specifier(metadata.get("requires_python", ""))
    except InvalidSpecifier as e:
        found = f"its metadata has Requires-Python {quoted(metadata.get('requires_python', ''))}"
        raise InputError(path, found, expected="a version specifier such as '>=3.10'") from e


def _is_static(metadata: RawMetadata) -> bool:
    """Return whether every build of an sdist would have this metadata (:pep:`643`)."""
    dynamic = {field.lower() for field in metadata.get("dynamic", [])}
    with suppress(ValueError):
        return Version(metadata.get("metadata_version", "")) >= Version("2.2") and not dynamic & _DEPENDENCY_FIELDS
    return False
