"""The packages in a plan: their files, the paths of these files, and how packages find each other."""

from __future__ import annotations

import posixpath
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import PrefixIndex
from rocwheel.artifacts.sdk_files import SdkManifest
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.platform import Platform
from rocwheel.build.file_facts import Facts
from rocwheel.build.placement import Placement, place_runtime, take_entries
from rocwheel.build.plan import FileMember, StubMember
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.recipe import Layout, PackageNames, Recipe, is_per_family, name_package
from rocwheel.core.writing import plain_mode
from rocwheel.environment.run_path_choice import LibraryPlaces, library_places, run_path_edit
from rocwheel.targets.serving import split_overlay_path
from rocwheel.wheels.platform_floor import oldest_tag
from rocwheel.wheels.tags import WINDOWS_TAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.build.placement import Prefixes
    from rocwheel.build.recipe import Package


class Release(msgspec.Struct, frozen=True):
    """The packages and GPUs of a multi-platform release. The build for each platform has complete lists of both."""

    recipes: dict[Platform, Recipe]
    targets: dict[Platform, tuple[str, ...]]


class PlanBasis(msgspec.Struct, frozen=True):
    """The values that all distributions of a plan share."""

    recipe: Recipe
    facts: Facts
    options: PlanOptions
    version: str
    """The normalized version of every distribution."""
    layout: Layout
    compress_for: str | None = None
    """The oldest ROCm release that must be able to read compressed device code; `None` leaves device code unchanged."""
    manifest: SdkManifest | None = None
    """The manifest that describes the sources of the SDK."""
    release: Release | None = None
    """The packages of the release for Linux and Windows, or `None` if the GPUs of a system aren't listed."""

    @property
    def any_tag(self) -> str:
        """The platform tag of wheels without machine code.

        This tag is accepted on every system that the packages might be for.
        """
        return WINDOWS_TAG if self.facts.platform is Platform.WINDOWS else oldest_tag(self.facts.machine)

    def names(self, key: str, variant: str) -> PackageNames:
        """Return the names of the package ``key`` for a GPU target or family. Module names include the suffix."""
        names = name_package(self.recipe, key, self.layout, variant)
        return msgspec.structs.replace(names, platform_module=names.platform_module + self.options.module_suffix)


class PlacedPackage(msgspec.Struct, frozen=True):
    """A distribution whose files have their final paths, before its members are created."""

    key: str
    """The package's name in the recipe."""
    variant: str
    """The target or family that the package is for; empty if a single package is for all GPUs."""
    distribution: str
    module: str
    platform_module: str
    placement: Placement


def place_packages(basis: PlanBasis, prefixes: Prefixes) -> list[PlacedPackage]:
    """Place the files of every package, and omit packages without files.

    Raises `ProblemsError` with every pair of different files that have the same path.
    """
    placed: list[PlacedPackage] = []
    for key, package in basis.recipe.packages.items():
        if package.distribution_in(prefixes.layout) is not None:
            for variant in _variants(package, prefixes):
                found = _place(basis, prefixes, key, variant, placed)
                placed += [found] if found else []
    return placed


def _variants(package: Package, prefixes: Prefixes) -> Sequence[str]:
    if package.kind == "device":
        return prefixes.variants
    if is_per_family(package, prefixes.layout) or package.kind == "devel":
        return prefixes.families or ("",)
    return ("",)


def _place(
    basis: PlanBasis, prefixes: Prefixes, key: str, variant: str, placed: Sequence[PlacedPackage]
) -> PlacedPackage | None:
    package, names = basis.recipe.packages[key], basis.names(key, variant)
    selected = take_entries(prefixes.trees[variant], package.take)
    if not selected:
        return None
    placement = Placement({}, {}, {}, ())
    if package.kind != "devel":
        prefix = PrefixIndex([*prefixes.trees[variant].values(), *prefixes.trees[""].values()])
        required = [other for other in placed if other.key in package.requires and not other.variant]
        there = {path: f"../{other.platform_module}/{path}" for other in required for path in other.placement.paths}
        placement = place_runtime(selected, prefix, basis.facts, there)
    return PlacedPackage(key, variant, names.distribution, names.module, names.platform_module, placement)


