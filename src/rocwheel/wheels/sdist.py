"""Reads and writes source distributions (:pep:`625`, :pep:`643`), and dates archives based on SOURCE_DATE_EPOCH."""

from __future__ import annotations

import gzip
import io
import os
import posixpath
import re
import tarfile
import time
import zlib
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, TYPE_CHECKING, cast

import msgspec

from rocwheel.core.compression import BOUND, CAUTION, BoundedStream, ExpansionError, most_unpacked
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, quoted
from rocwheel.core.reading import open_regular
from rocwheel.core.writing import atomic_file
from rocwheel.wheels.file_names import normalized_file_part
from rocwheel.wheels.tar import TAR_ERRORS, BoundedTar, MemberLinks, open_tar_stream, tar_members
from rocwheel.wheels.zip_writer import ZipTime

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path


LATEST_SECONDS = 253402300799
"""The last second of the year 9999, because dates in documents have four-digit years."""

_ZIP_EPOCH = 315532800
_SECONDS = re.compile(r"[0-9]{1,12}")


class SourceDate(msgspec.Struct, frozen=True):
    """Seconds since 1970, as defined for SOURCE_DATE_EPOCH by the reproducible builds specification."""

    seconds: int = _ZIP_EPOCH

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SourceDate:
        """Read SOURCE_DATE_EPOCH. Raises `InputError` if the value isn't a whole number or is after the year 9999."""
        text = environment.get("SOURCE_DATE_EPOCH", "")
        if not text:
            return cls()
        if not _SECONDS.fullmatch(text):
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text!r}", "a whole number of seconds since 1970"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        if int(text) > LATEST_SECONDS:
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text}", f"at most {LATEST_SECONDS}, in the year 9999"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        return cls(int(text))

    @property
    def zip_time(self) -> ZipTime:
        """The time in ZIP's format."""
        moment = time.gmtime(self.seconds)
        return ZipTime.from_fields(*moment[:6])


def sdist_stem(distribution: str, version: str) -> str:
    """Return the name of an sdist's top-level folder, which consists of the normalized distribution and version."""
    return f"{normalized_file_part(distribution)}-{version}"


def sdist_name(distribution: str, version: str) -> str:
    """Return the file name of an sdist."""
    return f"{sdist_stem(distribution, version)}.tar.gz"


def write_sdist(path: Path, stem: str, members: Mapping[str, bytes], *, mtime: int) -> bytes:
    """Write ``members`` (keyed by path below ``stem/``) sorted, owned by root, and dated ``mtime`` seconds after 1970.

    Returns the content of the file. Raises `WorkError` if the file can't be written.
    """
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in sorted(members.items()):
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.size, info.mode, info.mtime = len(data), 0o644, mtime
            tar.addfile(info, io.BytesIO(data))
    packed = io.BytesIO()
    # tarfile doesn't compress this, because gzip's header contains a name and a date, which must not vary.
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(raw.getvalue())
    with atomic_file(path) as target:
        target.write(packed.getvalue())
    return packed.getvalue()


_LIMIT = 16 << 20
_MOST_TOGETHER = 64 << 20
_AGAIN = "Build or fetch it again."
_ERRORS = (*TAR_ERRORS, gzip.BadGzipFile, zlib.error)


def read_sdist_file(path: Path, name: str, *, to_end: bool = False) -> bytes | None:
    """Return the content of the first file ``TOP/name`` in an sdist, or `None` if there is no such file.

    ``TOP`` is the top-level folder.
    """
    with _opened(path) as tar:
        found: bytes | None = None
        for info, place in _placed(path, tar):
            if place.partition("/")[2] == name:
                found = _content(path, tar, info) if info.isfile() else None
                if found is not None and not to_end:
                    break
        return found


def read_sdist_names(path: Path) -> tuple[str, ...]:
    """Return the names of all files in an sdist in order, including the top-level folder. Reads the sdist to its end.

    Raises the same errors as `read_sdist_file`.
    """
    with _opened(path) as tar:
        return tuple(info.name for info, _ in _placed(path, tar) if not info.isdir())


def read_sdist(path: Path) -> dict[str, bytes]:
    """Return all files in an sdist, keyed by path below the top-level folder.

    Raises `InputError` if the sdist is damaged, contains anything but files and folders in a single top-level folder,
    or has more than 64 MiB of files. Raises `OSError` if the sdist can't be read.
    """
    files: dict[str, bytes] = {}
    size = 0
    with _opened(path) as tar:
        for info, place in _placed(path, tar):
            if info.isdir():
                continue
            size += info.size
            if not info.isfile():
                raise InputError(path, f"{info.name} isn't a file", expected="files in one top folder")
            if size > _MOST_TOGETHER:
                raise InputError(path, "its files total more than 64 MiB", expected="the rocm sdist")
            content = tar.extractfile(info)
            files[place.partition("/")[2]] = content.read() if content else b""
    return files


