"""Symbols with versions that bind to a library without any: the loader aborts (glibc, ``check_match`` in dl-lookup.c).

A library without a version table satisfies any reference by the symbol's name, unless the reference asks for a version
of that very library: then the versions were lost, and the loader trusts neither file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.linkage import SymbolReference
from rocwheel.installed.tree import InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Process, Subject

__all__ = ["VersionGap", "version_gaps"]


class VersionGap(msgspec.Struct, frozen=True):
    """A reference and the library without versions that the loader finds it in."""

    reference: SymbolReference
    library: InstalledFile


def version_gaps(subject: Subject, process: Process) -> Iterator[VersionGap]:
    """Give the references of a process's file at which the loader aborts."""
    traits = process.file.traits
    names = _names(process)
    members = [subject.file_of(member.library) for member in process.loader.objects[: process.linked]]
    suspects = {i for i, file in enumerate(members) if file and file.traits and not file.traits.linkage.has_versions}
    for reference in traits.linkage.references if traits else ():
        named = names.get(reference.library)
        for index, file in enumerate(members) if named in suspects else ():
            if file is not None and file.traits is not None and file.traits.linkage.defines(reference):
                if index == named:
                    yield VersionGap(reference, file)
                break


def _names(process: Process) -> dict[str, int]:
    """Return the objects that a file and what it needs ask for, by the names that they are asked for."""
    return {search.name: search.found for search in process.loader.searches if search.found is not None}