class MemberMaker(msgspec.Struct, frozen=True):
    """Creates members from the placed files of one package."""

    basis: PlanBasis
    places: LibraryPlaces
    """The locations of the shared libraries of all packages that are installed together."""
    search: tuple[str, ...]
    """Folders that every run path in the package contains, relative to site-packages."""

    def file(self, path: str, entry: Entry) -> FileMember:
        """Return the member for a file that is installed at ``path``, which is relative to site-packages."""
        assert entry.source is not None, entry.path
        elf, edit = self.basis.facts.elf(entry), None
        if elf is not None and elf.is_loadable:
            tag = RunpathTag(self.basis.recipe.run_path_tag)
            edit = run_path_edit(elf, posixpath.dirname(path), self.search, self.places, tag)
        release = self.basis.compress_for if entry.source in self.basis.facts.targets else None
        mode, trim = plain_mode(entry.mode), self.basis.options.device_code == "trim" and release is not None
        return FileMember(path, mode, entry.source, str(entry.artifact), entry.path, edit, release, trim)

    def members(self, package: PlacedPackage) -> list[FileMember | StubMember]:
        """Return the members for all files and stubs of a package."""
        root = package.platform_module
        files = (self.file(posixpath.join(root, path), entry) for path, entry in package.placement.files.items())
        stubs = (
            StubMember(posixpath.join(root, path), stub.target, stub.machine, stub.artifact)
            for path, stub in package.placement.stubs.items()
        )
        return [*files, *stubs]

    def among(self, paths: Iterable[str]) -> MemberMaker:
        """Return a maker for files that also find libraries at ``paths``, which are relative to site-packages."""
        return msgspec.structs.replace(self, places=self.places.joined(library_places(paths)))


class PackageGroup(msgspec.Struct, frozen=True, dict=True):
    """All packages of a neutral layout, or the packages for one family."""

    basis: PlanBasis
    packages: tuple[PlacedPackage, ...]

    @cached_property
    def by_key(self) -> dict[str, PlacedPackage]:
        """The packages, keyed by their name in the recipe.

        Device packages are excluded, because several of them share a name.
        """
        return {package.key: package for package in self.packages if self.recipe_of(package).kind != "device"}

    @cached_property
    def overlaid(self) -> tuple[PlacedPackage, ...]:
        """The packages into whose folders device packages are installed.

        The devel tree has a counterpart for each of their files.

        Frameworks that support TheRock's packages rely on these counterparts.
        """
        keys = {package.overlay for package in self.basis.recipe.packages.values() if package.overlay}
        return tuple(package for key, package in self.by_key.items() if key in keys)

    @cached_property
    def places(self) -> LibraryPlaces:
        """The locations of the shared libraries of all packages."""
        return library_places(
            posixpath.join(package.platform_module, path)
            for package in self.packages
            for path in package.placement.files
        )

    def recipe_of(self, package: PlacedPackage) -> Package:
        """Return the recipe's entry for a package."""
        return self.basis.recipe.packages[package.key]

    def required(self, package: PlacedPackage) -> list[str]:
        """Return the names of the distributions that a package requires in the recipe, except absent packages."""
        return [self.by_key[key].distribution for key in self.recipe_of(package).requires if key in self.by_key]

    def folders(self, places: Iterable[str], package: PlacedPackage) -> tuple[str, ...]:
        """Return the folders from a package's ``package:directory`` entries, except folders in absent packages.

        The folders are relative to site-packages.
        """
        modules = {key: other.platform_module for key, other in self.by_key.items()}
        modules[package.key] = package.platform_module
        pairs = (place.partition(":") for place in places)
        return tuple(posixpath.join(modules[key], folder) for key, _, folder in pairs if key in modules)

    def member_maker(self, package: PlacedPackage) -> MemberMaker:
        """Return the member maker of a package.

        A file that replaces a library searches the same folders as that library.
        """
        spec = self.recipe_of(package)
        search = spec.search
        if any(map(split_overlay_path, package.placement.files)):
            search = tuple(dict.fromkeys((*self.basis.recipe.packages[spec.overlay].search, *search)))
        return MemberMaker(self.basis, self.places, self.folders(search, package))
