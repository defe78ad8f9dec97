"""Reads, edits, and writes core metadata (version 2.4, :pep:`639`) and the small files of ``.dist-info``."""

from __future__ import annotations

import configparser
import posixpath
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.metadata import Metadata, RawMetadata, RFC822Message, parse_email
from packaging.version import Version

import rocwheel
from rocwheel.core.errors import InputError
from rocwheel.wheels.tags import expand_tags
from rocwheel.wheels.zip_reader import MOST_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from packaging.metadata import RawMetadata


class CoreMetadataError(ValueError):
    """An error for text that isn't core metadata. The error message states the reason."""


_HEADER_NAME = re.compile(rb"(?:\A|[\r\n])([^\s:]*):")
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))[\r\n]")
_SEVERAL = re.compile(rb"(?:\A|[\r\n])Content-Type:\s*(?:multipart|message)/", re.IGNORECASE)
_MOST_LINES = 8192
"""The maximum number of header lines in METADATA. In 967 published wheels, it is 544 (transformers 4.57.6)."""
_MOST_FIELDS = 256
"""The maximum number of different fields. In the same wheels, it is 20. For each field, all lines are searched."""


def parse_core_metadata(data: bytes) -> tuple[RawMetadata, dict[str, list[str]]]:
    """Return the fields of core metadata and, separately, the unknown or unreadable fields.

    Raises `CoreMetadataError` for text that exceeds the limits, and for nested messages, which the standard library
    parses like messages in emails.
    """
    blank = _BLANK_LINE.search(data)
    headers = data[: blank.start()] if blank else data
    names = _HEADER_NAME.findall(headers)
    _require_few(len(data), MOST_METADATA, "bytes")
    _require_few(len(names), _MOST_LINES, "header lines")
    _require_few(len({name.lower() for name in names}), _MOST_FIELDS, "different fields")
    if _SEVERAL.search(headers):
        msg = "it contains other messages"
        raise CoreMetadataError(msg)
    return parse_email(data)


def _require_few(found: int, most: int, what: str) -> None:
    if found > most:
        msg = f"it has {found} {what}; expected at most {most}"
        raise CoreMetadataError(msg)


