"""Which public packages have libraries that are not named after them, and in which folder."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.linking.known.sdk_layout import SdkFolder

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["known_package_folders", "package_of_library"]


class _Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    patterns: tuple[str, ...]
    folder: str = ""
    libraries: tuple[str, ...] = ()


@functools.cache
def _packages() -> dict[str, _Package]:
    return read_table(__package__, "package_libraries.toml", dict[str, _Package])


def package_of_library(name: str, packages: Collection[str]) -> str:
    """Return that one of some packages, given by their normalized names, that brings a library; empty if none does."""
    return next((one for one, known in _packages().items() if one in packages and _fits(name, known.patterns)), "")


@functools.cache
def known_package_folders() -> tuple[SdkFolder, ...]:
    """Return the folders of public packages outside the SDK whose libraries other packages link against."""
    return tuple(SdkFolder(name, one.folder, one.libraries) for name, one in _packages().items() if one.folder)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
