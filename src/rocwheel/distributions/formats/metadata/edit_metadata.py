"""Edits METADATA and WHEEL, and leaves every other byte as it is (RFC 822 headers, core metadata)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "add_requirements",
    "add_values",
    "drop_values",
    "edit_requirements",
    "set_values",
    "set_version",
    "set_wheel_fields",
]

_VALUE = re.compile(rb"(?<=^Requires-Dist:)([ \t]*)([^\r\n]*)", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(rb"^(Version:[ \t]*)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*", re.MULTILINE | re.IGNORECASE)
_TAG = re.compile(rb"^Tag:[^\n]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
_PURELIB = re.compile(rb"^Root-Is-Purelib:[^\r\n]*", re.MULTILINE | re.IGNORECASE)


def add_requirements(metadata: bytes, requirements: Sequence[str]) -> bytes:
    """Return METADATA with more ``Requires-Dist`` lines: after the last one, else at the end of the headers."""
    return add_values(metadata, "Requires-Dist", requirements)


def add_values(metadata: bytes, field: str, values: Sequence[str]) -> bytes:
    """Return METADATA with more lines of a field: after its last one, else at the end of the headers."""
    if not values:
        return metadata
    end = _headers_end(metadata)
    last = max((match.end() for match in _lines_of(field).finditer(metadata, 0, end)), default=end)
    newline = _newline(metadata[:end])
    return _ended(metadata[:last], newline) + _render(field, values, newline) + metadata[last:]


def _lines_of(field: str) -> re.Pattern[bytes]:
    """Return what finds the lines of a field, each with those that it is folded over."""
    return re.compile(
        rb"^%s:[^\n]*(?:\n|\Z)(?:[ \t][^\n]*(?:\n|\Z))*" % re.escape(field.encode()), re.MULTILINE | re.IGNORECASE
    )


def edit_requirements(metadata: bytes, edit: Callable[[str], str]) -> bytes:
    """Return METADATA with what ``edit`` makes of each ``Requires-Dist``; of a folded one, of its first line."""

    def edited(match: re.Match[bytes]) -> bytes:
        return match[1] + edit(match[2].decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    end = _headers_end(metadata)
    return _VALUE.sub(edited, metadata[:end]) + metadata[end:]


def set_version(metadata: bytes, version: str) -> bytes:
    """Return METADATA with another ``Version``."""
    end = _headers_end(metadata)
    return _VERSION.sub(lambda match: match[1] + version.encode(), metadata[:end], count=1) + metadata[end:]


def drop_values(metadata: bytes, field: str, is_dropped: Callable[[str], bool]) -> bytes:
    """Return METADATA without the lines of a field for whose values ``is_dropped`` is true."""

    def kept(match: re.Match[bytes]) -> bytes:
        value = match[0].partition(b":")[2].decode("utf-8", "surrogateescape")
        return b"" if is_dropped(" ".join(value.split())) else match[0]

    end = _headers_end(metadata)
    return _lines_of(field).sub(kept, metadata[:end]) + metadata[end:]


def set_values(metadata: bytes, field: str, values: Sequence[str]) -> bytes:
    """Return METADATA with exactly these values of a field, in the place of its first line or at the headers' end."""
    end = _headers_end(metadata)
    line = _lines_of(field)
    first = line.search(metadata, 0, end)
    start = first.start() if first else end
    newline = _newline(metadata[:end])
    lines = _render(field, values, newline)
    return _ended(metadata[:start], newline) + lines + line.sub(b"", metadata[start:end]) + metadata[end:]


def _newline(headers: bytes) -> bytes:
    """Return what ends the first line of headers."""
    return b"\r\n" if headers.partition(b"\n")[0].endswith(b"\r") else b"\n"


def _render(field: str, values: Sequence[str], newline: bytes) -> bytes:
    """Return a line for each value."""
    return b"".join(f"{field}: {value}".encode() + newline for value in values)


def _ended(text: bytes, newline: bytes) -> bytes:
    """Return lines with the end of the last one, which a file without a description may lack."""
    return text if not text or text.endswith(b"\n") else text + newline


def _headers_end(text: bytes) -> int:
    """Return where the empty line begins that ends the headers, or the text's end."""
    match = re.search(rb"\n\r?\n", text)
    return match.start() + 1 if match else len(text)


def set_wheel_fields(wheel: bytes, *, tags: Sequence[str] = (), platlib: bool = False) -> bytes:
    """Return WHEEL with other ``Tag`` lines, if any are given, and with ``Root-Is-Purelib: false`` for ``platlib``."""
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
