"""Lists the folders of the public libraries in ROCm's packages, for use without the packages."""

from __future__ import annotations

import functools
import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.sdk_names import family_module
from rocwheel.core.decoding import read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_LONGEST = 9


class SdkFolder(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A folder in a distribution, relative to site-packages, with the SONAMEs of its libraries."""

    distribution: str
    folder: str
    libraries: tuple[str, ...]
    per_family: bool = False
    """Whether an SDK in the per-family layout has this distribution and folder for each target family."""

    def of_family(self, family: str) -> str:
        """Return the folder in the packages for ``family``, or in the neutral package if ``family`` is empty."""
        top, _, rest = self.folder.partition("/")
        return f"{family_module(top, family)}/{rest}" if self.per_family and family else self.folder


class SdkSelector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The distribution whose extras select the other SDK packages, and its requirements with and without extras."""

    distribution: str
    requires: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]


class _Layout(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    releases: tuple[int, ...]
    of_release: dict[str, tuple[int, ...]]
    short_names: dict[str, str]
    selector: SdkSelector
    folders: tuple[SdkFolder, ...]


@functools.cache
def _layout() -> _Layout:
    return read_table(__package__, "sdk_layout.toml", _Layout)


def sdk_selector() -> SdkSelector:
    """Return the selector from the table next to this module."""
    return _layout().selector


def sdk_folders() -> tuple[SdkFolder, ...]:
    """Return the layout from the table next to this module, in the folders' order in run paths."""
    return _layout().folders


def sdk_search_folders(family: str = "") -> tuple[str, ...]:
    """Return the folders in site-packages that run paths of a framework's libraries may point to, in order.

    ``family`` selects the packages of a target family, for an SDK in the per-family layout.
    """
    return tuple(folder.of_family(family) for folder in sdk_folders())


def layout_releases(names: Iterable[str] = ()) -> tuple[int, ...]:
    """Return the major ROCm releases with a known layout that contain all layout libraries in ``names``."""
    known = [_layout().of_release.get(name, _layout().releases) for name in names]
    return tuple(release for release in _layout().releases if all(release in found for found in known))


def is_newer_than_layout(soname: str) -> bool:
    """Return whether a SONAME belongs to a later version of a layout library than the versions in known releases."""
    version = _version(soname)
    others = [known for name in other_versions(soname) if (known := _version(name)) is not None]
    return version is not None and bool(others) and all(version > other for other in others)


def _version(soname: str) -> int | None:
    """Return the first number of the version in a SONAME. It changes when programs must be linked again."""
    number = soname.partition(".so.")[2].partition(".")[0]
    return int(number) if number.isdecimal() and len(number) <= _LONGEST else None


def short_name(soname: str) -> str | None:
    """Return a library's name in ``rocm_sdk``, or `None` for a library that isn't public."""
    return _layout().short_names.get(soname.partition(".so")[0])


def find_sdk_library(soname: str) -> SdkFolder | None:
    """Return the folder that contains the library with a SONAME, or `None` if there is no such folder."""
    return next((folder for folder in sdk_folders() if soname in folder.libraries), None)


def is_rocm_library(name: str) -> bool:
    """Return whether a name belongs to a layout library, with any version or without a version (``libhipfft.so``)."""
    return name.partition(".so")[0] in _stems()


@functools.cache
def _stems() -> frozenset[str]:
    return frozenset(name.partition(".so")[0] for folder in sdk_folders() for name in folder.libraries)


def other_versions(soname: str, known: Collection[str] = ()) -> list[str]:
    """Return the SONAMEs in the layout and in ``known`` that differ from ``soname`` only in their version."""
    stem = _stem(soname)
    names = {*known, *(name for folder in sdk_folders() for name in folder.libraries)} - {soname}
    return sorted(name for name in names if stem and _stem(name) == stem)


def _stem(soname: str) -> str:
    head, dot_so, version = posixpath.basename(soname).partition(".so.")
    return head if dot_so and version else ""
