"""Reads the recipe (TOML 1.0), which defines distributions, their files, and how files find each other."""

from __future__ import annotations

import difflib
import hashlib
import importlib.resources
import posixpath
import re
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from packaging.metadata import ExceptionGroup
from packaging.utils import InvalidName, canonicalize_name

from rocwheel.artifacts.sdk_names import family_module
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.platform import Platform
from rocwheel.binary.stubs import make_relay
from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, ProblemsError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.wheels.metadata import CoreMetadata, expression_fault, render_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


Layout = Literal["neutral", "per-family"]
"""The layout of a package set.

``neutral`` has one set of libraries, and a distribution with device code for each target. ``per-family`` has a set of
libraries for each GPU family.
"""


class RecipeError(InputError):
    """A recipe is invalid."""


class _Fields(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A table whose field names contain hyphens in TOML. Unknown fields are errors, because they are probably typos."""


class Take(_Fields, frozen=True):
    """The files that a package takes: files from these artifacts and components whose paths match the patterns."""

    artifacts: tuple[str, ...]
    """The names of artifacts. A single ``*`` means every artifact."""
    components: tuple[str, ...]
    include: tuple[str, ...] = ("**",)
    exclude: tuple[str, ...] = ()
    exclude_artifacts: tuple[str, ...] = ()


class ConsoleScript(_Fields, frozen=True):
    """A tool in a package. A console script is created for the tool if its file exists."""

    path: str
    """The path of the tool below the platform module."""
    expands: bool = False
    """Whether the tool may expand the devel package on first use."""
    check: tuple[str, ...] | None = None
    """Arguments for the self-test, which expects exit status 0.

    With `None`, the self-test only checks that the file exists.
    """
    gpu: bool = False
    """Whether ``check`` needs a GPU."""
    prepend: dict[str, tuple[str, ...]] = {}
    """The ``package:directory`` entries to prepend to each environment variable."""


class RelayRule(_Fields, frozen=True):
    """The relay that replaces a Windows program that is a copy of another program."""

    target: str
    """The path of the other program, relative to the platform module."""
    arguments: tuple[str, ...] = ()
    """Arguments to insert before all other arguments, for a program that chooses its task based on its file name."""

    def target_from(self, path: str) -> str:
        """Return the program's path relative to the folder of the relay at ``path``."""
        return posixpath.relpath(self.target, posixpath.dirname(path) or ".")


class Package(_Fields, frozen=True):
    """A distribution, or a distribution for each target or family."""

    kind: Literal["runtime", "device", "devel"]
    distribution: str | dict[Layout, str]
    """The name of the distribution, or a table with a name for each layout.

    With ``{target}`` or ``{family}`` in the name, there is a distribution for each target or family.
    """
    summary: str
    take: tuple[Take, ...]
    module: str = ""
    """The pure Python module.

    If the distribution name contains ``{family}``, the family is appended to the module's name.
    """
    platform_module: str = ""
    """The folder in site-packages that contains the install prefix."""
    overlay: str = ""
    """The package whose platform module receives the files of a device package."""
    requires: tuple[str, ...] = ()
    required: bool = False
    search: tuple[str, ...] = ()
    """The ``package:directory`` entries for the folders where the package's files look for shared libraries."""
    console_scripts: dict[str, ConsoleScript] = {}
    dist_info: str = ""
    """The module for the list of GPU targets that the SDK has code for. ``rocm-sdk targets`` reads this module."""
    unversioned: tuple[str, ...] = ()
    """Patterns for shared libraries that are also opened by their unversioned name."""
    relays: dict[str, RelayRule] = {}
    """The Windows programs that relays replace if they are copies of other programs, keyed by path."""

    def distribution_in(self, layout: Layout) -> str | None:
        """Return the distribution name in a layout, or `None` if the layout doesn't have the package."""
        return self.distribution if isinstance(self.distribution, str) else self.distribution.get(layout)


class Selector(_Fields, frozen=True):
    """The distribution that users install, which depends on the other distributions."""

    distribution: str
    module: str
    summary: str
    requires: tuple[str, ...] = ()
    """The packages that the selector always depends on."""
    extras: dict[str, tuple[str, ...]] = {}
    """The packages that each extra adds."""


class PublicLibrary(_Fields, frozen=True):
    """A shared library with a public short name."""

    package: str
    pattern: str
    directory: str = "lib"


class Prefer(_Fields, frozen=True):
    """The artifact to prefer if several artifacts have different files for a path that matches the pattern."""

    pattern: str
    artifact: str
    reason: str


class PackageRules(_Fields, frozen=True):
    """Changes to a package on one platform. Unset values are the same as on all other platforms."""

    exists: bool = True
    """Whether the platform has the package."""
    take: tuple[Take, ...] | None = None
    search: tuple[str, ...] | None = None
    unversioned: tuple[str, ...] | None = None
    console_scripts: dict[str, ConsoleScript] | None = None
    relays: dict[str, RelayRule] | None = None


class PlatformRules(_Fields, frozen=True):
    """Changes to a package set on one platform. Unset values are the same as on all other platforms."""

    packages: dict[str, PackageRules] = {}
    libraries: dict[str, PublicLibrary] | None = None
    unloadable: tuple[str, ...] | None = None
    leave_out: tuple[str, ...] = ()
    """Patterns of files that are left out of all packages, such as test plugins."""


class Recipe(_Fields, frozen=True):
    """A package set."""

    schema: Literal[1]
    packages: dict[str, Package]
    selector: Selector
    libraries: dict[str, PublicLibrary] = {}
    prefer: tuple[Prefer, ...] = ()
    unloadable: tuple[str, ...] = ()
    """Shell patterns for shared libraries that can be loaded only by programs that were built for them."""
    layout: Layout | None = None
    """The required layout. By default, the SDK manifest determines the layout."""
    license: str | None = None
    """The SPDX expression of components that are not in ``licenses``."""
    licenses: dict[str, str] = {}
    """SPDX expressions of components.

    The key is the name of an artifact, or a trailing part of a project's folder path, which takes precedence.
    """
    license_patterns: tuple[str, ...] = ()
    requires_python: str = ">=3.9"
    run_path_tag: Literal["rpath", "runpath"] = "rpath"
    leave_out: tuple[str, ...] = ()
    """Patterns of files that are left out of all packages on every platform."""
    platforms: dict[Platform, PlatformRules] = {}
    """Changes for each platform; see `rocwheel.build.recipe`."""
    audit: AuditSettings = AuditSettings()
    """Settings for ``rocwheel audit --config RECIPE``, such as the libraries that files open by name."""


def recipe_for(recipe: Recipe, platform: Platform) -> Recipe:
    """Return a recipe for one platform, without platform rules and without packages that the platform doesn't have.

    References to these packages are removed, and so are extras that would add nothing.
    """
    rules = recipe.platforms.get(platform, PlatformRules())
    existing = [key for key in recipe.packages if rules.packages.get(key, PackageRules()).exists]
    libraries = recipe.libraries if rules.libraries is None else rules.libraries

    def kept(keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(key for key in keys if key in existing)

    def package_of(key: str) -> Package:
        own = rules.packages.get(key, PackageRules())
        given = {name: getattr(own, name) for name in ("take", "search", "unversioned", "console_scripts", "relays")}
        changed = {name: value for name, value in given.items() if value is not None}
        package = msgspec.structs.replace(recipe.packages[key], **changed)
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
    """The names of a distribution and its modules."""

    distribution: str
    module: str
    """The pure Python module; empty if the package has no such module."""
    platform_module: str
    """The folder in site-packages for the package's files.

    A device package uses the folder of the package that it extends.
    """


def is_per_variant(package: Package, layout: Layout) -> bool:
    """Return whether a package has one distribution for each GPU target or family."""
    name = package.distribution_in(layout) or ""
    return _TARGET in name or _FAMILY in name


def is_per_family(package: Package, layout: Layout) -> bool:
    """Return whether a package has one distribution, with its own modules, for each GPU family."""
    return _FAMILY in (package.distribution_in(layout) or "")


def for_variant(text: str, variant: str) -> str:
    """Return text from the recipe with ``{target}`` and ``{family}`` replaced by a GPU target or family."""
    return text.replace(_TARGET, variant).replace(_FAMILY, variant)


def name_package(recipe: Recipe, key: str, layout: Layout, variant: str = _FAMILY) -> PackageNames:
    """Return the names of the package ``key`` for a GPU target or family.

    Without a variant, ``{family}`` remains in the names.

    If the distribution name contains the family, module names also contain it, with underscores.
    """
    package = recipe.packages[key]
    completed = recipe.packages.get(package.overlay, package)
    module, platform_module = package.module, package.platform_module or completed.platform_module
    if is_per_family(package, layout):
        module = module and family_module(module, variant)
        platform_module = family_module(platform_module, variant)
    return PackageNames(for_variant(package.distribution_in(layout) or "", variant), module, platform_module)


_DEFAULT = "rocm.toml"
_SEE_FIELDS = "See docs/recipe.md for the valid fields."
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_TABLES = (Recipe, Package, ConsoleScript, PublicLibrary)


def load_recipe(path: Path | None = None) -> Recipe:
    """Read a recipe. The default is the built-in recipe for ROCm.

    Raises `RecipeError` if the recipe can't be read, and `ProblemsError` with every dangling reference in it.
    """
    return load_hashed_recipe(path)[0]


def load_hashed_recipe(path: Path | None = None) -> tuple[Recipe, str]:
    """Return a recipe and the SHA-256 of its text in hexadecimal. The file is read only once.

    Raises the same errors as `load_recipe`.
    """
    source = str(path) if path else _DEFAULT
    try:
        text = read_regular(path) if path else importlib.resources.files(__package__).joinpath(_DEFAULT).read_bytes()
    except OSError as e:
        raise read_error(source, e, remedy="Check --recipe.", kind=RecipeError) from e
    try:
        table = decode_toml(text, dict[str, Any])
        recipe = msgspec.convert(table, Recipe)
    except msgspec.ValidationError as e:
        raise ProblemsError(source, list(_field_problems(source, table)) or [_field_problem(source, "", e)]) from e
    except msgspec.DecodeError as e:
        raise RecipeError(source, f"is not a recipe: {e}", remedy=_SEE_FIELDS) from e
    if problems := [RecipeError(source, found, expected=expected) for found, expected in _problems(recipe)]:
        raise ProblemsError(source, problems)
    return recipe, hashlib.sha256(text).hexdigest()


def _field_problems(source: str, table: object) -> Iterator[RecipeError]:
    """Yield an error for each package, console script, or library with an invalid field."""
    for where, part, kind in _parts(table):
        try:
            msgspec.convert(part, kind)
        except msgspec.ValidationError as e:  # noqa: PERF203 (all of them are reported)
            yield _field_problem(source, where, e)


def _parts(table: object) -> Iterator[tuple[str, object, type]]:
    """Yield the named parts of a recipe. A part comes before the named parts inside it, which are removed from it."""
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
    return RecipeError(source, f"{there}: {text}" if there else text, remedy=_meant(text) or _SEE_FIELDS)


def _meant(text: str) -> str:
    """Return a suggestion for an unknown field that is probably a typo, or an empty string."""
    unknown = _UNKNOWN.search(text)
    known = {field.encode_name for table in _TABLES for field in msgspec.structs.fields(table)}
    near = difflib.get_close_matches(unknown[1], sorted(known), n=1, cutoff=0.7) if unknown else []
    return "".join(f"Did you mean {name!r}?" for name in near)


def _problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each dangling reference, conflicting name, and invalid name, each with the expected value."""
    for key, package in recipe.packages.items():
        yield from _package_problems(f"packages.{key}", package, recipe)
    yield from _unknown("selector.requires", recipe.selector.requires, recipe)
    for extra, packages in recipe.selector.extras.items():
        yield from _unknown(f"selector.extras.{extra}", packages, recipe)
    for short, library in recipe.libraries.items():
        yield from _unknown(f"libraries.{short}", (library.package,), recipe)
    yield from _name_problems("selector", recipe.selector.distribution)
    yield from _shared_names(recipe)
    yield from _metadata_problems(recipe)
    for component, text in recipe.licenses.items():
        if fault := expression_fault(text):
            expected = "an SPDX expression such as MIT, or Apache-2.0 WITH LLVM-exception"
            yield f"licenses.{component}: {text!r} is not a valid license ({fault})", expected
    # Check each reference in a platform's rules on that platform.
    for platform, rules in recipe.platforms.items():
        where = f"platforms.{platform}"
        yield from _unknown(f"{where}.packages", rules.packages, recipe)
        for short, library in (rules.libraries or {}).items():
            yield from _unknown(f"{where}.libraries.{short}", (library.package,), recipe)
        there = recipe_for(recipe, platform)
        for key in there.packages.keys() & rules.packages.keys():
            searched = (place.partition(":")[0] for place in rules.packages[key].search or ())
            yield from _unknown(f"{where}.packages.{key}", searched, recipe)
            yield from _package_problems(f"{where}.packages.{key}", there.packages[key], there)


def _shared_names(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each distribution or module name that two packages share, because one would overwrite the other's files."""
    reported = set()
    for layout in get_args(Layout):
        owners: dict[tuple[str, str], str] = {}
        for where, kind, name in _claims(recipe, layout):
            first = owners.setdefault((kind, name), where)
            if first != where and (first, where) not in reported:
                reported.add((first, where))
                yield f"{where} and {first} are both {name!r}", f"different {kind} names"


def _claims(recipe: Recipe, layout: Layout) -> Iterator[tuple[str, str, str]]:
    """Yield the field, the kind, and the text of each name that a layout uses."""
    yield "selector.distribution", "distribution", canonicalize_name(recipe.selector.distribution)
    yield "selector.module", "module", recipe.selector.module
    for key, package in recipe.packages.items():
        distribution = package.distribution_in(layout)
        if distribution is not None:
            yield f"packages.{key}.distribution", "distribution", canonicalize_name(distribution)
            names = name_package(recipe, key, layout)
            if package.module:
                yield f"packages.{key}.module", "module", names.module
            if package.platform_module:
                yield f"packages.{key}.platform-module", "module", names.platform_module


def _package_problems(where: str, package: Package, recipe: Recipe) -> Iterator[tuple[str, str]]:
    named = [*package.requires, *(place.partition(":")[0] for place in package.search)]
    yield from _unknown(where, [*named, package.overlay] if package.overlay else named, recipe)
    yield from _requires_problems(where, package, recipe)
    names = package.distribution.values() if isinstance(package.distribution, dict) else [package.distribution]
    for name in names:
        yield from _name_problems(where, name)
    yield from _module_and_script_problems(where, package)
    for path, rule in package.relays.items():
        at = f"{where}.relays.{path!r}"
        if rule.target in package.relays:
            yield f"{at} starts {rule.target!r}, which is also a relay", "a program that is not a relay"
        try:
            make_relay(rule.target_from(path), rule.arguments)
        except InputError as e:
            yield f"{at}: {e.found}", e.expected
    for place in package.search:
        if set(place.partition(":")[2].split("/")) & {"", ".", ".."}:
            yield f"{where} searches {place!r}", "a folder relative to the package's prefix"
    if package.kind == "device" and not package.overlay:
        yield f"{where} is a device package without an overlay", "the name of the package that it extends"
    if package.kind != "device" and not (package.module and package.platform_module):
        yield f"{where} lacks module or platform-module", "both, because it is not a device package"


def _requires_problems(where: str, package: Package, recipe: Recipe) -> Iterator[tuple[str, str]]:
    for key in package.requires:
        required = recipe.packages.get(key)
        if required is package:
            yield f"{where} requires itself", "only other packages"
        elif required is not None and required.kind == "device":
            yield (
                f"{where} requires the device package {key!r}",
                "a package for all GPUs, because extras choose the GPU",
            )


def _module_and_script_problems(where: str, package: Package) -> Iterator[tuple[str, str]]:
    for name in filter(None, (package.module, package.platform_module)):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield f"{where}: {name!r} is not a module name", "letters, digits, and underscores"
    for name in package.console_scripts:
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
            yield f"{where}: {name!r} is not a valid name for a console script", "a file name"


def _metadata_problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each field with a value that METADATA doesn't allow."""
    summaries = [recipe.selector.summary, *(package.summary for package in recipe.packages.values())]
    for summary in set(summaries):
        metadata = CoreMetadata("x", "0", summary, recipe.requires_python, recipe.license)
        try:
            render_metadata(metadata)
        except ExceptionGroup as group:
            for error in group.exceptions:
                yield f"has an invalid field: {error}", ""


def _unknown(where: str, names: Iterable[str], recipe: Recipe) -> Iterator[tuple[str, str]]:
    for name in names:
        if name not in recipe.packages:
            yield f"{where} refers to {name!r}", f"one of {', '.join(recipe.packages)}"


def _name_problems(where: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        canonicalize_name(re.sub(r"\{(target|family)\}", "x", name), validate=True)
    except InvalidName:
        yield (
            f"{where}: {name!r} isn't a valid distribution name",
            "letters and digits, separated by single -, _, or .",
        )
