"""Which file loads which, and what the audit finds."""

from __future__ import annotations

import msgspec

__all__ = ["FoundFault", "Graph", "Load", "Loading", "LostCode"]


class Load(msgspec.Struct, frozen=True):
    """A library that a file loads: the name that it asks for, and what the loader finds.

    ``path`` and ``package`` are empty for a library of the system, ``package`` for a file of no distribution.
    """

    name: str
    path: str = ""
    package: str = ""
    is_missing: bool = False


class Loading(msgspec.Struct, frozen=True):
    """A library or program, and what it needs by itself, in its order."""

    path: str
    package: str
    is_library: bool
    loads: tuple[Load, ...]


class FoundFault(msgspec.Struct, frozen=True):
    """A finding of the audit; ``path`` is empty for one about a package as a whole."""

    rule: str
    severity: str
    package: str
    path: str
    found: str
    remedy: str


class LostCode(msgspec.Struct, frozen=True):
    """Targets that a library has code for and finds nothing for: in its archives, or in the folder that it opens."""

    path: str
    package: str
    targets: tuple[str, ...]


class Graph(msgspec.Struct, frozen=True):
    """Which file loads which, and what the audit finds."""

    files: tuple[Loading, ...] = ()
    findings: tuple[FoundFault, ...] = ()
    problem: str = ""
    """Why there is none."""
    lost: tuple[LostCode, ...] = ()
