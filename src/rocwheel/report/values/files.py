"""Packages, and the files in them. All sizes are in bytes."""

from __future__ import annotations

import enum

import msgspec

__all__ = ["HOST", "FileFacts", "Kind", "PackageFacts", "Part", "Totals"]

HOST = ""
"""The target of what is not code for a GPU."""


class Kind(str, enum.Enum):
    """What a package is."""

    WHEEL = "wheel"
    SDIST = "sdist"
    INSTALLED = "installed"
    ARTIFACT = "artifact"
    FILES = "files"
    UNREADABLE = "unreadable"


class Part(msgspec.Struct, frozen=True):
    """What a file has for one GPU target, or for none: the target is `HOST` then."""

    target: str
    size: int
    packed: int | None = None
    """Its share of what the file takes in the wheel, by size: wheels are not packed by target."""


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    package: int
    """The place of its package in the list of these."""
    component: str
    path: str
    size: int
    """Unpacked; 0 for a further name of a file that is counted already."""
    packed: int | None = None
    """In the wheel; none where nothing is packed."""
    parts: tuple[Part, ...] = ()
    """What it has for which target; they add up to the file. Empty for a file that is the host's as a whole."""
    link: str | None = None
    """What it leads to, if it is a symlink."""
    same_as: str = ""
    """The path of the file that it is a further name of (a hard link)."""
    problem: str = ""
    """Why it could not be read."""


class PackageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel, an sdist, an installed distribution, an artifact, or files that belong to none."""

    label: str
    """Its name; where several have the same, that of its file."""
    kind: Kind
    source: str
    version: str = ""
    files: int = 0
    size: int = 0
    """Of its files."""
    packed: int | None = None
    """Of the wheel or sdist itself; none for what is not packed."""
    rest: int | None = None
    """What of ``packed`` no file takes: headers and the directory of a wheel, and all of an sdist."""
    targets: tuple[str, ...] = ()
    """The GPU targets that its files have code for."""
    problem: str = ""
    """Why it could not be read."""


class Totals(msgspec.Struct, frozen=True):
    """Everything together; ``packed`` is none where nothing is packed."""

    packages: int = 0
    files: int = 0
    size: int = 0
    packed: int | None = None
    targets: tuple[str, ...] = ()
    unreadable: int = 0
