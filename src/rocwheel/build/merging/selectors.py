"""Reads the contents and platforms of selectors to merge, from sdists, plans, and build folders."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.markers import Marker
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.build.promoting.candidates import BUILD_INFO, Candidate, read_build_info, read_candidate
from rocwheel.core.decoding import convert_value, decode_json
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import shortened
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.wheels.file_names import SDIST_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


class Place(msgspec.Struct, frozen=True, order=True):
    """A combination of platform and machine that installers distinguish with markers (:pep:`508`)."""

    platform: str
    """The value of ``sys_platform``."""
    machine: str = ""
    """The value of ``platform_machine``; empty if all builds for the platform are for one machine."""

    @property
    def key(self) -> str:
        """The key of the place in ``BY_PLATFORM`` (``src/rocwheel/sdk/README.md``)."""
        return f"{self.platform} {self.machine}".strip()

    @property
    def marker(self) -> str:
        """The marker that is true only for this place."""
        machine = f" and platform_machine == '{self.machine}'" if self.machine else ""
        return f"sys_platform == '{self.platform}'{machine}"

    def meets(self, marker: str) -> bool:
        """Return whether a marker that uses only these two values is true for this place.

        An empty marker is always true.
        """
        environment = {"sys_platform": self.platform, "platform_machine": self.machine}
        return not marker or Marker(marker).evaluate(environment)


def find_places(builds: Iterable[Mapping[str, Iterable[str]]]) -> list[Place]:
    """Return all places that builds are for, sorted. Each build lists the machines of its platforms, if they are known.

    Machines are distinguished only on platforms with several machines.
    """
    machines: dict[str, set[str]] = {}
    for build in builds:
        for platform, known in build.items():
            machines.setdefault(platform, set()).update(known)
    return [
        Place(platform, machine)
        for platform, known in sorted(machines.items())
        for machine in (sorted(known) if len(known) > 1 else [""])
    ]


def marker_of(places: Collection[Place], among: Collection[Place]) -> str:
    """Return the marker that is true only for ``places`` within ``among``; empty if ``places`` is all of ``among``."""
    if set(places) == set(among):
        return ""
    parts = []
    for platform in sorted({place.platform for place in places}):
        here = {place for place in places if place.platform == platform}
        is_whole = here == {place for place in among if place.platform == platform}
        parts += [Place(platform).marker] if is_whole else [place.marker for place in sorted(here)]
    return " or ".join(parts)


class _Family(msgspec.Struct, frozen=True):
    targets: list[str]
    platforms: list[str]


_REQUIRED: dict[str, Any] = {
    "VERSION": str,
    "LAYOUT": str,
    "DEFAULT_FAMILY": str,
    "FAMILIES": dict[str, _Family],
    "PACKAGES": dict[str, dict[str, str]],
    "LIBRARIES": dict[str, dict[str, Any]],
    "UNLOADABLE": list[str],
    "REQUIRES": list[str],
    "EXTRAS": dict[str, list[tuple[str, str]]],
    "SELECTED": dict[str, str],
}
"""The required literals of every selector (``src/rocwheel/sdk/README.md``), with their types."""
_KINDS: dict[str, Any] = {
    **_REQUIRED,
    "OVERLAID": dict[str, list[str]],
    "COMMON_GPUS": list[str],
    "PLATFORMS": list[str],
    "MACHINES": dict[str, list[str]],
    "BY_PLATFORM": dict[str, dict[str, Any]],
}
_NAME = re.compile(r"\w+", re.ASCII)
_ONE_PLACE = r"sys_platform == '\w+'(?: and platform_machine == '\w+')?"
_OF_PLATFORM = re.compile(rf"{_ONE_PLACE}(?: or {_ONE_PLACE})*", re.ASCII)
"""Markers that have the same meaning everywhere."""


class Selector(msgspec.Struct, frozen=True):
    """The sdist of a selector, either written or planned."""

    path: Path
    """The path of the sdist or plan."""
    name: str
    version: str
    files: dict[str, bytes]
    """The content of each file, keyed by the file's path below the top folder."""
    place: str
    """The path of ``_build_info.py``, as in ``files``."""
    info: dict[str, Any]
    """The literals in ``_build_info.py``."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the selector's files and their paths, which doesn't depend on the archive format."""
        rows = (f"{name}\0{hashlib.sha256(data).hexdigest()}" for name, data in sorted(self.files.items()))
        return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def platforms(self) -> tuple[str, ...]:
        """The supported values of ``sys_platform``, sorted."""
        of_families = {name for row in self.info["FAMILIES"].values() for name in row["platforms"]}
        return tuple(sorted(self.info.get("PLATFORMS") or of_families))

    @property
    def machines(self) -> dict[str, tuple[str, ...]]:
        """The ``platform_machine`` values of each platform; empty if the selector doesn't list any for the platform."""
        known = self.info.get("MACHINES", {})
        return {platform: tuple(known.get(platform, ())) for platform in self.platforms}

    def serves(self, place: Place) -> bool:
        """Return whether the selector is for a place.

        A selector that lists no machine for the platform is for all machines.
        """
        machines = self.machines.get(place.platform)
        return machines is not None and (not place.machine or not machines or place.machine in machines)

    def on(self, place: Place, name: str) -> Any:
        """Return the value of a literal for one of the selector's places."""
        by_platform = self.info.get("BY_PLATFORM", {})
        for facts in (by_platform.get(place.key, {}), by_platform.get(place.platform, {})):
            if name in facts:
                return facts[name]
        return self.info.get(name)


