"""The recipe: which distributions exist, what they take from the artifacts, and how their files find each other."""

from __future__ import annotations

import posixpath
from typing import Literal

import msgspec

from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.platform import Platform
from rocwheel.core.errors import InputError
from rocwheel.linking.known.sdk_names import family_module

Layout = Literal["neutral", "per-family"]
"""``neutral``: libraries once, device code in one distribution per target. ``per-family``: libraries per GPU family."""


class RecipeError(InputError):
    """A recipe that can't be used."""


class _Fields(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A table whose fields are spelled with hyphens in TOML. An unknown field is an error: it is a misspelling."""


class Take(_Fields, frozen=True):
    """Which files a package takes: those of the named artifacts and components whose path passes the patterns."""

    artifacts: tuple[str, ...]
    """Artifact names; ``*`` alone is every artifact."""
    components: tuple[str, ...]
    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()
    exclude_artifacts: tuple[str, ...] = ()


class ConsoleScript(_Fields, frozen=True):
    """A tool of a package that gets a console script; one whose file is absent gets none."""

    path: str
    """The tool, below the platform module."""
    expands: bool = False
    """Whether it may expand the devel package on first use."""
    check: tuple[str, ...] | None = None
    """Arguments that the self test runs it with, expecting exit status 0; none: its presence is enough."""
    gpu: bool = False
    """Whether ``check`` needs a GPU."""
    prepend: dict[str, tuple[str, ...]] = {}
    """Environment variable to the ``package:directory`` places that go in front of its value."""


class RelayRule(_Fields, frozen=True):
    """What stands in for a program of Windows that is a copy of another one."""

    target: str
    """The program, below the platform module as the copy is."""
    arguments: tuple[str, ...] = ()
    """What it is started with before all other arguments, where it knows its task by the name of its file."""

    def target_from(self, path: str) -> str:
        """Return the program's path relative to the folder of a relay at ``path``."""
        return posixpath.relpath(self.target, posixpath.dirname(path) or ".")


class Package(_Fields, frozen=True):
    """One distribution, or one per target or family."""

    kind: Literal["runtime", "device", "devel"]
    distribution: str | dict[Layout, str]
    """Distribution name, where it differs by layout as a table; ``{target}`` or ``{family}`` makes it one per each."""
    summary: str
    take: tuple[Take, ...]
    module: str = ""
    """The pure Python module; with ``{family}`` in the distribution name, the family is appended."""
    platform_module: str = ""
    """The folder in site-packages that holds the install prefix."""
    overlay: str = ""
    """The package whose platform module a device package's files go into."""
    requires: tuple[str, ...] = ()
    required: bool = False
    search: tuple[str, ...] = ()
    """``package:directory`` places that its files look for shared libraries in."""
    console_scripts: dict[str, ConsoleScript] = {}
    dist_info: str = ""
    """Where the list of GPU targets that the SDK carries code for is written, as ``rocm-sdk targets`` reads it."""
    unversioned: tuple[str, ...] = ()
    """Patterns of shared libraries that are also opened under their name without a version."""
    relays: dict[str, RelayRule] = {}
    """Programs of Windows that small ones stand in for where they are copies of others, by path."""

    def distribution_in(self, layout: Layout) -> str | None:
        """Return the distribution name in a layout, none where the package doesn't exist in it."""
        return self.distribution if isinstance(self.distribution, str) else self.distribution.get(layout)


class Selector(_Fields, frozen=True):
    """The distribution that people ask for, which depends on the others."""

    distribution: str
    module: str
    summary: str
    requires: tuple[str, ...] = ()
    """Packages that it always depends on."""
    extras: dict[str, tuple[str, ...]] = {}
    """Extra to the packages it adds."""


class PublicLibrary(_Fields, frozen=True):
    """A shared library with a public short name."""

    package: str
    pattern: str
    directory: str = "lib"


class Prefer(_Fields, frozen=True):
    """Which artifact wins where several hold different files for the paths of a pattern."""

    pattern: str
    artifact: str
    reason: str


class PackageRules(_Fields, frozen=True):
    """How a package differs on one platform; what is not given is as on all others."""

    exists: bool = True
    """Whether there is such a package at all."""
    take: tuple[Take, ...] | None = None
    search: tuple[str, ...] | None = None
    unversioned: tuple[str, ...] | None = None
    console_scripts: dict[str, ConsoleScript] | None = None
    relays: dict[str, RelayRule] | None = None


class PlatformRules(_Fields, frozen=True):
    """How a package set differs on one platform; what is not given is as on all others."""

    packages: dict[str, PackageRules] = {}
    libraries: dict[str, PublicLibrary] | None = None
    unloadable: tuple[str, ...] | None = None
    leave_out: tuple[str, ...] = ()
    """Patterns of files that no package takes, such as plugins of tests."""


class Recipe(_Fields, frozen=True):
    """A package set."""

    schema: Literal[1]
    packages: dict[str, Package]
    selector: Selector
    libraries: dict[str, PublicLibrary] = {}
    prefer: tuple[Prefer, ...] = ()
    unloadable: tuple[str, ...] = ()
    """Patterns, as the shell's, of shared libraries that only load into programs built for them."""
    layout: Layout | None = None
    """Forces a layout; by default the SDK's manifest decides."""
    license: str | None = None
    """The SPDX expression of components that ``licenses`` doesn't name."""
    licenses: dict[str, str] = {}
    """SPDX expressions by component: an artifact's name, or the end of a project's folder, which counts first."""
    license_patterns: tuple[str, ...] = ()
    requires_python: str = ">=3.9"
    run_path_tag: Literal["rpath", "runpath"] = "rpath"
    leave_out: tuple[str, ...] = ()
    """Patterns of files that no package takes, on any platform."""
    platforms: dict[Platform, PlatformRules] = {}
    """What differs by platform; see `rocwheel.build.recipe`."""
    audit: AuditSettings = AuditSettings()
    """Settings for ``rocwheel audit --config RECIPE``, such as the libraries that files open by name."""


def recipe_for(recipe: Recipe, platform: Platform) -> Recipe:
    """Return a recipe as it is on one platform: without rules by platform, and without packages that it lacks there.

    What other packages say of those is taken out with them, and so are extras that would add nothing.
    """
    rules = recipe.platforms.get(platform, PlatformRules())
    existing = [key for key in recipe.packages if rules.packages.get(key, PackageRules()).exists]
    libraries = recipe.libraries if rules.libraries is None else rules.libraries

    def kept(keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(key for key in keys if key in existing)

    def package_of(key: str) -> Package:
        own = rules.packages.get(key, PackageRules())
        given = {name: getattr(own, name) for name in ("take", "search", "unversioned", "console_scripts", "relays")}
        told = {name: value for name, value in given.items() if value is not None}
        package = msgspec.structs.replace(recipe.packages[key], **told)
        search = tuple(place for place in package.search if place.partition(":")[0] in existing)
        return msgspec.structs.replace(package, requires=kept(package.requires), search=search)

    return msgspec.structs.replace(
        recipe,
        packages={key: package_of(key) for key in existing},
        selector=msgspec.structs.replace(
            recipe.selector,
            requires=kept(recipe.selector.requires),
            extras={extra: left for extra, keys in recipe.selector.extras.items() if (left := kept(keys))},
        ),
        libraries={name: library for name, library in libraries.items() if library.package in existing},
        unloadable=recipe.unloadable if rules.unloadable is None else rules.unloadable,
        leave_out=(*recipe.leave_out, *rules.leave_out),
        platforms={},
    )


_FAMILY = "{family}"
_TARGET = "{target}"


class PackageNames(msgspec.Struct, frozen=True):
    """The names of one distribution and of its modules."""

    distribution: str
    module: str
    """The pure Python module; empty for a package without one."""
    platform_module: str
    """The folder in site-packages that its files go into; for a device package, that of the package it completes."""


def is_per_variant(package: Package, layout: Layout) -> bool:
    """Return whether a package has one distribution for each GPU target or family."""
    name = package.distribution_in(layout) or ""
    return _TARGET in name or _FAMILY in name


def is_per_family(package: Package, layout: Layout) -> bool:
    """Return whether a package has one distribution, with modules of its own, for each GPU family."""
    return _FAMILY in (package.distribution_in(layout) or "")


def for_variant(text: str, variant: str) -> str:
    """Return a text of the recipe with a GPU target or family in place of ``{target}`` and ``{family}``."""
    return text.replace(_TARGET, variant).replace(_FAMILY, variant)


def name_package(recipe: Recipe, key: str, layout: Layout, variant: str = _FAMILY) -> PackageNames:
    """Return the names of the package ``key`` for a GPU target or family; by default with ``{family}`` in its place.

    Modules take the family into their names where the distribution does, with underscores.
    """
    package = recipe.packages[key]
    completed = recipe.packages.get(package.overlay, package)
    module, platform_module = package.module, package.platform_module or completed.platform_module
    if is_per_family(package, layout):
        module = module and family_module(module, variant)
        platform_module = family_module(platform_module, variant)
    return PackageNames(for_variant(package.distribution_in(layout) or "", variant), module, platform_module)
