"""Reads a wheel or sdist for an index: information from its members and metadata, and the checks that it must pass."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.specifiers import InvalidSpecifier
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.hashing import hash_file
from rocwheel.core.messages import quoted
from rocwheel.core.progress import SILENT
from rocwheel.core.reading import FileStamp, unchanged
from rocwheel.targets.declaration import DECLARATION_NAME
from rocwheel.wheels.checking import check_members
from rocwheel.wheels.file_names import FileName, check_identity, is_distribution_name, parse_path
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import (
    asked_for,
    is_refusing,
    parse_requires_txt,
    read_specifier,
    readable_requirements,
)
from rocwheel.wheels.sdist import read_listed_requirements, read_sdist_file
from rocwheel.wheels.variants import load_draft, read_wheel_text, render_metadata
from rocwheel.wheels.zip_directory import find_dist_info, find_metadata, read_archive, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from packaging.metadata import RawMetadata

    from rocwheel.wheels.zip_reader import ZipMember


def read_variant_text(path: Path, members: Mapping[str, ZipMember], label: str) -> str:
    """Return the ``variant.json`` of a wheel in the format that rocwheel writes, or an empty string for a plain wheel.

    ``label`` is the variant label in the file name, or an empty string. Raises the same errors as `read_wheel_text`.
    """
    dist_info = find_dist_info(path, members)
    member = members.get(f"{dist_info}/{load_draft().names.in_wheel}")
    data = read_member(member) if member is not None else None
    metadata = read_wheel_text(data, label=label, wheel=str(path), dist_info=dist_info)
    return render_metadata(metadata).decode() if metadata is not None else ""


"""The file in a wheel's ``.dist-info`` that lists the GPU targets of its code."""

_EXTRA = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_OF_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']*)["']""")
_TARGET = re.compile(r"[a-z0-9-]+(?::[a-z]+[+-])*", re.ASCII)
_LONGEST_SUMMARY = 512


class About(msgspec.Struct, frozen=True, array_like=True):
    """The information that a distribution contains about itself. Unreadable values are empty."""

    summary: str = ""
    targets: tuple[str, ...] = ()
    """GPU target IDs, such as ``gfx90a:xnack+``."""
    requires: dict[str, tuple[tuple[str, str], ...]] = {}
    """The normalized names and extras that each extra requires.

    ``""`` means without any extra. Requirements that can't be met are omitted.
    """


class _Declared(msgspec.Struct, frozen=True):
    rocm_targets: tuple[str, ...] = ()


def describe(metadata: RawMetadata, declared: bytes = b"", requires: Iterable[tuple[str, str]] = ()) -> About:
    """Return the information in core metadata, the file `DECLARATION_NAME`, and other extra-requirement pairs.

    Malformed values are omitted, because an index lists a distribution regardless of them.
    """
    rows = [*_requirements(metadata), *requires]
    extras = metadata.get("provides_extra", ())
    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    refused = set()
    known = {text: next(iter(readable_requirements([text])), None) for text in dict.fromkeys(text for _, text in rows)}
    for extra in extras:
        found[canonicalize_name(extra)] = []
    for name, text in rows:
        extra = canonicalize_name(name)
        requirement = known[text]
        if requirement and is_refusing(requirement):
            refused.add(extra)
        elif requirement:
            found[extra] += asked_for(requirement)
    return About(
        summary=metadata.get("summary", "")[:_LONGEST_SUMMARY],
        targets=_targets(declared),
        requires={
            extra: tuple(dict.fromkeys(names))
            for extra, names in found.items()
            if extra not in refused and (not extra or _EXTRA.fullmatch(extra))
        },
    )


def read_requires_txt(text: str) -> Iterator[tuple[str, str]]:
    """Yield the extra and the requirement for each line of a setuptools ``requires.txt``.

    A section's name contains an extra and a marker.
    """
    return ((extra, requirement) for extra, _, requirement in parse_requires_txt(text))


def _requirements(metadata: RawMetadata) -> Iterator[tuple[str, str]]:
    for text in metadata.get("requires_dist", ()):
        for extra in _OF_EXTRA.findall(text.partition(";")[2]) or [""]:
            yield extra, text


def _targets(declared: bytes) -> tuple[str, ...]:
    try:
        targets = decode_json(declared, _Declared).rocm_targets if declared else ()
    except msgspec.DecodeError:
        return ()
    return tuple(filter(_TARGET.fullmatch, targets))


_DECLARED_LIMIT = 16 << 20
_DEPENDENCY_FIELDS = {"requires-dist", "requires-python", "provides-extra"}


class IndexEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A wheel or sdist."""

    filename: str
    project: str
    """The normalized project name (:pep:`503`)."""
    version: str
    """The normalized version."""
    identity: str
    """A unique value within the project: the version and, for a wheel, the build, tags, and label, all normalized."""
    size: int
    sha256: str
    """The SHA-256 of the file; empty for a file whose bytes may change."""
    requires_python: str | None
    metadata_sha256: str | None
    """The hash of the static core metadata (:pep:`658`), or `None` for an sdist with dynamic metadata."""
    upload_time: int
    """The upload time in microseconds since 1970 (:pep:`700`).

    For a newly read file, this is its last modification time.
    """
    about: About = About()
    """Information about the distribution for human readers."""
    label: str = ""
    """The label of a wheel variant (:pep:`825`, a draft); empty for other files."""
    variant: str = ""
    """The ``variant.json`` of a wheel variant."""


