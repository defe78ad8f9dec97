"""Imports Debian packages as artifacts."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.artifacts.deb import Deb, DebControl, ForeignCode, open_deb
from rocwheel.artifacts.import_table import ImportRules, Origin, is_rocm_package
from rocwheel.artifacts.importer import Importer, MachineNeed, SourceMember, importing
from rocwheel.artifacts.sdk_files import SourcePackage
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count, first_of
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.artifacts.deb import Alternatives
    from rocwheel.artifacts.import_table import ImportTable
    from rocwheel.artifacts.importer import ImportReport


_ALL = "all"
"""The architecture of packages for all machines."""


def architecture_problems(packages: Iterable[tuple[Path | str, str]]) -> Iterator[InputError]:
    """Yield an error for each package whose architecture differs from the architecture of most packages.

    ``packages`` contains the file and the architecture of each package, with the values from deb-control(5).
    """
    given = list(packages)
    named = [architecture for _, architecture in given if architecture != _ALL]
    usual = max(sorted({*named}), key=named.count, default=_ALL)
    for path, architecture in given:
        if architecture not in (usual, _ALL):
            expected = f"{usual}, like most of the packages"
            yield InputError(path, f"is a package for {architecture}", expected=expected)


class _Related(Protocol):
    """A package with its relations to other packages."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def depends(self) -> tuple[Alternatives, ...]: ...
    @property
    def recommends(self) -> tuple[Alternatives, ...]: ...
    @property
    def provides(self) -> tuple[Alternatives, ...]: ...


def unfinished_packages(packages: Sequence[_Related]) -> frozenset[str]:
    """Return the names of packages that need a missing ROCm package. Other packages might supply it.

    Required and recommended packages are considered. If only one package is given, it is always returned.
    """
    if len({package.name for package in packages}) == 1:
        return frozenset(package.name for package in packages)

    def is_lacking(choice: Alternatives) -> bool:
        is_met = any(choice.is_met_by(one.name, one.version, one.provides) for one in packages)
        return not is_met and any(is_rocm_package(relation.package) for relation in choice.relations)

    return frozenset(one.name for one in packages if any(map(is_lacking, (*one.depends, *one.recommends))))


def _stem(package: str) -> str:
    """Return a package name without the version at its end."""
    return package.removesuffix("t64").rstrip("0123456789.")


class GivenPackage(msgspec.Struct, frozen=True):
    """A package file and its control fields."""

    path: Path
    control: DebControl

    @property
    def name(self) -> str:
        """The package name."""
        return self.control.package


class GivenPackages:
    """The packages of one import, grouped by a table."""

    def __init__(self, packages: Iterable[GivenPackage], rules: ImportRules) -> None:
        self._rules = rules
        self._by_name = {given.name: given for given in packages}
        self._known = {name for name in self._by_name if rules.rule_of_package(name)}
        sources = {self._by_name[name].control.source for name in self._known if not self._is_system(name)}
        self.rocm: list[GivenPackage] = []
        """The packages of ROCm and its compiler, including packages that are not in the table."""
        self.system: list[GivenPackage] = []
        """The operating system packages that the table lists."""
        self.others: list[GivenPackage] = []
        """All other packages. They are imported only if ROCm needs their libraries."""
        for name, given in sorted(self._by_name.items()):
            if name in self._known:
                (self.system if self._is_system(name) else self.rocm).append(given)
            else:
                (self.rocm if self._is_rocm(given, sources) else self.others).append(given)

    @property
    def unknown(self) -> list[str]:
        """The names of ROCm packages that are not in the table."""
        return [given.name for given in self.rocm if given.name not in self._known]

    def problems(self) -> Iterator[InputError]:
        """Yield errors for packages that are for a different machine, or that belong to or need a different release."""
        yield from architecture_problems((given.path, given.control.architecture) for given in self._by_name.values())
        yield from self._mixed()
        for given in self.rocm:
            for choice in given.control.depends:
                if problem := self._conflict(given, choice):
                    yield problem

    def required(self, imported: Iterable[GivenPackage]) -> tuple[MachineNeed, ...]:
        """Return the dependencies of the imported packages that are not imported themselves."""
        taken = {given.name: given for given in imported}
        needed: defaultdict[str, list[str]] = defaultdict(list)
        for name, given in sorted(taken.items()):
            for choice in given.control.depends:
                if not self._is_base(choice) and not any(self._satisfying(choice, taken.values())):
                    needed[choice.names].append(name)
        return tuple(MachineNeed(names, tuple(users)) for names, users in sorted(needed.items()))

    def _is_base(self, choice: Alternatives) -> bool:
        """Return whether at least one of the alternative packages is on every machine."""
        base = self._rules.table.base_packages
        return any(fnmatchcase(relation.package, like) for relation in choice.relations for like in base)

    def _is_system(self, name: str) -> bool:
        rule = self._rules.rule_of_package(name)
        return rule is not None and rule.system

    def _is_rocm(self, given: GivenPackage, sources: set[str]) -> bool:
        """Return whether a package that no rule lists is part of ROCm, based on maintainer, source, or dependencies."""
        if any(fnmatchcase(one, like) for one in given.control.maintainers for like in self._rules.table.maintainers):
            return True
        needs = {relation.package for choice in given.control.depends for relation in choice.relations}
        return given.control.source in sources or any(not self._is_system(name) for name in needs & self._known)

    def _mixed(self) -> Iterator[InputError]:
        """Check that the ROCm packages from one source come from the same build."""
        first: dict[str, GivenPackage] = {}
        for given in self.rocm:
            control = given.control
            other = first.setdefault(control.source, given)
            if other.control.source_version != control.source_version:
                yield InputError(
                    given.path,
                    f"was built from {control.source} {control.source_version}",
                    expected=f"{other.control.source_version}, the version of {other.path}",
                    remedy="Use packages from one release.",
                )

    def _conflict(self, given: GivenPackage, choice: Alternatives) -> InputError | None:
        """Return an error if a package that this package needs has only a different version, or `None` otherwise.

        The library's ABI version can be part of the package name, as in ``libamdhip64-5`` and ``libamdhip64-6``.
        """
        if any(self._satisfying(choice, self._by_name.values())):
            return None
        present = [self._by_name[one.package] for one in choice.relations if one.package in self._by_name]
        stems = {_stem(one.package) for one in choice.relations}
        others = present or [one for one in self.rocm if _stem(one.name) in stems]
        if not others:
            return None
        its = others[0].control
        found = f"needs {choice}, but {others[0].path} is {its.version if present else its.package}"
        return InputError(given.path, found, remedy="Use packages from one release.")

    @staticmethod
    def _satisfying(choice: Alternatives, packages: Iterable[GivenPackage]) -> Iterator[GivenPackage]:
        for given in packages:
            control = given.control
            if any(one.is_met_by(control.package, control.version, control.provides) for one in choice.relations):
                yield given


