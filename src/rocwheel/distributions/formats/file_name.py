"""The names of wheels and sdists, with the label of a variant, if there is one."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from packaging.utils import (
    canonicalize_version,
    is_normalized_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.distributions.variants.label import split_label

__all__ = ["FileName", "is_distribution_name", "parse_file_name", "parse_path"]

_TAG = re.compile(r"\w+-\w+-\w+", re.ASCII)


class FileName(msgspec.Struct, frozen=True):
    """What the name of a distribution says."""

    project: str
    """Normalised."""
    version: Version
    identity: str
    """As that of an `IndexEntry`."""
    label: str = ""
    """Of a variant wheel."""


def is_distribution_name(name: str) -> bool:
    """Return whether a wheel or sdist may be called so."""
    try:
        return bool(parse_path(Path(name)))
    except InputError:
        return False


def parse_file_name(name: str) -> FileName:
    """Return what the name of a wheel or sdist says; raise `InputError` for another name, and for a path."""
    if "/" in name:
        raise _bad_name(Path(name))
    return parse_path(Path(name))


def parse_path(path: Path) -> FileName:
    """Return what the name of a file says; raise `InputError` about the path for another name."""
    plain, label = split_label(path.name)
    try:
        if path.name.endswith(".whl"):
            project, version, build, tags = parse_wheel_filename(plain)
            parts = (*map(str, build), *sorted(map(str, tags)), *filter(None, (label,)))
            identity = " ".join([canonicalize_version(version), *parts])
        else:
            project, version = parse_sdist_filename(path.name)
            identity = f"{canonicalize_version(version)} sdist"
            tags = frozenset()
    except ValueError as e:
        raise _bad_name(path) from e
    if not is_normalized_name(project) or not all(_TAG.fullmatch(str(tag)) for tag in tags):
        raise _bad_name(path)
    return FileName(project, version, identity, label)


def _bad_name(path: Path) -> InputError:
    expected = "NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz"
    return InputError(path, "not the name of a distribution", expected=expected, remedy="Rename it, or remove it.")
