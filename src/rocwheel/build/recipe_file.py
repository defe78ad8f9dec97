"""Reads recipes (TOML 1.0), the one for ROCm that ships with rocwheel or any other, and checks each as a whole."""

from __future__ import annotations

import difflib
import hashlib
import importlib.resources
import re
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from packaging.metadata import ExceptionGroup
from packaging.utils import InvalidName, canonicalize_name

from rocwheel.binary.stubs import make_relay
from rocwheel.build.recipe import (
    ConsoleScript,
    Layout,
    Package,
    PublicLibrary,
    Recipe,
    RecipeError,
    name_package,
    recipe_for,
)
from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, ProblemsError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.wheels.metadata import CoreMetadata, expression_fault, render_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_DEFAULT = "rocm.toml"
_SEE_FIELDS = "docs/recipe.md has the fields."
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_TABLES = (Recipe, Package, ConsoleScript, PublicLibrary)


def load_recipe(path: Path | None = None) -> Recipe:
    """Read a recipe, by default the one for ROCm that ships with rocwheel.

    Raises `RecipeError` for text that can't be read, `ProblemsError` with every reference in it that leads nowhere.
    """
    return load_hashed_recipe(path)[0]


def load_hashed_recipe(path: Path | None = None) -> tuple[Recipe, str]:
    """Return a recipe and the SHA-256 of its text, in hexadecimal digits; the file is read once.

    Raises what `load_recipe` does.
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
    """Yield a problem for each package, console script and library whose fields can't be read, by its name."""
    tried = ((where, _conversion_error(part, kind)) for where, part, kind in _parts(table))
    return (_field_problem(source, where, error) for where, error in tried if error is not None)


def _conversion_error(part: object, kind: type) -> msgspec.ValidationError | None:
    try:
        msgspec.convert(part, kind)
    except msgspec.ValidationError as e:
        return e
    return None


def _parts(table: object) -> Iterator[tuple[str, object, type]]:
    """Yield the named parts of a recipe, each before the named parts that it holds and without them."""
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
    """Return the field that may be meant by one that is unknown."""
    unknown = _UNKNOWN.search(text)
    known = {field.encode_name for table in _TABLES for field in msgspec.structs.fields(table)}
    near = difflib.get_close_matches(unknown[1], sorted(known), n=1, cutoff=0.7) if unknown else []
    return "".join(f"Did you mean {name!r}?" for name in near)


def _problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each reference that leads nowhere, name that clashes and unusable name, with what is expected instead."""
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
            yield f"licenses.{component}: {text!r} is none ({fault})", expected
    yield from _platform_problems(recipe)


def _platform_problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each reference in the rules of a platform that leads nowhere on that platform."""
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
    """Yield each distribution or module that two packages claim: one would replace the other's files."""
    reported = set()
    for layout in get_args(Layout):
        owners: dict[tuple[str, str], str] = {}
        for where, kind, name in _claims(recipe, layout):
            first = owners.setdefault((kind, name), where)
            if first != where and (first, where) not in reported:
                reported.add((first, where))
                yield f"{where} and {first} are both {name!r}", f"different {kind}s"


def _claims(recipe: Recipe, layout: Layout) -> Iterator[tuple[str, str, str]]:
    """Yield each name that a layout uses: the field, what it names, and the name."""
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
    names = package.distribution.values() if isinstance(package.distribution, dict) else [package.distribution]
    for name in names:
        yield from _name_problems(where, name)
    yield from _module_and_script_problems(where, package)
    for path, rule in package.relays.items():
        at = f"{where}.relays.{path!r}"
        if rule.target in package.relays:
            yield f"{at} starts {rule.target!r}, a relay itself", "the program itself"
        try:
            make_relay(rule.target_from(path), rule.arguments)
        except InputError as e:
            yield f"{at}: {e.found}", e.expected
    for place in package.search:
        if set(place.partition(":")[2].split("/")) & {"", ".", ".."}:
            yield f"{where} searches {place!r}", "a folder relative to the package's prefix"
    if package.kind == "device" and not package.overlay:
        yield f"{where} is a device package without overlay", "the package it goes into"
    if package.kind != "device" and not (package.module and package.platform_module):
        yield f"{where} lacks module or platform-module", "both for its kind"


def _module_and_script_problems(where: str, package: Package) -> Iterator[tuple[str, str]]:
    for name in filter(None, (package.module, package.platform_module)):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield f"{where}: {name!r} is not a module name", "letters, digits and underscores"
    for name in package.console_scripts:
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name):
            yield f"{where}: {name!r} is not a name for a console script", "a file name"


def _metadata_problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each field that METADATA may not hold."""
    summaries = [recipe.selector.summary, *(package.summary for package in recipe.packages.values())]
    for summary in set(summaries):
        metadata = CoreMetadata("x", "0", summary, recipe.requires_python, recipe.license)
        try:
            render_metadata(metadata)
        except ExceptionGroup as group:
            for error in group.exceptions:
                yield f"has an unusable field: {error}", ""


def _unknown(where: str, names: Iterable[str], recipe: Recipe) -> Iterator[tuple[str, str]]:
    for name in names:
        if name not in recipe.packages:
            yield f"{where} names {name!r}", f"one of {', '.join(recipe.packages)}"


def _name_problems(where: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        canonicalize_name(re.sub(r"\{(target|family)\}", "x", name), validate=True)
    except InvalidName:
        yield f"{where}: {name!r} is not a valid distribution name", "letters, digits and single -_. between them"