def import_debs(
    paths: Sequence[Path],
    dest: Path,
    table: ImportTable,
    *,
    bundle_system: bool = False,
    progress: Progress = SILENT,
) -> ImportReport:
    """Convert packages to artifacts in the folder ``dest``, which must be new or empty.

    Packages of system libraries are imported only with ``bundle_system``. In that case, the packages that the table
    lists are imported, and also any other package with a library that the imported files need. Raises `InputError` for
    unreadable packages. Raises `ProblemsError` for inconsistent packages, for files whose machine differs from the one
    that their package declares, for files that match no rule of the table, and for conflicts between files.
    """
    given = _read_all(sorted({*paths}))
    with importing(table, dest, *paths) as importer:
        packages = GivenPackages(given, importer.rules)
        raise_all("the packages", [*packages.problems()])
        importer.sources = {one.control.package: _source(one.control) for one in given}
        importer.version = _sdk_version([one.control for one in given], table)
        importer.unknown.extend(packages.unknown)
        size = sum(given.path.stat().st_size for given in packages.rocm)
        progress.begin(f"unpacking {count(len(packages.rocm), 'package')}", size)
        imported = [*_import(importer, packages.rocm, progress)]
        system = _System(importer, packages, bundle_system=bundle_system)
        imported += system.take(progress)
        progress.end()
        importer.packages = packages.required(imported)
        return importer.finish(first_of([str(one.path) for one in given]))


def _remedy_for(folder: Path) -> str:
    if any(folder.glob("*.deb")):
        return f"Specify the packages in the folder: {folder}/*.deb."
    return "Specify .deb files. For an install prefix, use 'rocwheel artifacts import'."


def _read_all(paths: Iterable[Path]) -> list[GivenPackage]:
    """Read the control fields of all packages first, so that errors are reported before the slow part."""
    read: dict[str, GivenPackage] = {}
    problems: list[RocwheelError] = []
    for path in paths:
        if path.is_dir():
            problems.append(InputError(path, "is a folder", expected="a Debian package", remedy=_remedy_for(path)))
            continue
        try:
            with open_deb(path) as deb:
                given = GivenPackage(path, deb.control)
        except InputError as e:
            problems.append(e)
            continue
        if (other := read.setdefault(given.name, given)) is not given:
            this, that = _versions(given.control, other.control)
            found = f"is {given.name} in {this}, but {other.path} is {given.name} in {that}"
            problems.append(InputError(path, found, remedy="Specify only one of them."))
    raise_all("the packages", problems)
    return list(read.values())


def _versions(*controls: DebControl) -> list[str]:
    """Return strings that distinguish packages with the same name: their versions, and different architectures."""
    machines = {one.architecture for one in controls}
    return [
        f"version {one.version}" + (f" for {one.architecture}" if machines - {one.architecture} else "")
        for one in controls
    ]


def _import(importer: Importer, packages: Iterable[GivenPackage], progress: Progress) -> Iterator[GivenPackage]:
    for given in packages:
        with open_deb(given.path, progress=progress) as deb:
            _add_members(importer, deb)
        yield given


class _System:
    """Chooses packages that are not part of ROCm but have libraries that ROCm needs."""

    def __init__(self, importer: Importer, packages: GivenPackages, *, bundle_system: bool) -> None:
        self._importer = importer
        self._bundles = bundle_system
        self._named = packages.system
        self._others = {given.name: given for given in packages.others}

    def take(self, progress: Progress) -> list[GivenPackage]:
        """Import the packages or list them as not imported. Also list packages that are not needed."""
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
    for problem in foreign.problems("Download the package again, or exclude these files with [[skip]]."):
        importer.refuse(problem)
