"""Compares files with their sizes and hashes in RECORD, wheels, sdists, and checksum files."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.artifacts.fetching import CHECKSUM_FILES, MAX_CHECKSUMS_SIZE, parse_checksums
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.hashing import hash_rest
from rocwheel.core.messages import count
from rocwheel.core.reading import open_unchanged, read_small
from rocwheel.core.workers import serialized
from rocwheel.wheels.file_names import check_identity, parse_path
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.record import find_record_problems, find_row_problem, parse_record, unhashed_paths
from rocwheel.wheels.sdist import read_sdist_file, read_sdist_names
from rocwheel.wheels.zip_directory import find_dist_info, read_archive
from rocwheel.wheels.zip_reader import hash_member, read_member
from rocwheel.wheels.zip_refusals import outside_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Executor

    from rocwheel.core.progress import Progress
    from rocwheel.wheels.record import RecordEntry
    from rocwheel.wheels.zip_reader import ZipMember

SubjectKind = Literal["build", "wheel", "sdist", "checksums", "index", "environment"]
FaultKind = Literal["missing", "extra", "changed", "damaged", "unlisted", "link"]
"""A file that is missing, extra, changed, unreadable, unlisted, or a symbolic link."""


class Fault(msgspec.Struct, frozen=True):
    """A file that doesn't match its record."""

    kind: FaultKind
    place: str
    """The path of the file. A member of a wheel is ``WHEEL!MEMBER``."""
    found: str
    """The actual state, such as a SHA-256 in hexadecimal, or the reason why the state is unknown."""
    expected: str = ""
    """The recorded state."""

    @property
    def text(self) -> str:
        """The fault as a single line."""
        text = f"{self.place}: {self.found}"
        return f"{text}; expected {self.expected}" if self.expected else text


class Verified(msgspec.Struct, frozen=True):
    """The result for one subject."""

    path: str
    kind: SubjectKind
    files: int
    """The number of compared files, or of compared wheel members."""
    size: int
    """The size of these files in bytes."""
    faults: tuple[Fault, ...] = ()
    unchecked: int = 0
    """The number of files that have no record or are in other locations."""


class Promise(msgspec.Struct, frozen=True):
    """The size and hash that are recorded for a file."""

    path: Path
    sha256: str
    """The SHA-256 in hexadecimal. Empty if unknown."""
    size: int | None = None
    """The size in bytes, or `None` if unknown."""


def find_fault(promise: Promise, advance: Callable[[int], object]) -> Fault | None:
    """Return the fault of a file, or `None` if the file matches its record. Symbolic links aren't followed."""
    place = str(promise.path)
    faults: list[Fault] = []
    with reading_faults(place, faults):
        status = promise.path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Fault("link", place, "is a symlink", "a file")
        if not stat.S_ISREG(status.st_mode):
            return Fault("changed", place, "isn't a file", "a file")
        if promise.size is not None and status.st_size != promise.size:
            return Fault("changed", place, f"has {count(status.st_size, 'byte')}", count(promise.size, "byte"))
        with open_unchanged(promise.path) as file:
            found = hash_rest(file, advance=advance).hex()
        if promise.sha256 and found != promise.sha256:
            return Fault("changed", place, f"has the SHA-256 {found}", promise.sha256)
    return faults[0] if faults else None


