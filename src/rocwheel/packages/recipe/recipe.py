"""The recipe: which distributions exist, what they take from the artifacts, and how their files find each other."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from rocwheel.audit.settings import Configuration
from rocwheel.foundation.errors import ProblemsError
from rocwheel.packages.recipe.checks import RecipeError, recipe_problems

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

_SEE_FIELDS = "See the recipe's fields in the documentation."

Layout = Literal["neutral", "per-family"]
"""``neutral``: libraries once, device code in one distribution per target. ``per-family``: libraries per GPU family."""


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
        table = msgspec.toml.decode(_read_file(path) if path else _default_recipe())
        recipe = msgspec.convert(table, Recipe)
    except OSError as e:
        raise RecipeError(source, f"cannot be read ({e.strerror})", remedy="Check --recipe.") from e
    except msgspec.ValidationError as e:
        raise ProblemsError(source, list(_field_problems(source, table)) or [_field_problem(source, "", e)]) from e
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise RecipeError(source, f"is no recipe: {e}", remedy=_SEE_FIELDS) from e
    if problems := list(recipe_problems(source, recipe, get_args(Layout))):
        raise ProblemsError(source, problems)
    return recipe


def _read_file(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise RecipeError(str(path), "is no regular file", remedy="Check --recipe.")
    return path.read_bytes()


def _default_recipe() -> bytes:
    return importlib.resources.files(__package__).joinpath("rocm.toml").read_bytes()


def _field_problems(source: str, table: object) -> Iterator[RecipeError]:
    """Give a problem for each package, console script and library whose fields can't be read, by its name."""
    tried = ((where, _conversion_error(part, kind)) for where, part, kind in _parts(table))
    return (_field_problem(source, where, error) for where, error in tried if error is not None)


def _conversion_error(part: object, kind: type) -> msgspec.ValidationError | None:
    try:
        msgspec.convert(part, kind)
    except msgspec.ValidationError as e:
        return e
    return None


def _parts(table: object) -> Iterator[tuple[str, object, type]]:
    """Give the named parts of a recipe; each without the named parts of its own, which follow it."""
    for key, package in _named(table, "packages"):
        if isinstance(package, dict):
            yield f"packages.{key}", {**package, "console-scripts": {}}, Package
            for name, script in _named(package, "console-scripts"):
                yield f"packages.{key}.console-scripts.{name}", script, ConsoleScript
    for key, library in _named(table, "libraries"):
        yield f"libraries.{key}", library, PublicLibrary


def _named(table: object, field: str) -> Iterable[tuple[str, object]]:
    part = table.get(field) if isinstance(table, dict) else None
    return part.items() if isinstance(part, dict) else ()


def _field_problem(source: str, where: str, error: msgspec.ValidationError) -> RecipeError:
    text, _, place = str(error).partition(" - at `$")
    there = f"{where}{place.rstrip('`')}".lstrip(".")
    return RecipeError(source, f"{there}: {text}" if there else text, remedy=_SEE_FIELDS)
