"""The system that a tree of artifacts is for, told by its programs and libraries."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry
from rocwheel.binary.kind import HEAD_SIZE, is_elf64, is_pe
from rocwheel.binary.platform import LINUX_HOSTS, Platform
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rocwheel.artifacts.catalog import Catalog


_WINDOWS_SUFFIXES = frozenset([".dll", ".exe"])
_DEBUG_SUFFIX = ".debug"
_ONE_BUILD = "Keep the artifacts of each system's build in a folder of their own, and build them one by one."


class PlatformSign(msgspec.Struct, frozen=True):
    """A program or library of an artifact, and the system that it is for."""

    entry: Entry
    platform: Platform

    @property
    def is_sure(self) -> bool:
        """Whether the tree has to be for that system.

        The loader of Windows finds DLLs beside the programs, in ``bin`` folders. Elsewhere DLLs and EXEs are data of
        any system, such as the launchers that pip makes console scripts of.
        """
        return self.platform is Platform.LINUX or is_in_bin(self.entry.path)

    def __str__(self) -> str:
        """Return where the file is."""
        return f"{self.entry.path} of {self.entry.artifact}"


def is_in_bin(path: str) -> bool:
    """Return whether a file stands in a folder called ``bin``, in any case, or below one."""
    return "bin" in PurePosixPath(path.lower()).parts[:-1]


def is_windows_name(path: str) -> bool:
    """Return whether a file is called as DLLs and programs of Windows are."""
    return PurePosixPath(path).suffix.lower() in _WINDOWS_SUFFIXES


def decide_platform(root: str, signs: Iterable[PlatformSign], given: Platform | None = None) -> Platform:
    """Return the system that a tree is for; ``given`` has to be the same, and decides where no file tells.

    Without either, it is Linux. Raises `InputError` for files of several systems, and for another one than ``given``.
    """
    found: dict[Platform, PlatformSign] = {}
    unsure: list[PlatformSign] = []
    for sign in signs:
        if sign.is_sure:
            found.setdefault(sign.platform, sign)
        else:
            unsure.append(sign)
    if len(found) > 1:
        raise _mixed(root, found)
    if not found:
        found = {sign.platform: sign for sign in reversed(unsure)}
    for platform, sign in found.items():
        if given is not None and given is not platform:
            expected = f"{platform}, as {sign} is for {platform.label}"
            option = "--platform"
            raise InputError(option, f"is {given}", expected=expected, remedy="Leave the option out.")
        return platform
    return given or Platform.LINUX


def glance_platform(entries: Iterable[Entry], given: Platform | None = None) -> Platform:
    """Return the system that a tree is for by the first program or library that tells, without looking at all files.

    It is for what comes before the facts are read, by which `decide_platform` decides. Raises `InputError` for a file
    that can't be read.
    """
    sign = _first_sign(entries)
    return sign.platform if sign else given or Platform.LINUX


def check_one_platform(folders: Mapping[Path, Iterable[Entry]]) -> None:
    """Raise `InputError` when folders that are taken together are for several systems, at a glance at each of them.

    Everything else that is wrong with them would follow from that.
    """
    found: dict[Platform, str] = {}
    for folder, entries in folders.items():
        if sign := _first_sign(entries):
            found.setdefault(sign.platform, f"{sign} in {folder}")
    if len(found) > 1:
        raise _mixed(" and ".join(map(str, folders)), found)


def _first_sign(entries: Iterable[Entry]) -> PlatformSign | None:
    for entry in entries:
        if entry.source and entry.source.size >= HEAD_SIZE and not entry.path.endswith(_DEBUG_SUFFIX):
            head = entry.source.part(0, HEAD_SIZE).read()
            if is_pe(head) and is_in_bin(entry.path) and is_windows_name(entry.path):
                return PlatformSign(entry, Platform.WINDOWS)
            if is_elf64(head) and int.from_bytes(head[18:20], "little") in LINUX_HOSTS:
                return PlatformSign(entry, Platform.LINUX)
    return None


def _mixed(root: str, found: Mapping[Platform, object]) -> InputError:
    listed = ", ".join(f"{found[platform]} is for {platform.label}" for platform in Platform)
    return InputError(root, f"mixes two systems: {listed}", expected="artifacts for one", remedy=_ONE_BUILD)


_BIN: Final = re.compile(r"(?<![^/])(?!bin(?:/|$))(?i:bin)(?=/|$)")
"""A whole name in a path that is ``bin`` in another case."""


def with_plain_bin(catalog: Catalog, given: Platform | None = None) -> Catalog:
    """Return a catalogue for Windows with all folders called ``bin``, in whatever case, spelled so; others as they are.

    Recipes, packages and linkers name that folder in lower case. ``given`` is the system that somebody says the tree is
    for. Raises `InputError` for a file that can't be read.
    """
    spelled = tuple(_spell(entry) for entry in catalog.entries)
    if spelled == catalog.entries or glance_platform(catalog.entries, given) is not Platform.WINDOWS:
        return catalog
    entries = sorted(spelled, key=lambda entry: (entry.path, entry.artifact))
    return msgspec.structs.replace(catalog, entries=tuple(entries))


def _spell(entry: Entry) -> Entry:
    folder, slash, name = entry.path.rpartition("/")
    path = _plain(entry.path) if entry.kind is FileKind.DIRECTORY else f"{_plain(folder)}{slash}{name}"
    link = entry.link and _plain(entry.link)
    if (path, link) == (entry.path, entry.link):
        return entry
    return msgspec.structs.replace(entry, path=path, link=link)


def _plain(path: str) -> str:
    return _BIN.sub("bin", path)