@contextmanager
def reading_faults(place: str, faults: list[Fault]) -> Iterator[None]:
    """Append any error from reading the file at ``place`` to ``faults``, and end the block."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        faults.append(Fault("missing", place, "is missing", "a file"))
    except OSError as e:
        faults.append(Fault("damaged", place, f"can't be read ({os.strerror(e.errno) if e.errno else e})"))
    except RocwheelError as e:
        found, expected = getattr(e, "found", str(e)), getattr(e, "expected", "")
        faults.append(Fault("damaged", str(getattr(e, "source", place)), found, expected))


def row_fault(row: RecordEntry, place: str, size: int, digest: Callable[[str], bytes]) -> Fault | None:
    """Return the fault of a file, according to its row. ``digest`` hashes the file with a given algorithm.

    The size is compared if the row contains a size. Raises the same errors as ``digest``.
    """
    hashed = cache(digest)
    problem = find_row_problem(row, size, hashed)
    if problem is None:
        return None
    if problem.kind == "algorithm":
        found = f"has only a hash of type {row.algorithm} in RECORD" if row.algorithm else "has no hash in RECORD"
        return Fault("unlisted", place, found, "a sha256, sha384, or sha512 hash")
    if problem.kind == "size":
        return Fault("changed", place, f"has {count(size, 'byte')}", f"{row.size}, as in RECORD")
    wanted = row.digest.hex() if row.digest else f"{row.hash}, as in RECORD"
    return Fault("changed", place, f"has the {row.algorithm} {hashed(row.algorithm).hex()}", wanted)


_ARE = ("is", "are")


def verify_wheel(path: Path, executor: Executor, progress: Progress) -> Verified:
    """Unpack all members of a wheel, and compare them with its RECORD.

    A damaged wheel is a fault. Wheel headers and names that installers reject are also faults.
    """
    faults: list[Fault] = []
    members: dict[str, ZipMember] = {}
    with reading_faults(str(path), faults):
        archive = read_archive(path)
        members = {member.name: member for member in archive.members}
        faults += [Fault("damaged", str(one.source), one.found, one.expected) for one in archive.refused]
        faults += [
            Fault("damaged", member.source, f"has {reason}", "a path inside the environment")
            for member in archive.members
            if (reason := outside_reason(member.name))
        ]
        info = find_dist_info(path, members)
        rows = _read_rows(path, members, info)
        faults += _text_faults(f"{path}!{info}/RECORD", rows)
        rows = tuple(_as_member(row, members) for row in rows)
        faults += _gap_faults(path, rows, members, info)
        progress.begin(f"verifying {path.name}", sum(member.size for member in members.values()))
        check = partial(_member_faults, advance=serialized(progress.advance))
        for found in executor.map(check, _pairs(rows, members, info)):
            faults += found
    progress.end()
    return Verified(str(path), "wheel", len(members), sum(one.size for one in members.values()), tuple(faults))


def _read_rows(path: Path, members: Mapping[str, ZipMember], info: str) -> tuple[RecordEntry, ...]:
    record = members.get(f"{info}/RECORD")
    if record is None:
        raise InputError(path, f"has no {info}/RECORD", expected="a RECORD that lists its members")
    return parse_record(read_member(record), record.source)


def _text_faults(place: str, rows: tuple[RecordEntry, ...]) -> list[Fault]:
    number = sum(not _is_text(row.path) for row in rows)
    if not number:
        return []
    return [
        Fault("damaged", place, f"has {count(number, 'name')} that {_ARE[number > 1]} not valid UTF-8", "UTF-8 text")
    ]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_member(row: RecordEntry, members: Mapping[str, ZipMember]) -> RecordEntry:
    """Return a row for an archive whose names aren't UTF-8. The row's path is encoded in the format's code page."""
    if row.path in members or _is_text(row.path):
        return row
    name = row.path.encode("utf-8", "surrogateescape").decode("cp437")
    return msgspec.structs.replace(row, path=name) if name in members else row


_GAPS: dict[str, tuple[FaultKind, str]] = {
    "absent": ("missing", "a member that RECORD lists"),
    "unlisted": ("extra", "only members that RECORD lists"),
    "repeated": ("unlisted", "each member only once"),
}


def _gap_faults(
    path: Path, rows: tuple[RecordEntry, ...], members: Mapping[str, ZipMember], info: str
) -> Iterator[Fault]:
    sizes = {name: member.size for name, member in members.items()}
    for problem in find_record_problems(rows, sizes, info, lambda *_: None):
        if problem.kind in _GAPS:
            kind, expected = _GAPS[problem.kind]
            found = {"absent": "is missing", "unlisted": "isn't in RECORD"}.get(problem.kind, "")
            times = f"is listed{problem.after} in RECORD"
            yield Fault(kind, f"{path}!{problem.path}", found or times, expected)


