"""The recipe: which distributions exist, what they take from the artifacts, and how their files find each other."""

from __future__ import annotations

import importlib.resources
import re
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.metadata import ExceptionGroup
from packaging.utils import InvalidName, canonicalize_name

from rocwheel.audit.configuration import Configuration
from rocwheel.distributions.metadata import CoreMetadata, render_metadata
from rocwheel.errors import InputError, ProblemsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = [
    "ConsoleScript",
    "Layout",
    "Package",
    "Prefer",
    "PublicLibrary",
    "Recipe",
    "RecipeError",
    "Selector",
    "Take",
    "load_recipe",
]

Layout = Literal["neutral", "per-family"]
"""``neutral``: libraries once, device code in one distribution per target. ``per-family``: libraries per GPU family."""


class RecipeError(InputError):
    """A recipe that can't be used."""


class _Fields(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Fields are spelled with hyphens in TOML; an unknown one is an error, since it is a misspelling."""


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
    """Forces a layout; otherwise the SDK's manifest tells."""
    license: str | None = None
    license_patterns: tuple[str, ...] = ()
    requires_python: str = ">=3.9"
    run_path_tag: Literal["rpath", "runpath"] = "rpath"
    audit: Configuration = Configuration()
    """What ``rocwheel audit --config RECIPE`` is told, such as the libraries that files open by name."""


def load_recipe(path: Path | None = None) -> Recipe:
    """Read a recipe, by default the one for ROCm that ships with rocwheel.

    Raises `RecipeError` for text that can't be read, `ProblemsError` with every reference in it that leads nowhere.
    """
    source = str(path) if path else "rocm.toml"
    try:
        data = _read_file(path) if path else _default_recipe()
        recipe = msgspec.toml.decode(data, type=Recipe)
    except OSError as e:
        raise RecipeError(source, f"cannot be read ({e.strerror})", remedy="Check --recipe.") from e
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise RecipeError(source, f"is no recipe: {e}", remedy="See the recipe's fields in the documentation.") from e
    if problems := list(_problems(source, recipe)):
        raise ProblemsError(source, problems)
    return recipe


def _read_file(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise RecipeError(str(path), "is no regular file", remedy="Check --recipe.")
    return path.read_bytes()


def _default_recipe() -> bytes:
    return importlib.resources.files(__package__).joinpath("rocm.toml").read_bytes()


def _problems(source: str, recipe: Recipe) -> Iterator[RecipeError]:
    for key, package in recipe.packages.items():
        yield from _package_problems(source, f"packages.{key}", package, recipe)
    yield from _unknown(source, "selector.requires", recipe.selector.requires, recipe)
    for extra, packages in recipe.selector.extras.items():
        yield from _unknown(source, f"selector.extras.{extra}", packages, recipe)
    for short, library in recipe.libraries.items():
        yield from _unknown(source, f"libraries.{short}", (library.package,), recipe)
    yield from _name_problems(source, "selector", recipe.selector.distribution)
    yield from _metadata_problems(source, recipe)


def _package_problems(source: str, where: str, package: Package, recipe: Recipe) -> Iterator[RecipeError]:
    named = [*package.requires, *(place.partition(":")[0] for place in package.search)]
    yield from _unknown(source, where, [*named, package.overlay] if package.overlay else named, recipe)
    names = package.distribution.values() if isinstance(package.distribution, dict) else [package.distribution]
    for name in names:
        yield from _name_problems(source, where, name)
    for name in filter(None, (package.module, package.platform_module)):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield RecipeError(
                source, f"{where}: {name!r} is no module name", expected="letters, digits and underscores"
            )
    for name in package.console_scripts:
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
            yield RecipeError(source, f"{where}: {name!r} is no name for a console script", expected="a file name")
    for place in package.search:
        if set(place.partition(":")[2].split("/")) & {"", ".", ".."}:
            yield RecipeError(
                source, f"{where} searches {place!r}", expected="a folder relative to the package's prefix"
            )
    if package.kind == "device" and not package.overlay:
        yield RecipeError(source, f"{where} is a device package without overlay", expected="the package it goes into")
    if package.kind != "device" and not (package.module and package.platform_module):
        yield RecipeError(source, f"{where} lacks module or platform-module", expected="both for its kind")


def _metadata_problems(source: str, recipe: Recipe) -> Iterator[RecipeError]:
    """Give a problem for each field that no METADATA file may hold."""
    summaries = [recipe.selector.summary, *(package.summary for package in recipe.packages.values())]
    for summary in set(summaries):
        metadata = CoreMetadata("x", "0", summary, recipe.requires_python, recipe.license)
        try:
            render_metadata(metadata)
        except ExceptionGroup as group:
            for error in group.exceptions:
                yield RecipeError(source, f"has an unusable field: {error}")


def _unknown(source: str, where: str, names: Iterable[str], recipe: Recipe) -> Iterator[RecipeError]:
    for name in names:
        if name not in recipe.packages:
            yield RecipeError(source, f"{where} names {name!r}", expected=f"one of {', '.join(recipe.packages)}")


def _name_problems(source: str, where: str, name: str) -> Iterator[RecipeError]:
    try:
        canonicalize_name(re.sub(r"\{(target|family)\}", "x", name), validate=True)
    except InvalidName:
        expected = "letters, digits and single -_. between them"
        yield RecipeError(source, f"{where}: {name!r} is no valid distribution name", expected=expected)
