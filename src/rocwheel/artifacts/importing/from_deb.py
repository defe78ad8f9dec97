"""Importing Debian packages as artifacts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rocwheel.artifacts.deb.machines import ForeignCode
from rocwheel.artifacts.deb.package import Deb, DebControl, open_deb
from rocwheel.artifacts.importing.choose_artifact import Origin
from rocwheel.artifacts.importing.deb_packages import GivenPackage, GivenPackages
from rocwheel.artifacts.importing.importer import Importer, SourceMember, importing
from rocwheel.artifacts.model.sdk_manifest import SourcePackage
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count, first_of
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.artifacts.importing.report import ImportReport
    from rocwheel.artifacts.importing.table import ImportTable

__all__ = ["import_debs"]


def import_debs(
    paths: Sequence[Path],
    dest: Path,
    table: ImportTable,
    *,
    bundle_system: bool = False,
    progress: Progress = SILENT,
) -> ImportReport:
    """Turn packages into artifacts in the folder ``dest``, which must be new or empty.

    Packages of system libraries are taken only with ``bundle_system``: those that the table names, and of all others
    those with a library that the imported files need. Raises `InputError` for packages that can't be read,
    `ProblemsError` for packages that don't belong together, for packages whose imported files are for another machine
    than they declare, for files that the table has no place for and for conflicts between files.
    """
    given = _read_all(sorted({*paths}))
    with importing(table, dest, *paths) as importer:
        packages = GivenPackages(given, importer.rules)
        raise_all("the packages", [*packages.problems()])
        importer.sources = {one.control.package: _source(one.control) for one in given}
        importer.version = _sdk_version([one.control for one in given], table)
        importer.unknown.extend(packages.unknown)
        progress.begin(f"unpacking {count(len(packages.rocm), 'package')}", _size(packages.rocm))
        imported = [*_import(importer, packages.rocm, progress)]
        system = _System(importer, packages, bundle_system=bundle_system)
        imported += system.take(progress)
        progress.end()
        importer.packages = packages.required(imported)
        return importer.finish(first_of([str(one.path) for one in given]))


def _read_all(paths: Iterable[Path]) -> list[GivenPackage]:
    """Read the control fields of all packages first, so that mistakes are reported before the long work."""
    read: dict[str, GivenPackage] = {}
    problems: list[RocwheelError] = []
    for path in paths:
        try:
            with open_deb(path) as deb:
                given = GivenPackage(path, deb.control)
        except InputError as e:
            problems.append(e)
            continue
        if (other := read.setdefault(given.name, given)) is not given:
            this, that = _versions(given.control, other.control)
            found = f"is {this} of the package {given.name}, which was given already, in {that} as {other.path}"
            problems.append(InputError(path, found, remedy="Give one of them."))
    raise_all("the packages", problems)
    return list(read.values())


def _versions(*controls: DebControl) -> list[str]:
    """Return what tells packages of one name apart: their versions and, where these differ, their architectures."""
    machines = {one.architecture for one in controls}
    return [
        f"version {one.version}" + (f" for {one.architecture}" if machines - {one.architecture} else "")
        for one in controls
    ]


def _size(packages: Iterable[GivenPackage]) -> int:
    return sum(given.path.stat().st_size for given in packages)


def _import(importer: Importer, packages: Iterable[GivenPackage], progress: Progress) -> Iterator[GivenPackage]:
    for given in packages:
        with open_deb(given.path, progress=progress) as deb:
            _add_members(importer, deb)
        yield given


class _System:
    """The packages that are not ROCm's: which of them have libraries that it needs."""

    def __init__(self, importer: Importer, packages: GivenPackages, *, bundle_system: bool) -> None:
        self._importer = importer
        self._bundles = bundle_system
        self._named = packages.system
        self._others = {given.name: given for given in packages.others}

    def take(self, progress: Progress) -> list[GivenPackage]:
        """Import them, or list them as left out; what needs none of them is listed, too."""
        taken = self._add(self._named, progress)
        while more := self._needed():
            for given in more:
                self._importer.rules.take_for_system(self._others.pop(given.name).name)
            taken += self._add(more, progress)
        self._importer.unneeded.extend(self._others)
        return taken

    def _needed(self) -> list[GivenPackage]:
        """Return the packages with libraries that are needed and missing."""
        missing = self._importer.missing_libraries()
        return [given for given in self._others.values() if not missing.isdisjoint(given.control.sonames)]

    def _add(self, packages: list[GivenPackage], progress: Progress) -> list[GivenPackage]:
        if self._bundles:
            return list(_import(self._importer, packages, progress))
        self._importer.left_out.extend(given.name for given in packages)
        return []


def _sdk_version(controls: Iterable[DebControl], table: ImportTable) -> str:
    versions = {control.package: control.upstream_version for control in controls}
    for pattern in table.version_from:
        for package, version in sorted(versions.items()):
            if fnmatchcase(package, pattern):
                return version
    return ""


def _source(control: DebControl) -> SourcePackage:
    maintainer = control.maintainers[0] if control.maintainers else ""
    return SourcePackage(
        control.package, control.version, control.architecture, origin=control.origin, maintainer=maintainer
    )


def _add_members(importer: Importer, deb: Deb) -> None:
    foreign = ForeignCode(deb.path, deb.control.architecture)
    for member in deb.members():
        importer.add(
            SourceMember(
                origin=Origin(member.path, str(deb.path), deb.control.package),
                kind=member.kind,
                mode=member.mode,
                link=member.link or "",
                same_as=member.same_as or "",
                content=member.content,
            )
        )
        if member.content:
            foreign.note(member.path, member.content.head)
    for problem in foreign.problems("Get it again, or leave these files out by [[skip]]."):
        importer.refuse(problem)
