"""Reads release candidates in a folder, and finds the files in them that state their version.

These files are the core metadata, the SBOM, the ``_build_info.py`` and ``_dist_info.py`` of modules, the manifests of
device packages, and the SDK manifest. Other files, such as the release in ``.info/version``, describe ROCm and not the
package.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.artifacts.sdk_files import SDK_MANIFEST_PATH
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import map_in_threads, raise_all
from rocwheel.environment.package_targets import parse_literals
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES, FileName, parse_path
from rocwheel.wheels.metadata import CoreMetadataError, edit_requirements, parse_core_metadata, set_version
from rocwheel.wheels.requirements import is_refusing, readable_requirements
from rocwheel.wheels.sbom import SBOM_NAME, promoted_bill
from rocwheel.wheels.sdist import read_sdist
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import ZipMember, read_member
from rocwheel.wheels.zip_refusals import refuse_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


BUILD_INFO = "_build_info.py"
"""The name of the module of literals in packages; see ``src/rocwheel/sdk/README.md``."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel or sdist whose metadata and file name agree."""

    path: Path
    folder: str
    """The candidate's folder below the top folder; empty for the top folder itself."""
    name: str
    """The normalized name of the distribution."""
    version: str
    members: dict[str, ZipMember] = {}
    """The members of a wheel, keyed by name."""
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


def read_candidates(dist: Path) -> dict[str, list[Candidate]]:
    """Read the distributions in ``dist`` and, for per-family sets, in its subfolders. Return them, keyed by folder.

    Distributions directly in ``dist`` form a set, or several sets share them. Raises `InputError`, or `ProblemsError`
    with all errors, if there are no distributions, and for files that can't be read, contradict their names, contain
    members that installers reject, or are neither a wheel nor an sdist.
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
            found = f"is the same distribution as {first.name}, with another file name"
            yield InputError(candidate.path, found, remedy="Remove one of the two files.")


def read_candidate(path: Path, dist: Path) -> Candidate:
    """Read a distribution below the folder ``dist``.

    Raises `InputError` for other files and for wrong names, or `ProblemsError` for several problems in a wheel.
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
        raise InputError(path, "has no PKG-INFO file", expected="an sdist, which has a PKG-INFO file")
    name, version = _check_names(path, files["PKG-INFO"], stated)
    info = _selector_info(files, str(path))
    return Candidate(path=path, folder=folder, name=name, version=version, files=files, info=info)


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

    Raises `InputError` about ``source`` if the text has another format.
    """
    try:
        return parse_literals(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        found = f"can't be read ({str(e) or 'it is nested too deeply'})"
        raise InputError(source, found, expected="literals", remedy="Build the packages again.") from e


_DIST_INFO = "_dist_info.py"
"""The name of the module that the reference's packages contain instead."""
_PIN = re.compile(r"(?P<name>[^=<>!~;@]*==\s*)(?P<version>[^\s;,)=]+)")
_LISTS = ("REQUIRES", "REQUIRES_SELECTED", "EXTRAS", "SELECTED", "BY_PLATFORM")


class VersionChange(msgspec.Struct, frozen=True):
    """The normalized old and new versions of a package set."""

    old: str
    new: str

    def requirement(self, text: str) -> str:
        """Return a requirement with the new version if it requires exactly the old version; otherwise, return it as is.

        A requirement for exactly this version refers to a package of the set. The same is true for a requirement that
        refuses a GPU with an impossible local version (`refusing_requirement`).
        """
        match = _PIN.match(text)
        if match is None:
            return text
        version = match["version"]
        if _is_same(version, self.old):
            version = self.new
        elif _is_same(version.partition("+")[0], self.old.partition("+")[0]) and any(
            map(is_refusing, readable_requirements([f"x=={version}"]))
        ):
            version = f"{self.new.partition('+')[0]}+{version.partition('+')[2]}"
        return match["name"] + version + text[match.end() :]

    def metadata(self, data: bytes) -> bytes:
        """Return METADATA or PKG-INFO with the new version, also in its requirements."""
        return edit_requirements(set_version(data, self.new), self.requirement)

    def text(self, name: str, data: bytes) -> bytes:
        """Return the content of a file with the old version replaced by the new one.

        ``name`` is its path in a wheel or sdist.
        """
        place, _, base = name.rpartition("/")
        if place.endswith(".egg-info"):
            lines = data.decode("utf-8", "surrogateescape").split("\n")
            listed = "\n".join(map(self.requirement, lines)).encode("utf-8", "surrogateescape")
            return self.metadata(data) if base == "PKG-INFO" else listed
        if base == BUILD_INFO:
            values = read_build_info(data, name)
            changed = {key: _map(values[key], self.requirement) for key in _LISTS if key in values}
            changed |= {"VERSION": self.new} if values.get("VERSION") == self.old else {}
            return render_literals({**values, **changed}).encode()
        if base == _DIST_INFO:
            return self._assigned(data, rb"\b\w+[ \t]*=[ \t]*")
        if name.endswith(f".dist-info/{SBOM_NAME}"):
            return promoted_bill(data, self.old, self.new, name)
        if place.endswith(".devel_links"):
            return self._assigned(data, rb'"version":\s*')
        return self._assigned(data, rb'"rocm_package_version":\s*')

    def _assigned(self, data: bytes, before: bytes) -> bytes:
        """Replace the version where it is the complete string that follows ``before``."""
        pattern = rb"(" + before + rb")([\"'])" + re.escape(self.old.encode()) + rb"\2"
        return re.sub(pattern, lambda match: match[1] + json.dumps(self.new).encode(), data)


def says_version(name: str) -> bool:
    """Return whether a file states the version. ``name`` is its path in a wheel or sdist."""
    place, _, base = name.rpartition("/")
    return (
        (base in {BUILD_INFO, _DIST_INFO} and not place.endswith(".dist-info"))
        or (place.endswith(".egg-info") and base in {"PKG-INFO", "requires.txt"})
        or (place.endswith("/.devel_links") and base.endswith(".json"))
        or name.endswith((f".dist-info/{SBOM_NAME}", f"/{SDK_MANIFEST_PATH}"))
    )


def _map(value: Any, change: Callable[[str], str]) -> Any:
    """Apply ``change`` to every string value in nested lists and dictionaries."""
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def _is_same(text: str, version: str) -> bool:
    try:
        return Version(text) == Version(version)
    except ValueError:
        return False