def read_listed_requirements(path: Path, project: str) -> str:
    """Return an sdist's ``requires.txt``, or an empty string if there is no such file.

    The file may list requirements from setuptools or the selector that aren't in the metadata.
    """
    info = f"{project.replace('-', '_')}.egg-info/requires.txt"
    found = read_sdist_file(path, f"src/{info}") or read_sdist_file(path, info) or b""
    return found.decode(errors="replace")


@contextmanager
def _opened(path: Path) -> Iterator[BoundedTar]:
    try:
        with open_regular(path) as file, open_tar_stream(_unpacked(file)) as tar:
            yield tar
    except ExpansionError as e:
        raise InputError(path, str(e), expected=BOUND, remedy=CAUTION) from e
    except _ERRORS as e:
        raise InputError(path, f"isn't a readable .tar.gz archive ({e})", remedy=_AGAIN) from e


def _placed(path: Path, tar: BoundedTar) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """Yield members with their paths. Raises `InputError` unless all programs unpack the same files from an sdist.

    All members must be files, folders, or links in one top folder. No file may occur twice, because programs choose
    different copies. No member's path may go through a link or contain ``..``: if ``a/l`` is a link, ``a/l/../b`` is
    somewhere else.
    """
    links = MemberLinks()
    files: set[str] = set()
    places: list[str] = []
    for info in tar_members(tar):
        place = posixpath.normpath(info.name)  # the path where installers unpack the member
        if problem := _name_problem(info) or _place_problem(info, place, links, files):
            raise InputError(path, problem[0], expected=problem[1], remedy=_AGAIN)
        top = (places[0] if places else place).partition("/")[0]
        if place.partition("/")[0] != top or not ("/" in place or info.isdir()):
            found = f"has {quoted(place)} outside of the top folder {quoted(top)}"
            raise InputError(path, found, expected="a single top-level folder that contains all files", remedy=_AGAIN)
        if problem := _link_problem(info, place, files):
            raise InputError(path, problem[0], expected=problem[1], remedy=_AGAIN)
        if info.issym() or info.islnk():
            links.add(place)
        elif not info.isdir():
            files.add(place)
        places.append(f"{place}/" if info.isdir() else place)
        yield info, place
    # A zero byte sorts first, so the content of a folder follows a file that has the folder's path.
    for place, below in pairwise(sorted(place.replace("/", "\0") for place in places)):
        if place[-1] != "\0" and below.startswith(f"{place}\0"):
            found = f"has {quoted(place.replace(chr(0), '/'))} as a file and as a folder"
            raise InputError(path, found, expected="either a file or a folder", remedy=_AGAIN)


def _name_problem(info: tarfile.TarInfo) -> tuple[str, str] | None:
    """Return the problem with a member's name or kind, and the expected value."""
    name = info.name
    if ".." in name.split("/"):
        return f"has {quoted(name)}, which contains '..'", "paths without '..'"
    if name in {"", "."} or name.startswith(("/", "./")) or (name.endswith("/") and not info.isdir()):
        return f"has a member with the name {quoted(name)}", "paths that begin with the top folder"
    if not (info.issym() or info.islnk() or info.isfile() or info.isdir()):
        return f"has {quoted(name)}, which isn't a file, folder, or link", "no devices or pipes"
    return None


def _place_problem(
    info: tarfile.TarInfo, place: str, links: MemberLinks, files: Container[str]
) -> tuple[str, str] | None:
    """Return the problem with a member that other members would replace or redirect, and the expected value."""
    is_link = info.issym() or info.islnk()
    link = links.above(place) or (place if not is_link and links.at(place) else None)
    if link is not None:
        return f"has {quoted(place)}, which would be written through the link {quoted(link)}", "no files behind links"
    return (f"has {place} twice", "each file only once") if place in files else None


def _link_problem(info: tarfile.TarInfo, place: str, files: Container[str]) -> tuple[str, str] | None:
    """Return the problem with the target of a link, and the expected value."""
    found = f"has the link {quoted(place)} to {quoted(info.linkname)}"
    if info.issym() and not _stays_inside(place, info.linkname):
        return found, "a symlink inside the top folder"
    return (found, "a hard link to an earlier file") if info.islnk() and info.linkname not in files else None


def _stays_inside(place: str, target: str) -> bool:
    """Return whether a symlink leads to another path inside the top folder, as installers require.

    Only the start of the target may have ``..``, because a folder in the target may be a link.
    """
    parts = target.split("/")
    climbs = next((depth for depth, part in enumerate(parts) if part != ".."), len(parts))
    is_relative = bool(target) and not target.startswith("/") and ".." not in parts[climbs:]
    return is_relative and climbs < place.count("/") and posixpath.join(posixpath.dirname(place), target) != place


def _content(path: Path, tar: BoundedTar, info: tarfile.TarInfo) -> bytes:
    if info.size > _LIMIT:
        raise InputError(path, f"{info.name} is {count(info.size, 'byte')} long", expected="at most 16 MiB")
    content = tar.extractfile(info)
    return content.read() if content else b""


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    size = os.fstat(file.fileno()).st_size
    return cast("IO[bytes]", BoundedStream(cast("IO[bytes]", gzip.open(file)), most_unpacked(size)))
