"""Reading of recipes (TOML 1.0), of the one for ROCm that ships with rocwheel or of any other."""

from __future__ import annotations

import difflib
import hashlib
import importlib.resources
import re
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import ProblemsError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.packages.recipe.checks import recipe_problems
from rocwheel.packages.recipe.recipe import ConsoleScript, Layout, Package, PublicLibrary, Recipe, RecipeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["load_hashed_recipe", "load_recipe"]

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
        text = read_regular(path) if path else _default_recipe()
    except OSError as e:
        raise read_error(source, e, remedy="Check --recipe.", kind=RecipeError) from e
    return _parse(text, source), hashlib.sha256(text).hexdigest()


def _parse(text: bytes, source: str) -> Recipe:
    try:
        table = decode_toml(text, dict[str, Any])
        recipe = msgspec.convert(table, Recipe)
    except msgspec.ValidationError as e:
        raise ProblemsError(source, list(_field_problems(source, table)) or [_field_problem(source, "", e)]) from e
    except msgspec.DecodeError as e:
        raise RecipeError(source, f"is not a recipe: {e}", remedy=_SEE_FIELDS) from e
    if problems := list(recipe_problems(source, recipe, get_args(Layout))):
        raise ProblemsError(source, problems)
    return recipe


def _default_recipe() -> bytes:
    return importlib.resources.files(__package__).joinpath(_DEFAULT).read_bytes()


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