_VALUE = re.compile(rb"(?<=^Requires-Dist:)([ \t]*)([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(rb"^(Version:[ \t]*)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*", re.MULTILINE | re.IGNORECASE)
_TAG = re.compile(rb"^Tag:[^\n]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
_PURELIB = re.compile(rb"^Root-Is-Purelib:[^\r\n]*", re.MULTILINE | re.IGNORECASE)


def add_requirements(metadata: bytes, requirements: Sequence[str]) -> bytes:
    """Return METADATA with more ``Requires-Dist`` lines, after the last such line or at the end of the headers."""
    return add_values(metadata, "Requires-Dist", requirements)


def add_values(metadata: bytes, field: str, values: Sequence[str]) -> bytes:
    """Return METADATA with more lines of a field, after the field's last line or at the end of the headers."""
    if not values:
        return metadata
    end = _headers_end(metadata)
    last = max((match.end() for match in _lines_of(field).finditer(metadata, 0, end)), default=end)
    newline = _newline(metadata[:end])
    return _ended(metadata[:last], newline) + _render(field, values, newline) + metadata[last:]


def _lines_of(field: str) -> re.Pattern[bytes]:
    """Return a pattern that matches each line of a field, with its continuation lines."""
    return re.compile(
        rb"^%s:[^\n]*(?:\n|\Z)(?:[ \t][^\n]*(?:\n|\Z))*" % re.escape(field.encode()), re.MULTILINE | re.IGNORECASE
    )


def edit_requirements(metadata: bytes, edit: Callable[[str], str]) -> bytes:
    """Return METADATA with ``edit`` applied to each ``Requires-Dist``.

    In a folded value, only the first line is edited.
    """

    def edited(match: re.Match[bytes]) -> bytes:
        return match[1] + edit(match[2].decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    end = _headers_end(metadata)
    return _VALUE.sub(edited, metadata[:end]) + metadata[end:]


def set_version(metadata: bytes, version: str) -> bytes:
    """Return METADATA with a new ``Version``."""
    end = _headers_end(metadata)
    return _VERSION.sub(lambda match: match[1] + version.encode(), metadata[:end], count=1) + metadata[end:]


def drop_values(metadata: bytes, field: str, is_dropped: Callable[[str], bool]) -> bytes:
    """Return METADATA without those lines of a field for whose values ``is_dropped`` returns true."""

    def kept(match: re.Match[bytes]) -> bytes:
        value = match[0].partition(b":")[2].decode("utf-8", "surrogateescape")
        return b"" if is_dropped(" ".join(value.split())) else match[0]

    end = _headers_end(metadata)
    return _lines_of(field).sub(kept, metadata[:end]) + metadata[end:]


def set_values(metadata: bytes, field: str, values: Sequence[str]) -> bytes:
    """Return METADATA with exactly these values of a field, in place of its first line or at the end of the headers."""
    end = _headers_end(metadata)
    line = _lines_of(field)
    first = line.search(metadata, 0, end)
    start = first.start() if first else end
    newline = _newline(metadata[:end])
    lines = _render(field, values, newline)
    return _ended(metadata[:start], newline) + lines + line.sub(b"", metadata[start:end]) + metadata[end:]


def _newline(headers: bytes) -> bytes:
    """Return the line ending of the first header line."""
    return b"\r\n" if headers.partition(b"\n")[0].endswith(b"\r") else b"\n"


def _render(field: str, values: Sequence[str], newline: bytes) -> bytes:
    return b"".join(f"{field}: {value}".encode() + newline for value in values)


def _ended(text: bytes, newline: bytes) -> bytes:
    """Return lines with a line ending after the last line, which may lack one in a file without a description."""
    return text if not text or text.endswith(b"\n") else text + newline


def _headers_end(text: bytes) -> int:
    """Return the offset of the empty line that ends the headers, or the end of the text."""
    match = re.search(rb"\n\r?\n", text)
    return match.start() + 1 if match else len(text)


def set_wheel_fields(wheel: bytes, *, tags: Sequence[str] = (), platlib: bool = False) -> bytes:
    """Return WHEEL with ``tags``, if any, as its ``Tag`` lines, and with ``Root-Is-Purelib: false`` for ``platlib``."""
    if platlib:
        wheel = _PURELIB.sub(b"Root-Is-Purelib: false", wheel)
    if not tags:
        return wheel
    match = _TAG.search(wheel)
    newline = _newline(wheel)
    lines = _render("Tag", tags, newline)
    if match is None:
        return wheel.rstrip() + newline + lines
    return wheel[: match.start()] + lines + _TAG.sub(b"", wheel[match.start() :])


SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
"""The entry point groups for which installers create commands."""


OBJECT_REFERENCE = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+)\s*)?(?:\[.*\]\s*)?")
"""An object reference in entry points, ``module:attribute``, with old-style extras."""


def is_function_reference(text: str) -> bool:
    """Return whether an object reference refers to a function, as installers require for commands."""
    match = OBJECT_REFERENCE.fullmatch(text.strip())
    return match is not None and bool(match["attribute"])


class _EntryPoints(configparser.RawConfigParser):
    """A parser that preserves the case of names."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def parse_entry_points(source: str, data: bytes, *, strict: bool = False) -> dict[str, dict[str, str]]:
    """Return a dictionary for each group of entry points, from names to object references (``module:attribute``).

    Raises `InputError` about ``source`` if the text can't be parsed. With ``strict``, also raises `InputError` for a
    repeated group or name, which uv rejects.
    """
    parser = _EntryPoints(delimiters=("=",), strict=strict, interpolation=None, default_section="")
    try:
        parser.read_string(data.decode())
    except (configparser.Error, UnicodeDecodeError) as e:
        found = f"its entry_points.txt can't be read ({type(e).__name__})"
        raise InputError(source, found, remedy="Build or fetch it again.") from e
    return {group: dict(parser.items(group)) for group in parser.sections()}


_AND = " AND "


def expression_fault(text: str) -> str:
    """Return the problem with an SPDX expression, or an empty string if the expression is valid."""
    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression as e:
        return str(e)
    return ""


def join_expressions(expressions: Iterable[str | None]) -> str | None:
    """Return one expression for all parts, with distinct sorted terms, or `None` if a part has no expression.

    A choice (``OR``) is preserved, because the recipients may choose.
    """
    given = list(expressions)
    if not given or not all(given):
        return None
    terms = {term for text in given for term in _terms(text or "")}
    return canonicalize_license_expression(_AND.join(sorted(terms, key=str.lower)))


def _terms(text: str) -> list[str]:
    if "(" in text or " OR " in text:
        return [f"({text})" if " OR " in text and not text.startswith("(") else text]
    return text.split(_AND)


_LICENSES_FOLDER = Version("2.4")

# GPL, LGPL, and AGPL must be whole words: pgplatform.h isn't a license.
_LICENSE_NAME = re.compile(r"licen|copying|notice|copyright|(?<![a-z])[al]?gpl(?![a-z])", re.IGNORECASE)


def is_license_name(name: str) -> bool:
    """Return whether a file's name, without its folder, is typical of a license text or a notice."""
    return _LICENSE_NAME.search(name) is not None


def has_licenses_folder(metadata_version: str) -> bool:
    """Return whether License-File refers to files below ``.dist-info/licenses/`` in this version of core metadata."""
    with suppress(ValueError):
        return Version(metadata_version) >= _LICENSES_FOLDER
    return False


def license_places(dist_info: str, name: str, metadata_version: str) -> tuple[str, ...]:
    """Return the possible paths in a wheel for a file that License-File lists.

    Before version 2.4, builders put the file directly into ``.dist-info``, usually without its folders.
    """
    standard = f"{dist_info}/licenses/{name}"
    if has_licenses_folder(metadata_version):
        return (standard,)
    last = posixpath.basename(name)
    return (f"{dist_info}/{last}", f"{dist_info}/{name}", standard, f"{dist_info}/licenses/{last}")


class CoreMetadata(msgspec.Struct, frozen=True):
    """The fields of METADATA and PKG-INFO that rocwheel writes.

    ``requires`` contains requirement strings with their markers, and ``extras`` contains the extras in those markers.
    ``dynamic`` contains the fields whose values an sdist leaves to its build, such as ``requires-dist``.
    """

    name: str
    version: str
    summary: str = ""
    requires_python: str = ">=3.9"
    license_expression: str | None = None
    license_files: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    project_urls: dict[str, str] = {}
    keywords: tuple[str, ...] = ()
    description: str = ""
    license: str = ""
    """The license field of older tools, which isn't used together with an expression."""


def metadata_files(
    metadata: CoreMetadata,
    tag: str,
    *,
    is_purelib: bool,
    entry_points: Mapping[str, Mapping[str, str]],
    others: Mapping[str, bytes] | None = None,
) -> dict[str, bytes]:
    """Return the files of a wheel's ``.dist-info``, keyed by name, in writing order.

    ``tag`` is the complete compatibility tag of the file name. WHEEL lists each tag that it represents.

    The files are METADATA, WHEEL, the ``others``, and, if there are entry points, ``entry_points.txt``, but not RECORD.
    Raises the same errors as `render_metadata`.
    """
    generator = f"rocwheel {rocwheel.__version__}"
    files = {
        "METADATA": render_metadata(metadata),
        "WHEEL": render_wheel_file(generator, expand_tags(*tag.split("-")), is_purelib=is_purelib),
        **(others or {}),
    }
    if entry_points:
        files["entry_points.txt"] = render_entry_point_groups(entry_points)
    return files


def render_metadata(metadata: CoreMetadata) -> bytes:
    """Return the text of METADATA or PKG-INFO, with each field checked by ``packaging``.

    Raises ``packaging.metadata.InvalidMetadata`` (in a group) if a field violates the standard.
    """
    message = RFC822Message()
    # The fields as ``packaging`` represents them, without empty fields.
    raw: RawMetadata = {"metadata_version": "2.4", "name": metadata.name, "version": metadata.version}
    if metadata.summary:
        raw["summary"] = metadata.summary
    if metadata.keywords:
        raw["keywords"] = list(metadata.keywords)
    if metadata.requires_python:
        raw["requires_python"] = metadata.requires_python
    if metadata.license and not metadata.license_expression:
        raw["license"] = metadata.license
    if metadata.license_expression:
        raw["license_expression"] = metadata.license_expression
    raw["license_files"] = list(metadata.license_files)
    raw["requires_dist"] = list(metadata.requires)
    raw["provides_extra"] = list(metadata.extras)
    raw["dynamic"] = list(metadata.dynamic)
    raw["project_urls"] = dict(metadata.project_urls)
    if metadata.description:
        raw["description"] = metadata.description
        raw["description_content_type"] = "text/markdown"
    for name, value in Metadata.from_raw(raw).as_rfc822().items():
        # uv also compares values of Dynamic case-sensitively.
        message[_header_case(name)] = _header_case(value) if name == "dynamic" else value
    message.set_payload(metadata.description)
    return bytes(message)


def _header_case(name: str) -> str:
    """Return a header name in the spelling of the specification; ``packaging`` writes all names in lowercase."""
    return name.title().replace("-Url", "-URL")


def render_wheel_file(generator: str, tags: tuple[str, ...], *, is_purelib: bool) -> bytes:
    """Return the text of the WHEEL file (wheel format 1.0)."""
    purelib = "true" if is_purelib else "false"
    lines = ["Wheel-Version: 1.0", f"Generator: {generator}", f"Root-Is-Purelib: {purelib}"]
    lines += [f"Tag: {tag}" for tag in tags]
    return "\n".join([*lines, ""]).encode()


def render_entry_point_groups(groups: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the text of ``entry_points.txt``, with sorted groups and names, and a blank line between groups."""
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in sorted(names.items())), ""])
        for group, names in sorted(groups.items())
    )
    return "\n".join(sections).encode()


def wheel_headers(text: bytes) -> list[tuple[str, str]]:
    """Return the headers of WHEEL in order, with lowercase names."""
    # Don't use `str.splitlines`, because values may contain characters that it treats as line endings.
    headers = [line.partition(":") for line in text.decode("utf-8", "replace").split("\n")]
    return [(key.strip().lower(), value.strip()) for key, _, value in headers]
