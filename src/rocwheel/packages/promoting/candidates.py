"""The release candidates in a folder: their names and versions, and what says more about them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.index.entries.file_name import FileName, parse_path
from rocwheel.distributions.tar.sdist_file import read_sdist
from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.dist_info import find_metadata
from rocwheel.distributions.zip.member_names import refuse_outside
from rocwheel.distributions.zip.reader import ZipMember, read_member
from rocwheel.packages.promoting.version_change import BUILD_INFO, read_build_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Candidate", "SetInFolder", "read_candidate", "read_candidates"]

_SUFFIXES = (".whl", ".tar.gz")


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel or sdist, which says in its metadata what its file name says."""

    path: Path
    folder: str
    """Where it is below the folder of all; empty for that folder itself."""
    name: str
    """The distribution's name, normalised."""
    version: str
    members: dict[str, ZipMember] = {}
    """The members of a wheel by name."""
    dist_info: str = ""
    """The metadata folder of a wheel."""
    files: dict[str, bytes] = {}
    """The files of an sdist by their paths below its top folder."""
    info: dict[str, Any] = {}
    """The literals of a selector, of which each set of packages has one; empty for other distributions."""

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel, else an sdist."""
        return bool(self.members)


class SetInFolder(msgspec.Struct, frozen=True):
    """The candidates in one folder: a set, or what several sets share, which have folders of their own below it."""

    folder: str
    candidates: tuple[Candidate, ...]

    @property
    def selector(self) -> Candidate | None:
        """The distribution that chooses among the others, if the folder has one."""
        return next((candidate for candidate in self.candidates if candidate.info), None)


def read_candidates(dist: Path) -> tuple[SetInFolder, ...]:
    """Read the distributions in ``dist`` and, for sets of one family each, in the folders there.

    Raises `InputError`, or `ProblemsError` with all, for files that can't be read, are not what their names say, hold
    members that installers refuse, or are neither a wheel nor an sdist; and when there are none.
    """
    paths = _list(dist)
    candidates = map_collecting(lambda path: read_candidate(path, dist), paths, str(dist))
    raise_all(str(dist), list(_find_doubles(candidates)))
    by_folder: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_folder[candidate.folder].append(candidate)
    return tuple(SetInFolder(folder, tuple(group)) for folder, group in sorted(by_folder.items()))


def _find_doubles(candidates: Iterable[Candidate]) -> Iterator[InputError]:
    """Yield what is wrong where two files of a folder are one distribution: an index takes one of them."""
    seen: dict[tuple[str, str, str], Path] = {}
    for candidate in candidates:
        name = parse_path(candidate.path)
        first = seen.setdefault((candidate.folder, name.project, name.identity), candidate.path)
        if first != candidate.path:
            found = f"is the same distribution as {first.name} under another name"
            yield InputError(candidate.path, found, remedy="Remove one of the two.")


def _list(dist: Path) -> list[Path]:
    try:
        folders = [dist, *(path for path in sorted(dist.iterdir()) if path.is_dir() and not path.name.startswith("."))]
        found = [path for folder in folders for path in sorted(folder.iterdir())]
    except OSError as e:
        raise read_error(dist, e, expected="a folder of wheels and sdists") from e
    paths = [path for path in found if path.name.endswith(_SUFFIXES) and not path.name.startswith(".")]
    if not paths:
        raise InputError(dist, "has no wheels or sdists", expected="the packages of a release candidate")
    return paths


def read_candidate(path: Path, dist: Path) -> Candidate:
    """Read a distribution below the folder ``dist``.

    Raises `InputError` for other files and for names that are wrong, or `ProblemsError` for several in a wheel.
    """
    folder = path.parent.relative_to(dist).as_posix().removeprefix(".")
    return _read_wheel(path, folder) if path.suffix == ".whl" else _read_sdist(path, folder)


def _read_wheel(path: Path, folder: str) -> Candidate:
    stated = parse_path(path)
    members = {member.name: member for member in read_directory(path)}
    refuse_outside(str(path), members.values())
    place = find_metadata(path, members)
    name, version = _check_names(path, read_member(members[place]), stated)
    info = next((name for name in members if name.endswith(f"/{BUILD_INFO}")), "")
    return Candidate(
        path=path,
        folder=folder,
        name=name,
        version=version,
        members=members,
        dist_info=place.partition("/")[0],
        info=_selector_info({info: read_member(members[info])} if info else {}, str(path)),
    )


def _read_sdist(path: Path, folder: str) -> Candidate:
    stated = parse_path(path)
    try:
        files = read_sdist(path)
    except OSError as e:
        raise read_error(path, e) from e
    if "PKG-INFO" not in files:
        raise InputError(path, "has no PKG-INFO", expected="an sdist, which has one")
    name, version = _check_names(path, files["PKG-INFO"], stated)
    return Candidate(
        path=path, folder=folder, name=name, version=version, files=files, info=_selector_info(files, str(path))
    )


def _check_names(path: Path, metadata: bytes, stated: FileName) -> tuple[str, str]:
    """Return name and version; raise `InputError` when metadata and file name say different ones."""
    try:
        fields = parse_core_metadata(metadata)[0]
        found = canonicalize_name(fields.get("name", "")), Version(fields.get("version", ""))
    except (CoreMetadataError, ValueError) as e:
        raise InputError(path, f"its metadata can't be read ({e})", remedy="Build or download it again.") from e
    if found != (stated.project, stated.version):
        problem = f"is {found[0]} {found[1]} by its metadata"
        raise InputError(path, problem, expected=f"{stated.project} {stated.version}, as its name says")
    return str(found[0]), str(found[1])


def _selector_info(files: Mapping[str, bytes], source: str) -> dict[str, Any]:
    """Return the literals of a selector's ``_build_info.py``, which alone lists families; empty for another one's."""
    for name, data in files.items():
        if name.rpartition("/")[2] == BUILD_INFO:
            info = read_build_info(data, f"{source}!{name}")
            if "FAMILIES" in info:
                return info
    return {}
