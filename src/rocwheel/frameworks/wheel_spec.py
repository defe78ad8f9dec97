"""Reads the TOML description of a framework's wheel, which maps build outputs to paths in site-packages."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from packaging.specifiers import InvalidSpecifier
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, ProblemsError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.environment.run_path_entries import entry_problems
from rocwheel.wheels.requirements import read_specifier, release_match

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path


_OPTION = "--set"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9-]*)\}")


def placeholder_names(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the placeholders in a description's decoded TOML, outside ``[values]``."""
    texts = _texts({name: value for name, value in data.items() if name != "values"})
    return frozenset(name for text in texts for name in _PLACEHOLDER.findall(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts(item))
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for item in pair for text in _texts(item))


def fill_placeholders(value: Any, known: Mapping[str, str], source: Path | str) -> Any:
    """Return decoded TOML with every ``{name}`` replaced by its value.

    Raises `InputError` for a name without a value.
    """
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _value(match[1], known, source), value)
    if isinstance(value, list):
        return [fill_placeholders(item, known, source) for item in value]
    if isinstance(value, dict):
        pairs = value.items()
        return {fill_placeholders(key, known, source): fill_placeholders(item, known, source) for key, item in pairs}
    return value


def _value(name: str, known: Mapping[str, str], source: Path | str) -> str:
    if name not in known:
        names = ", ".join(sorted(known))
        remedy = f"Set the value with --set {name}=VALUE."
        raise InputError(
            source, f"uses the placeholder {{{name}}}, which has no value", expected=f"one of {names}", remedy=remedy
        )
    return str(known[name])


def parse_values(words: Iterable[str], known: Collection[str], options: Mapping[str, str] = {}) -> dict[str, str]:
    """Parse ``NAME=VALUE`` words for placeholders, and add the values from ``options``.

    Raises `InputError` for any other word, for an unknown name, and for a name with two values. Names are known if
    ``known`` or ``options`` contains them.
    """
    values = dict(options)
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise InputError(_OPTION, f"is {word!r}", expected="NAME=VALUE")
        if name not in known and name not in options:
            found = f"sets {name}, but the description has no such placeholder"
            raise InputError(_OPTION, found, expected=f"one of {', '.join(sorted(known))}" if known else "no values")
        if values.setdefault(name, value) != value:
            raise InputError(
                _OPTION,
                f"sets {name} to {value!r}, but {name} already has the value {values[name]!r}",
                expected="one value",
            )
    return values


_GROUP = re.compile(r"\w+(\.\w+)*")
_NAME = re.compile(r"[^=\s\[#;]([^=\r\n]*[^=\s])?")
_SCRIPT_NAME = re.compile(r"[\w.-]+")
_OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(?P<attribute> *: *[^\W\d]\w*(\.[^\W\d]\w*)*)?( *\[[\w\s,.-]*\])?")
_NUMBERS = 3
_SCRIPTS = ("console_scripts", "gui_scripts")


class SpecError(InputError):
    """A wheel's description is invalid."""


