"""Edits METADATA and WHEEL, and leaves every other byte as it is (RFC 822 headers, core metadata)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["add_requirements", "set_wheel_fields"]

_REQUIRES = re.compile(rb"^Requires-Dist:[^\n]*\n(?:[ \t][^\n]*\n)*", re.MULTILINE | re.IGNORECASE)
_TAG = re.compile(rb"^Tag:[^\n]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
_PURELIB = re.compile(rb"^Root-Is-Purelib:[^\r\n]*", re.MULTILINE | re.IGNORECASE)


def add_requirements(metadata: bytes, requirements: Sequence[str]) -> bytes:
    """Return METADATA with more ``Requires-Dist`` lines: after the last one, else at the end of the headers."""
    if not requirements:
        return metadata
    end = _headers_end(metadata)
    newline = b"\r\n" if b"\r\n" in metadata[:end] else b"\n"
    last = max((match.end() for match in _REQUIRES.finditer(metadata, 0, end)), default=end)
    head = metadata[:last] if metadata[:last].endswith(b"\n") else metadata[:last] + newline
    lines = b"".join(b"Requires-Dist: " + requirement.encode() + newline for requirement in requirements)
    return head + lines + metadata[last:]


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
    lines = b"".join(f"Tag: {tag}\n".encode() for tag in tags)
    if match is None:
        return wheel.rstrip() + b"\n" + lines
    return wheel[: match.start()] + lines + _TAG.sub(b"", wheel[match.start() :])
