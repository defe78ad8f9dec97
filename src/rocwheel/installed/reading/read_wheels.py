"""Reading wheels as they would be installed, member by member and without unpacking them to disk."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import quoted
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.remote_placeholders import prefetch, source_at
from rocwheel.core.workers import Told, map_sized, open_workers
from rocwheel.installed.devel_paths import (
    is_devel_archive,
    is_devel_manifest,
    read_archive_paths,
    read_manifest_paths,
)
from rocwheel.installed.reading.check_scripts import MOST_MODULE, find_script_problems
from rocwheel.installed.reading.member_paths import installed_path
from rocwheel.installed.reading.mentions import is_source, mentioned_in_source
from rocwheel.installed.reading.read_dist_info import ENTRY_POINTS, INFO_FILES, read_distribution
from rocwheel.installed.reading.read_file import advanced, is_worth_reading, with_binary_facts, with_head
from rocwheel.installed.reading.wheel_reading import WheelReading
from rocwheel.installed.tree import Distribution, InstalledFile, MetadataProblem, wheel_layout
from rocwheel.wheels.names import is_wheel_file_name
from rocwheel.wheels.zip_directory import Archive, find_dist_info, read_archive
from rocwheel.wheels.zip_reader import ZipMember, iter_member, member_head, open_content, read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["read_wheels"]

_MOST_SOURCE = 4 << 20
"""Larger sources, in bytes, are data: they open no libraries."""
_SMALL = 256 << 10
"""Packed bytes that take less time than a request: such a member waits for the others, not for a server."""
_MOST_PREFETCHED = 64 << 20
_BY_DEFAULT = WheelReading()


def read_wheels(
    paths: Sequence[Path], *, context: bool = False, progress: Progress = SILENT, how: WheelReading = _BY_DEFAULT
) -> tuple[list[Distribution], list[InstalledFile]]:
    """Read several wheels; members are unpacked and hashed as ``how`` says.

    A damaged member is a problem of its file. Raises `InputError` for a file that is not a wheel or not named like one,
    and for damaged metadata.
    """
    opened = [_open_wheel(path, context=context) for path in paths]
    files: list[InstalledFile] = []
    if how.readers is not None:
        every = [
            (str(path), _shared(member)) for path, (_, members) in zip(paths, opened, strict=True) for member in members
        ]
        progress.begin("reading wheels", sum(member.size for _, member in every))
        files += [advanced(progress, file) for file in how.readers.map(_read_pair, every, _tell)]
        return [distribution for distribution, _ in opened], files
    with open_workers() as executor:
        for path, (_, members) in zip(paths, opened, strict=True):
            progress.begin(f"reading {path.name}", sum(member.size for member in members))
            _prefetch_small(path, members)
            read = map_sized(executor, partial(_read_file, str(path), how=how), members, lambda member: member.size)
            files += [advanced(progress, file) for file in read]
    return [distribution for distribution, _ in opened], files


def _prefetch_small(path: Path, members: Iterable[ZipMember]) -> None:
    """Have the small members that will be read of a wheel that is elsewhere brought many at a time."""
    ranges, room = [], _MOST_PREFETCHED
    for member in members if source_at(str(path)) else ():
        size = member.packed.size
        if size <= min(_SMALL, room) and _is_read(member):
            ranges.append((member.packed.offset, member.packed.offset + size))
            room -= size
    prefetch(str(path), ranges)


def _is_read(member: ZipMember) -> bool:
    """Return whether more than the beginning of a member is read; what is damaged there is told of later."""
    try:
        return is_source(member.name) or is_worth_reading(member_head(member))
    except InputError:
        return False


def _open_wheel(path: Path, *, context: bool) -> tuple[Distribution, tuple[ZipMember, ...]]:
    _check_wheel_name(path)
    archive = read_archive(path)
    members = archive.members
    _require_one_devel_archive(path, members)
    dist_info = find_dist_info(path, (member.name for member in members))
    by_name = {member.name: member for member in members}
    texts = {name: read_member(by_name[found]) for name in INFO_FILES if (found := f"{dist_info}/{name}") in by_name}
    distribution = read_distribution(texts, source=str(path), dist_info=dist_info, is_wheel=True, is_context=context)
    distribution = msgspec.structs.replace(distribution, refused=_refused(archive))
    if (scripts := by_name.get(f"{dist_info}/{ENTRY_POINTS}")) is not None and not context:
        placed = {installed_path(member.name, distribution.layout): member for member in members}
        problems = find_script_problems(read_member(scripts), placed, lambda place: _read_source(placed[place]))
        distribution = msgspec.structs.replace(distribution, script_problems=tuple(problems))
    return distribution, members


def _refused(archive: Archive) -> tuple[MetadataProblem, ...]:
    """Return what installers refuse in the headers, each by the member's name if only one has it."""
    return tuple(
        MetadataProblem(f"{member}: {error.fault}" if member else error.fault, (member, error.found))
        for error in archive.refused
        for member in [str(error.source).partition("!")[2]]
    )


