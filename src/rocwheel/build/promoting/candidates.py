"""Reads the wheels and sdists of a release candidate in a folder."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import map_in_threads, raise_all
from rocwheel.environment.package_targets import parse_literals
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES, FileName, parse_path
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.sdist import read_sdist
from rocwheel.wheels.zip_directory import find_metadata, read_archive
from rocwheel.wheels.zip_reader import ZipMember, read_member
from rocwheel.wheels.zip_refusals import refuse_outside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


BUILD_INFO = "_build_info.py"
"""The name of the module with literals in packages; see ``src/rocwheel/sdk/README.md``."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel or sdist whose metadata and file name agree."""

    path: Path
    folder: str
    """The candidate's folder below the top folder; empty for the top folder itself."""
    name: str
    """The normalized name of the distribution."""
    version: str
    metadata: bytes
    """The content of METADATA or PKG-INFO."""
    members: dict[str, ZipMember] = {}
    """The members of a wheel, keyed by name."""
    refused: tuple[InputError, ...] = ()
    """The problems in a wheel's headers that installers reject."""
    dist_info: str = ""
    """The name of a wheel's ``.dist-info`` folder."""
    files: dict[str, bytes] = {}
    """The files of an sdist, keyed by their path below its top folder."""
    info: dict[str, Any] = {}
    """The literals of a selector; empty for other distributions. Each package set has one selector."""

    @property
    def is_wheel(self) -> bool:
        """Whether the candidate is a wheel and not an sdist."""
        return bool(self.members)

    @property
    def metadata_name(self) -> str:
        """The path of METADATA or PKG-INFO in the distribution."""
        return f"{self.dist_info}/METADATA" if self.is_wheel else "PKG-INFO"


def read_candidates(dist: Path) -> dict[str, list[Candidate]]:
    """Read the distributions in ``dist`` and, for per-family sets, in its subfolders. Return them, keyed by folder.

    Distributions directly in ``dist`` form a set or are shared by several sets. Raises `InputError`, or `ProblemsError`
    with all errors, if there are no distributions or if a file is invalid. A file is invalid if it can't be read,
    doesn't match its file name, contains members that installers reject, or is neither a wheel nor an sdist.
    """
    try:
        folders = [dist, *(path for path in sorted(dist.iterdir()) if path.is_dir() and not path.name.startswith("."))]
        found = [path for folder in folders for path in sorted(folder.iterdir())]
    except OSError as e:
        raise read_error(dist, e, expected="a folder of wheels and sdists") from e
    paths = [path for path in found if path.name.endswith(DISTRIBUTION_SUFFIXES) and not path.name.startswith(".")]
    if not paths:
        raise InputError(dist, "has no wheels or sdists", expected="the packages of a release candidate")
    candidates = map_in_threads(lambda path: read_candidate(path, dist), paths, str(dist))
    raise_all(str(dist), list(_find_doubles(candidates)))
    by_folder: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_folder[candidate.folder].append(candidate)
    return dict(sorted(by_folder.items()))


def _find_doubles(candidates: Iterable[Candidate]) -> Iterator[InputError]:
    """Yield an error if two files in a folder are the same distribution, because an index accepts only one."""
    seen: dict[tuple[str, str, str], Path] = {}
    for candidate in candidates:
        name = parse_path(candidate.path)
        first = seen.setdefault((candidate.folder, name.project, name.identity), candidate.path)
        if first != candidate.path:
            found = f"is the same distribution as {first.name}, under a different file name"
            yield InputError(candidate.path, found, remedy="Remove one of the two files.")


def read_candidate(path: Path, dist: Path) -> Candidate:
    """Read a distribution below the folder ``dist``.

    Raises `InputError` for other files and for incorrect names, or `ProblemsError` for several problems in a wheel.
    """
    folder = path.parent.relative_to(dist).as_posix().removeprefix(".")
    return _read_wheel(path, folder) if path.suffix == ".whl" else _read_sdist(path, folder)


def _read_wheel(path: Path, folder: str) -> Candidate:
    stated = parse_path(path)
    archive = read_archive(path)
    members = {member.name: member for member in archive.members}
    refuse_outside(str(path), members.values())
    place = find_metadata(path, members)
    metadata = read_member(members[place])
    name, version = _check_names(path, metadata, stated)
    info = next((name for name in members if name.endswith(f"/{BUILD_INFO}")), "")
    return Candidate(
        path=path,
        folder=folder,
        name=name,
        version=version,
        metadata=metadata,
        members=members,
        refused=archive.refused,
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
        raise InputError(path, "has no PKG-INFO file", expected="an sdist, which has a PKG-INFO file")
    metadata = files["PKG-INFO"]
    name, version = _check_names(path, metadata, stated)
    info = _selector_info(files, str(path))
    return Candidate(path=path, folder=folder, name=name, version=version, metadata=metadata, files=files, info=info)


def _check_names(path: Path, metadata: bytes, stated: FileName) -> tuple[str, str]:
    """Return the name and the version. Raises `InputError` if the metadata and the file name disagree."""
    try:
        fields = parse_core_metadata(metadata)[0]
        found = canonicalize_name(fields.get("name", "")), Version(fields.get("version", ""))
    except (CoreMetadataError, ValueError) as e:
        raise InputError(
            path, f"has metadata that can't be read ({e})", remedy="Build or download the file again."
        ) from e
    if found != (stated.project, stated.version):
        problem = f"is {found[0]} {found[1]} according to its metadata"
        raise InputError(path, problem, expected=f"{stated.project} {stated.version}, as in the file name")
    return str(found[0]), str(found[1])


def _selector_info(files: Mapping[str, bytes], source: str) -> dict[str, Any]:
    """Return the literals in a selector's ``_build_info.py``, which lists families; empty for other packages."""
    for name, data in files.items():
        if name.rpartition("/")[2] == BUILD_INFO:
            info = read_build_info(data, f"{source}!{name}")
            if "FAMILIES" in info:
                return info
    return {}


def read_build_info(data: bytes, source: str) -> dict[str, Any]:
    """Parse the literals of a ``_build_info.py``.

    Raises `InputError` about ``source`` if the text has a different format.
    """
    try:
        return parse_literals(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        found = f"can't be read ({str(e) or 'it is nested too deeply'})"
        raise InputError(source, found, expected="Python literals", remedy="Build the packages again.") from e
