"""Composes core metadata: https://packaging.python.org/specifications/core-metadata/ version 2.4."""

from __future__ import annotations

import re

__all__ = ["field_values", "file_stem", "metadata_text"]


def field_values(text: str, name: str) -> list[str]:
    """Return the values of a field, in order."""
    prefix = f"{name}: "
    header = text.partition("\n\n")[0]
    return [line[len(prefix) :].strip() for line in header.split("\n") if line.startswith(prefix)]


def file_stem(metadata: str) -> str:
    """Return name and version as file names spell them: lower case, runs of ``-_.`` in the name as one ``_``."""
    name, version = (field_values(metadata, field)[0] for field in ("Name", "Version"))
    return f"{re.sub(r'[-_.]+', '_', name).lower()}-{version.replace('-', '_')}"


def metadata_text(pkg_info: str, requires: list[str], extras: dict[str, list[list[str]]]) -> str:
    """Return METADATA: the fields of PKG-INFO except ``Dynamic``, then requirements, then extras, then the body.

    ``extras`` maps an extra to pairs of requirement and marker (empty for none).
    """
    header, separator, body = pkg_info.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in header.removesuffix("\n").split("\n") if not line.startswith("Dynamic:")]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    for extra, pairs in extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {requirement}; {_with_extra(marker, extra)}" for requirement, marker in pairs]
    return "\n".join(lines) + (separator + body if separator else "\n")


def _with_extra(marker: str, extra: str) -> str:
    condition = f"extra == '{extra}'"
    return f"({marker}) and {condition}" if marker else condition