def _require_one_devel_archive(path: Path, members: Iterable[ZipMember]) -> None:
    """Raise `InputError` for several archives of development files: what each unpacks to is bounded by itself."""
    archives = [member.name for member in members if is_devel_archive(member.name)]
    if len(archives) > 1:
        found = f"has {len(archives)} archives of development files, {quoted(archives[0])} and others"
        raise InputError(path, found, expected="one", remedy="Build or download it again.")


def _read_source(member: ZipMember) -> bytes | None:
    """Return a module's text; none for a large one, and for a damaged one, which is a problem of that file."""
    try:
        return read_member(member) if member.size <= MOST_MODULE else None
    except WorkError:
        raise
    except InputError:
        return None


def _shared(member: ZipMember) -> ZipMember:
    return msgspec.structs.replace(member, packed=member.packed.for_any_machine())


def _tell(wheel_and_member: tuple[str, ZipMember]) -> Told:
    _, member = wheel_and_member
    return Told(member.source, member.size, member.packed.path)


def _read_pair(wheel_and_member: tuple[str, ZipMember]) -> InstalledFile:
    return _read_file(*wheel_and_member, how=_BY_DEFAULT)


def _read_file(wheel: str, member: ZipMember, how: WheelReading) -> InstalledFile:
    """Return what a member is; damage is a problem of the file, so that the others are read."""
    file = InstalledFile(
        path=installed_path(member.name, wheel_layout(wheel.rpartition("/")[2])),
        distribution=wheel,
        source=member.source,
        size=member.size,
        mode=member.mode,
    )
    try:
        return _with_devel_paths(_with_content(file, member, how), member)
    except WorkError:
        raise
    except InputError as e:
        return msgspec.structs.replace(file, problem=e.fault)


def _check_wheel_name(path: Path) -> None:
    """Raise `InputError` for a file name without the five parts, or six with a build number, of a wheel's."""
    if not is_wheel_file_name(path.name):
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM.whl"
        raise InputError(path, "is not named like a wheel", expected=expected, remedy="Rename it back.")


def _with_content(file: InstalledFile, member: ZipMember, how: WheelReading) -> InstalledFile:
    head = member_head(member)
    # Links become text files.
    file = with_head(file, head)
    if file.mode & 0o170000 == 0o120000:
        return msgspec.structs.replace(file, link=read_member(member).decode(errors="replace"))
    if is_source(member.name) and member.size <= _MOST_SOURCE:
        text = read_member(member)
        mentions = mentioned_in_source(text)
        return msgspec.structs.replace(file, sha256=hashlib.sha256(text).digest(), mentions=mentions)
    if source_at(member.packed.path):
        return _with_facts_alone(file, member, head, how)
    if not is_worth_reading(head):
        return msgspec.structs.replace(file, sha256=how.digest(member).sha256)
    with how.unpack(member) as (unpacked, digest), unpacked.view() as data:
        file = msgspec.structs.replace(file, sha256=digest.sha256)
        return with_binary_facts(file, data, headers_only=how.headers_only)


def _with_devel_paths(file: InstalledFile, member: ZipMember) -> InstalledFile:
    """Return a file with the development files that it has packed: an archive only where it need not be fetched."""
    if not wheel_layout(file.distribution.rpartition("/")[2]).is_windows:
        return file
    if is_devel_manifest(file.path):
        return msgspec.structs.replace(file, devel_paths=read_manifest_paths(file.source, read_member(member)))
    if is_devel_archive(file.path) and not source_at(member.packed.path):
        paths = read_archive_paths(file.source, iter_member(member), member.packed.size)
        return msgspec.structs.replace(file, devel_paths=paths)
    return file


def _with_facts_alone(file: InstalledFile, member: ZipMember, head: bytes, how: WheelReading) -> InstalledFile:
    """Return what a member of a wheel that is elsewhere is, without a hash: data would be read for that alone."""
    if not is_worth_reading(head):
        return file
    with open_content(member) as unpacked, unpacked.view() as data:
        return with_binary_facts(file, data, headers_only=how.headers_only, whole=False)