def _pairs(
    rows: tuple[RecordEntry, ...], members: Mapping[str, ZipMember], info: str
) -> list[tuple[ZipMember, RecordEntry | None]]:
    """Return each member with its row. RECORD, its signatures, and unlisted members have no row."""
    by_path = {row.path: row for row in rows}
    unhashed = unhashed_paths(info)
    return [(member, None if name in unhashed else by_path.get(name)) for name, member in members.items()]


def _member_faults(pair: tuple[ZipMember, RecordEntry | None], advance: Callable[[int], object]) -> list[Fault]:
    member, row = pair
    faults: list[Fault] = []
    with reading_faults(member.source, faults):
        digest = partial(hash_member, member, advance=advance)
        if row is None:
            digest("sha256")
        elif fault := row_fault(row, member.source, member.size, digest):
            faults.append(fault)
    return faults


_METADATA = "PKG-INFO"


def verify_sdist(path: Path) -> Verified:
    """Unpack a complete sdist, which verifies its checksum, and compare its name with its metadata.

    The other files have no record, so they aren't compared. A damaged sdist is a fault. A second metadata file is also
    a fault, because installers may confuse it with the first.
    """
    faults: list[Fault] = []
    names: tuple[str, ...] = ()
    size = 0
    with reading_faults(str(path), faults):
        size = path.stat().st_size
        names = read_sdist_names(path)
        metadata = read_sdist_file(path, _METADATA, to_end=True)
        if metadata is None:
            faults.append(Fault("missing", f"{path}!{_METADATA}", "is missing", "the metadata of an sdist"))
        elif fault := _name_fault(path, metadata):
            faults.append(fault)
    return Verified(str(path), "sdist", 1, size, tuple(faults), max(len(names) - 1, 0))


def _name_fault(path: Path, metadata: bytes) -> Fault | None:
    place = f"{path}!{_METADATA}"
    try:
        fields, _ = parse_core_metadata(metadata)
    except CoreMetadataError as e:
        return Fault("damaged", place, f"can't be read ({e})", "core metadata")
    try:
        name = parse_path(path)
        check_identity(place, fields, name.project, name.version)
    except InputError as e:
        return Fault("changed", str(e.source), e.found, e.expected)
    return None


_EXPECTED = "checksums in the format of sha256sum"


def find_checksums(folder: Path) -> list[Path]:
    """Return the checksum files in a folder."""
    return [path for name in CHECKSUM_FILES if (path := folder / name).is_file()]


def verify_checksums(path: Path, executor: Executor, progress: Progress) -> Verified:
    """Compare each file in a checksum file with its checksum.

    A name that points outside the folder is a fault, and its file isn't read. Raises `InputError` for an unreadable
    checksum file.
    """
    listed = parse_checksums(read_small(path, MAX_CHECKSUMS_SIZE, expected=_EXPECTED), str(path))
    outside = [name for name in listed if name.startswith(("/", "../")) or name == ".." or "\0" in name]
    promises = [Promise(path.parent / name, sha256) for name, sha256 in listed.items() if name not in outside]
    sizes = [size_of(promise.path) for promise in promises]
    progress.begin(f"verifying {path.name}", sum(sizes))
    check = partial(find_fault, advance=serialized(progress.advance))
    faults = [fault for fault in executor.map(check, promises) if fault]
    progress.end()
    faults += [
        Fault("unlisted", str(path), f"lists {name}", "files in its folder or its subfolders") for name in outside
    ]
    return Verified(str(path), "checksums", len(promises), sum(sizes), tuple(faults))


def size_of(path: Path) -> int:
    """Return the size of a file, or 0 if the file is missing, because that is reported separately."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
