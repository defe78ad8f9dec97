"""Reading an artifact archive: a tar (pax, GNU or ustar) whose first member is the manifest."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from rocwheel.artifacts.model.artifact import PERMISSIONS, Artifact, FileKind, Member, checked, place
from rocwheel.artifacts.model.manifest import MANIFEST_NAME, MAX_MANIFEST_SIZE, parse_manifest
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.reading import FileRange
from rocwheel.core.scratch import path_of, unreadable
from rocwheel.distributions.tar.header import BoundedTar, SparseMemberError
from rocwheel.distributions.tar.stream import TAR_ERRORS

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.artifacts.model.names import ArtifactName

__all__ = ["read_archive"]

_CHUNK = 1 << 20


class _Unfit(NamedTuple):
    """Why a member can't be used."""

    found: str
    expected: str


def read_archive(archive: Path, name: ArtifactName, tar: IO[bytes]) -> Artifact:
    """List the members of ``archive``, whose decompressed form is the open file ``tar``, in path order.

    Their file ranges are valid while ``tar`` is open. Raises `InputError` or `ProblemsError` when the tar is malformed
    or ends early, when the manifest is not its first member, and for every member that is sparse, a device or fifo, a
    hardlink to what has not come before, or unsafe (see `checked`); `WorkError` when ``tar`` can't be read.
    """
    # Which reads on where the file system gives less than it is asked for.
    buffered = io.BufferedReader(cast("io.RawIOBase", tar))
    try:
        infos = _read_headers(archive, buffered)
        stages = _read_stages(archive, buffered, infos)
    except OSError as e:
        what = f"the decompressed content of {archive}"
        raise unreadable(what, e) from e
    finally:
        buffered.detach()
    problems: list[RocwheelError] = []
    members = sorted(_members(archive, infos, path_of(tar), problems), key=lambda member: member.path)
    return checked(Artifact(name, str(archive), stages, tuple(members)), problems)


def _members(
    archive: Path, infos: list[tarfile.TarInfo], tar_path: str, problems: list[RocwheelError]
) -> Iterator[Member]:
    found: dict[str, Member] = {}
    for info in infos:
        member = _member(info, tar_path, found)
        if isinstance(member, _Unfit):
            problems.append(InputError(place(archive, info.name), member.found, expected=member.expected))
        else:
            found[member.path] = member
            yield member


def _read_headers(archive: Path, tar: IO[bytes]) -> list[tarfile.TarInfo]:
    tar.seek(0)
    try:
        with BoundedTar.open(fileobj=tar, mode="r:") as reader:
            infos = [info for info in reader.forward() if _normalised(info.name) != "."]
            _check_end(archive, tar, reader.offset)
    except SparseMemberError as e:
        expected = "files stored in full (tar without --sparse)"
        raise InputError(place(archive, e.name), "is a sparse member", expected=expected) from e
    except TAR_ERRORS as e:
        raise _malformed(archive, str(e)) from e
    return infos


def _check_end(archive: Path, tar: IO[bytes], end: int) -> None:
    tar.seek(end)
    while data := tar.read(_CHUNK):
        if data.count(0) != len(data):
            raise _malformed(archive, f"no header or end at byte {end}")


def _read_stages(archive: Path, tar: IO[bytes], infos: list[tarfile.TarInfo]) -> tuple[str, ...]:
    if not infos or _normalised(infos[0].name) != MANIFEST_NAME or not infos[0].isreg():
        kind = "" if not infos or infos[0].isreg() else ", which is no regular file"
        first = f"begins with {infos[0].name!r}{kind}" if infos else "has no members"
        remedy = "Make it with 'rocwheel artifacts archive'."
        raise InputError(archive, first, expected=f"{MANIFEST_NAME} as the first member", remedy=remedy)
    source = place(archive, MANIFEST_NAME)
    if infos[0].size > MAX_MANIFEST_SIZE:
        raise InputError(source, f"is larger than {MAX_MANIFEST_SIZE} bytes", expected="a few lines")
    tar.seek(infos[0].offset_data)
    return parse_manifest(tar.read(infos[0].size), source)


def _member(info: tarfile.TarInfo, tar_path: str, found: dict[str, Member]) -> Member | _Unfit:
    path = _normalised(info.name)
    mode = info.mode & PERMISSIONS
    if info.isdir():
        return Member(path, FileKind.DIRECTORY, mode)
    if info.issym():
        return Member(path, FileKind.SYMLINK, PERMISSIONS, link=info.linkname)
    if info.islnk():
        return _hardlink(path, mode, _normalised(info.linkname), found)
    if not info.isreg():
        return _Unfit("is a device, fifo or unknown kind", "files, links and folders only")
    return Member(path, FileKind.FILE, mode, source=FileRange(tar_path, info.offset_data, info.size))


def _hardlink(path: str, mode: int, named: str, found: dict[str, Member]) -> Member | _Unfit:
    target = found.get(named)
    if target is None or target.kind is not FileKind.FILE:
        return _Unfit(f"is a hardlink to {named!r}", "the name of a file that comes before it")
    return Member(path, FileKind.FILE, mode, source=target.source)


def _normalised(name: str) -> str:
    return name.removeprefix("./").rstrip("/") or name[:1]


def _malformed(archive: Path, why: str) -> InputError:
    return InputError(archive, f"holds no well-formed tar ({why})", remedy="Fetch it or make it again.")