class ReadEntry(msgspec.Struct, frozen=True):
    """A file that was read, with its index entry."""

    entry: IndexEntry
    metadata: bytes | None
    """The core metadata, whose hash is in the entry."""
    stamp: FileStamp


class _Texts(NamedTuple):
    """The texts inside a distribution that describe it."""

    metadata: bytes
    declared: bytes = b""
    """The list of GPU targets; empty if the list is absent or unreadable."""
    variant: str = ""
    """The ``variant.json`` in the format that `IndexEntry` uses."""


def read_entry(path: Path, advance: Callable[[int], object] = SILENT.advance) -> ReadEntry:
    """Read a wheel or sdist. The whole file is hashed, unpacked, and compared with its checksums.

    ``advance`` is called repeatedly with the number of newly hashed bytes. Raises `InputError` for an invalid
    distribution name and for an unreadable or damaged file. Raises the same error for metadata that disagrees with the
    name, and for the problems that `check_members` finds. Raises `ProblemsError` for several faults.
    """
    name = parse_path(path)
    is_wheel = path.name.endswith(".whl")
    try:
        with unchanged(path) as stamp:
            sha256 = hash_file(path, advance)
            texts = _read_checked_texts(path, name) if is_wheel else _Texts(_read_sdist_metadata(path))
            required = () if is_wheel else tuple(read_requires_txt(read_listed_requirements(path, name.project)))
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
    return ReadEntry(entry, shown, stamp)


def read_metadata(path: Path) -> bytes:
    """Return the core metadata of a distribution that `read_entry` has read. Raises the same errors."""
    if not path.name.endswith(".whl"):
        return _read_sdist_metadata(path)
    members = {member.name: member for member in read_directory(path)}
    return read_member(members[find_metadata(path, members)])


def _read_checked_texts(path: Path, name: FileName) -> _Texts:
    archive = read_archive(path)
    members = {member.name: member for member in archive.members}
    expected = f"one *.dist-info/METADATA of {name.project} {name.version}"
    found = members[find_metadata(path, members, expected=expected)]
    text = read_member(found)
    check_members(path, archive.members, archive.refused)
    declared = members.get(found.name.removesuffix("METADATA") + DECLARATION_NAME)
    is_readable = declared is not None and declared.size <= _DECLARED_LIMIT
    return _Texts(
        text,
        read_member(declared) if declared is not None and is_readable else b"",
        read_variant_text(path, members, name.label),
    )


def _read_sdist_metadata(path: Path) -> bytes:
    found = read_sdist_file(path, "PKG-INFO", to_end=True)
    if found is None:
        raise InputError(path, "is not an sdist, because it has no NAME-VERSION/PKG-INFO")
    return found


def _parse_metadata(path: Path, data: bytes) -> RawMetadata:
    try:
        return parse_core_metadata(data)[0]
    except CoreMetadataError as e:
        raise InputError(path, f"has metadata that can't be read: {e}") from e


def _check(path: Path, name: FileName, metadata: RawMetadata) -> None:
    check_identity(path, metadata, name.project, name.version)
    try:
        read_specifier(metadata.get("requires_python", ""))
    except InvalidSpecifier as e:
        found = f"has metadata with Requires-Python {quoted(metadata.get('requires_python', ''))}"
        raise InputError(path, found, expected="a version specifier such as '>=3.10'") from e


def _is_static(metadata: RawMetadata) -> bool:
    """Return whether every build of an sdist has this metadata (:pep:`643`)."""
    dynamic = {field.lower() for field in metadata.get("dynamic", [])}
    with suppress(ValueError):
        return Version(metadata.get("metadata_version", "")) >= Version("2.2") and not dynamic & _DEPENDENCY_FIELDS
    return False


_INDEX = "simple"


def find_distributions(folder: Path) -> list[Path]:
    """Return the wheels and sdists in a folder and in its family folders. Files in the index itself are omitted.

    Raises `OSError` for a folder that can't be read.
    """
    if not folder.is_dir():
        return []
    places = sorted(folder.iterdir())
    found = [place for place in places if _is_distribution(place)]
    if not found and any(place.is_file() for place in places):
        return []
    families = [place for place in places if place.is_dir() and place.name != _INDEX]
    return [*found, *(place for family in families for place in sorted(family.iterdir()) if _is_distribution(place))]


def _is_distribution(place: Path) -> bool:
    return is_distribution_name(place.name) and place.is_file()
