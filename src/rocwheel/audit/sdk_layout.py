"""Where ROCm's packages keep their public libraries: for packages that use them, without having them at hand."""

from __future__ import annotations

import functools
import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["SdkFolder", "find_sdk_library", "other_versions", "sdk_folders", "short_name"]


class SdkFolder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder of a distribution, relative to site-packages, with the SONAMEs of the libraries in it."""

    distribution: str
    folder: str
    libraries: tuple[str, ...]


class _Layout(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    short_names: dict[str, str]
    folders: tuple[SdkFolder, ...]


@functools.cache
def _layout() -> _Layout:
    return read_table(__package__, "sdk_layout.toml", _Layout)


def sdk_folders() -> tuple[SdkFolder, ...]:
    """Return the layout in the file beside this module, in the order in which run paths name the folders."""
    return _layout().folders


def short_name(soname: str) -> str | None:
    """Return the name by which ``rocm_sdk`` knows a library; none for one that is not public."""
    return _layout().short_names.get(soname.partition(".so")[0])


def find_sdk_library(soname: str) -> SdkFolder | None:
    """Return the folder that holds the library of a SONAME."""
    return next((folder for folder in sdk_folders() if soname in folder.libraries), None)


def other_versions(soname: str, known: Collection[str] = ()) -> list[str]:
    """Return the SONAMEs that differ from ``soname`` in their version alone, of the layout and of ``known``."""
    stem = _stem(soname)
    names = {*known, *(name for folder in sdk_folders() for name in folder.libraries)} - {soname}
    return sorted(name for name in names if stem and _stem(name) == stem)


def _stem(soname: str) -> str:
    head, dot_so, version = posixpath.basename(soname).partition(".so.")
    return head if dot_so and version else ""