def find_problem(selector: Selector) -> InputError | None:
    """Return an error if a literal of the selector is invalid, or `None`."""
    found = next(_faults(selector.info), "") or ("" if selector.platforms else "doesn't list any platforms")
    source, remedy = f"{selector.path}!{selector.place}", "Build the packages again."
    return InputError(source, shortened(found), remedy=remedy) if found else None


def _faults(info: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each invalid literal. Each check relies on the previous ones."""
    yield from _faults_of_kind({**dict.fromkeys(_REQUIRED), **info})
    for facts in info.get("BY_PLATFORM", {}).values():
        yield from _faults_of_kind(facts)
    markers = (marker for rows in info["EXTRAS"].values() for _, marker in rows if marker)
    yield from (
        f"has the unsupported marker {marker!r} in EXTRAS" for marker in markers if not _OF_PLATFORM.fullmatch(marker)
    )
    families = (name for row in info["FAMILIES"].values() for name in row["platforms"])
    platforms = {*families, *info.get("PLATFORMS", ()), *info.get("MACHINES", ())}
    machines = {machine for known in info.get("MACHINES", {}).values() for machine in known}
    names = sorted({*platforms, *machines})
    yield from (f"lists the invalid platform or machine {name!r}" for name in names if not _NAME.fullmatch(name))


def _faults_of_kind(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in _KINDS.items():
        try:
            if name in facts:
                convert_value(facts[name], kind)
        except msgspec.ValidationError as e:  # noqa: PERF203 (all of them are reported)
            yield f"has an invalid {name} ({e})"


_SCHEMA = "rocwheel.plan/1"
_EXPECTED = "the output of 'rocwheel build --dry-run --json'"


class _Sdist(msgspec.Struct, frozen=True):
    distribution: str
    version: str
    files: dict[str, str]


class _Document(msgspec.Struct, frozen=True):
    """The fields of a plan that the merge needs."""

    schema: str
    sdists: tuple[_Sdist, ...]


def read_plan(path: Path) -> list[Selector]:
    """Return the selectors of a plan: a single selector, or one for each family.

    Raises `InputError` if the file can't be read, isn't a plan, or contains no selector sdist.
    """
    try:
        document = decode_json(read_regular(path), _Document)
    except OSError as e:
        raise read_error(path, e) from e
    except msgspec.DecodeError as e:
        raise InputError(path, shortened(f"is not a plan ({e})"), expected=_EXPECTED) from e
    if document.schema != _SCHEMA:
        raise InputError(path, shortened(f"has the schema {document.schema!r}"), expected=_SCHEMA)
    found = [_planned_selector(path, sdist) for sdist in document.sdists]
    if not found:
        remedy = "Plan with --selector sdist: a wheel can't choose packages for a machine."
        raise InputError(path, "contains no selector sdist", remedy=remedy)
    return found


def _planned_selector(path: Path, sdist: _Sdist) -> Selector:
    try:
        name, version = canonicalize_name(sdist.distribution, validate=True), str(Version(sdist.version))
    except ValueError as e:
        raise InputError(
            path, shortened(f"contains an sdist without a valid name or version ({e})"), expected=_EXPECTED
        ) from e
    strange = [file for file in sdist.files if not _is_below(file)]
    if strange:
        raise InputError(
            path, shortened(f"lists the file {strange[0]!r}, which is not allowed in an sdist"), expected=_EXPECTED
        )
    files = {name: text.encode("utf-8", "surrogatepass") for name, text in sdist.files.items()}
    places = [name for name in files if name.rpartition("/")[2] == BUILD_INFO]
    info = read_build_info(files[places[0]], f"{path}!{places[0]}") if len(places) == 1 else {}
    if "FAMILIES" not in info:
        raise InputError(
            path, f"contains the sdist {name}, which is not a selector", expected="the plan of a ROCm build"
        )
    return Selector(path, name, version, files, places[0], info)


def _is_below(name: str) -> bool:
    """Return whether a relative path points to a file below its folder."""
    return name.isprintable() and "\\" not in name and not {"", ".", ".."} & {*name.split("/")}


_AS_SDIST = "Build it with --selector sdist: a wheel can't choose packages for a machine."


def read_selectors(paths: Sequence[Path]) -> tuple[Selector, ...]:
    """Read the selectors in sdists, plans, and folders, without duplicates. Their order depends only on their contents.

    A folder is a build folder or its ``dist`` folder. Selectors are read from it and, for families, from its
    subfolders. Raises `InputError`, or `ProblemsError` with all errors, for unreadable files and for other kinds of
    files.
    """
    found = {one.digest: one for part in map_collecting("selectors", _read_any, paths) for one in part}
    raise_all("selectors", [problem for one in found.values() if (problem := find_problem(one))])
    return tuple(sorted(found.values(), key=lambda one: (one.platforms, sorted(one.info["FAMILIES"]), one.digest)))


def _read_any(path: Path) -> list[Selector]:
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".json":
        return read_plan(path)
    if not path.name.endswith(SDIST_SUFFIX):
        remedy = _AS_SDIST if path.suffix == ".whl" else ""
        expected = "the rocm-VERSION.tar.gz from a build, a build folder, or a plan (.json)"
        raise InputError(path, "is not an sdist", expected=expected, remedy=remedy)
    selector = _selector(read_candidate(path, path.parent))
    if selector is None:
        raise InputError(path, "is not a selector", expected="the rocm sdist, which maps GPUs to packages")
    return [selector]


def _selector(candidate: Candidate) -> Selector | None:
    places = [name for name in candidate.files if name.rpartition("/")[2] == BUILD_INFO]
    if not candidate.info or len(places) != 1:
        return None
    return Selector(candidate.path, candidate.name, candidate.version, candidate.files, places[0], candidate.info)


def _read_folder(folder: Path) -> list[Selector]:
    """Return the selectors of a build. Other sdists in the folder are skipped."""
    dist = folder / "dist" if (folder / "dist").is_dir() else folder
    try:
        inner = [path for path in sorted(dist.iterdir()) if path.is_dir() and not path.name.startswith(".")]
        sdists = [
            path for part in (dist, *inner) for path in sorted(part.iterdir()) if path.name.endswith(SDIST_SUFFIX)
        ]
    except OSError as e:
        raise read_error(dist, e, expected="a build folder") from e
    candidates = [read_candidate(path, path.parent) for path in sdists if not path.name.startswith(".")]
    found = [selector for candidate in candidates if (selector := _selector(candidate))]
    if not found:
        remedy = f"Specify the dist folder of a build. {_AS_SDIST}" if any(dist.glob("*.whl")) else ""
        raise InputError(dist, "contains no selector sdist", expected="rocm-VERSION.tar.gz", remedy=remedy)
    return found