class _Fields(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """TOML fields with hyphens in their names. An unknown field is an error, because it is probably misspelled."""


class BuildOutput(_Fields, frozen=True):
    """Build outputs, and their destination in site-packages."""

    source: str = msgspec.field(name="from")
    """The last part of an input's path, such as ``pjrt/plugin.so``. The path can contain shell patterns."""
    place: str = msgspec.field(name="to")
    """A path in site-packages. A trailing slash means a folder, in which the files retain their names."""


class Stamp(_Fields, frozen=True):
    """The generated files with the version and the commits, which match the metadata."""

    version: str = ""
    """The path of ``version.py``. If empty, the file is omitted."""
    commits: str = ""
    """The path of ``commit_info.py``. If empty, the file is omitted."""


class WheelSpec(_Fields, frozen=True):
    """A wheel's description. Use `make_spec`, because the constructor checks nothing."""

    schema: Literal[1]
    name: str
    version: str
    files: tuple[BuildOutput, ...]
    summary: str = ""
    requires_python: str = ""
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    license: str | None = None
    """An SPDX expression."""
    license_files: tuple[str, ...] = ()
    """The last parts of the input paths of the license texts. The texts go to ``.dist-info/licenses``."""
    entry_points: dict[str, dict[str, str]] = {}
    """Groups of entry points. Each group maps names to values."""
    namespaces: tuple[str, ...] = ()
    """Namespace packages (:pep:`420`). An ``__init__.py`` in such a package would shadow the other distributions."""
    texts: dict[str, str] = {}
    """The contents of small files, keyed by path."""
    stamp: Stamp = Stamp()
    search: tuple[str, ...] = ()
    """Folders in site-packages that a repair may add to run paths. The default is the folders of the SDK's packages."""
    system_run_paths: tuple[str, ...] = ()
    """Allowed absolute run path entries, such as ``/opt/rocm/lib``."""


def read_spec(path: Path) -> dict[str, Any]:
    """Read a description's TOML without replacing placeholders. Raises `SpecError` for any other file."""
    try:
        return decode_toml(read_regular(path), dict[str, Any])
    except OSError as e:
        raise read_error(path, e, remedy="Check --spec.", kind=SpecError) from e
    except msgspec.DecodeError as e:
        raise SpecError(path, f"isn't valid TOML: {e}", remedy="See docs/jax.md for the fields.") from e


def settable_values(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the names that users can set: the version, and the description's placeholders except for ``{pair}``."""
    return placeholder_names(data) - {"pair"} | {"version"}


def make_spec(data: Mapping[str, Any], values: Mapping[str, str], *, source: Path | str) -> WheelSpec:
    """Return the description from decoded TOML, with every ``{name}`` replaced by its value.

    Values come from ``values``, then from ``[values]`` in the description. ``{version}`` is the normalized version, and
    ``{pair}`` is the result of `pair_specifier`. Raises `InputError` and `ProblemsError`.
    """
    fields = dict(data)
    defaults = fields.pop("values", {})
    if not isinstance(defaults, dict):
        raise SpecError(source, f"has {defaults!r} as [values]", expected="a table of names and values")
    _require_texts({"version": fields.get("version", ""), **defaults}, source)
    known = {**defaults, **values}
    version = _version(known.get("version", fields.get("version", "")), source)
    known |= {"version": version, "pair": pair_specifier(version)}
    filled = {**fill_placeholders(fields, known, source), "version": version}
    try:
        spec = msgspec.convert(filled, WheelSpec)
    except msgspec.ValidationError as e:
        raise SpecError(source, f"doesn't describe a wheel: {e}", remedy="See docs/jax.md for the fields.") from e
    if problems := list(_problems(spec, source)):
        raise ProblemsError(str(source), problems)
    return spec


def pair_specifier(version: str) -> str:
    """Return the specifier for a distribution of the same release, including post releases and local versions.

    A prefix match can't specify a pre-release (:pep:`440`), so pre-releases require an exact match. A release with
    fewer than three numbers is padded with zeros, so that a release with a different third number doesn't match.
    """
    parsed = Version(version)
    return f"=={release_match(parsed, max(_NUMBERS, len(parsed.release)))}"


def _require_texts(values: Mapping[str, object], source: Path | str) -> None:
    """Raise `SpecError` for a value that isn't a string. TOML parses the number 1.10 as 1.1."""
    for name, value in values.items():
        if not isinstance(value, str):
            found = f"has {name} = {value}, which isn't a string"
            raise SpecError(source, found, expected="a string in quotes", remedy="Put the value in quotes.")


def _version(text: object, source: Path | str) -> str:
    """Return the normalized version, so that the file name, the metadata, and ``version.py`` agree."""
    try:
        return str(Version(str(text)))
    except ValueError as e:
        expected = "a version such as '0.12.0' (PEP 440)"
        raise SpecError(source, f"has the version {text!r}", expected=expected, remedy="Add --version.") from e


def _problems(spec: WheelSpec, source: Path | str) -> Iterator[InputError]:
    try:
        canonicalize_name(spec.name, validate=True)
    except InvalidName:
        expected = "letters and digits, separated by single -, _, or . characters"
        yield SpecError(source, f"{spec.name!r} isn't a valid distribution name", expected=expected)
    if not _is_specifier(spec.requires_python):
        yield SpecError(source, f"has requires-python {spec.requires_python!r}", expected="specifiers such as >=3.11")
    yield from _entry_point_problems(spec, source)
    yield from _path_problems(spec, source)
    yield from entry_problems(f"{source}: system-run-paths", spec.system_run_paths)
    if spec.license and not spec.license_files:
        found = f"declares the license {spec.license} without a license text"
        yield SpecError(source, found, expected="license-files")
    if spec.license_files and not spec.license:
        yield SpecError(source, "has license-files, but no license", expected="an SPDX expression")


def _path_problems(spec: WheelSpec, source: Path | str) -> Iterator[InputError]:
    """Yield an error for each invalid input path or path in the wheel."""
    places = [output.place for output in spec.files] + list(spec.texts)
    places += [place for place in (spec.stamp.version, spec.stamp.commits) if place]
    for place in places:
        if place.startswith("/") or ".." in place.split("/") or not place.strip("/"):
            yield SpecError(source, f"{place!r} isn't a valid path", expected="a relative path in site-packages")
    for wanted in (*(output.source for output in spec.files), *spec.license_files):
        if wanted.startswith("/") or not PurePosixPath(wanted).name:
            yield SpecError(
                source, f"has the input {wanted!r}", expected="the end of a file's path, such as pjrt/plugin.so"
            )


def _is_specifier(text: str) -> bool:
    try:
        read_specifier(text)
    except InvalidSpecifier:
        return False
    return True


def _entry_point_problems(spec: WheelSpec, source: Path | str) -> Iterator[SpecError]:
    for group, names in spec.entry_points.items():
        if not _GROUP.fullmatch(group):
            yield SpecError(source, f"has the entry point group {group!r}", expected="words separated by dots")
        for name, value in names.items():
            yield from _reference_problems(group, name, value, source)


def _reference_problems(group: str, name: str, value: str, source: Path | str) -> Iterator[SpecError]:
    """Yield an error for each invalid part of an entry point (packaging.python.org, "Entry points")."""
    is_script = group in _SCRIPTS
    if not (_SCRIPT_NAME if is_script else _NAME).fullmatch(name):
        yield SpecError(source, f"has the entry point name {name!r} in {group}", expected="letters, digits, and -_.")
    reference = _OBJECT.fullmatch(value)
    if reference is None or (is_script and not reference["attribute"]):
        expected = "MODULE:FUNCTION" if is_script else "MODULE or MODULE:OBJECT"
        yield SpecError(source, f"has the entry point {name} = {value!r} in {group}", expected=expected)
