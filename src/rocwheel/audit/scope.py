"""The symbols that a file finds once it is loaded: its own, those of all that it needs, and of what is there before."""

from __future__ import annotations

import functools
import posixpath
import re
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.systems import interpreter_symbols, unversioned_symbols
from rocwheel.binary.elf_linkage import Linkage, SymbolReference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.audit.loader import Library
    from rocwheel.audit.subject import Process, Subject
    from rocwheel.audit.tree import InstalledFile

__all__ = ["Scope", "interpreter_files", "is_extension_module", "process_scope", "unmet_references"]


class Scope(msgspec.Struct, frozen=True):
    """What defines symbols in a process, as far as it is known."""

    linkages: tuple[Linkage, ...]
    patterns: tuple[str, ...] = ()
    """Symbols without versions that libraries of the system define."""
    unseen: tuple[str, ...] = ()
    """Libraries that are there, but not at hand: they may define anything."""
    is_partial: bool = False
    """Whether something is missing or not at hand that may define symbols without versions."""

    def has(self, reference: SymbolReference) -> bool:
        """Tell whether a symbol is defined, or may be for all that is known."""
        if any(linkage.defines(reference) for linkage in self.linkages):
            return True
        if reference.version:
            return any(fnmatchcase(reference.library, name) for name in self.unseen)
        return self.is_partial or _expression(self.patterns).match(reference.name) is not None


@functools.cache
def _expression(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return one expression for all patterns: `fnmatch` remembers too few of them."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def unmet_references(linkage: Linkage, scope: Scope) -> list[SymbolReference]:
    """Return the references of a file that nothing in the process defines, sorted."""
    return sorted(reference for reference in linkage.references if not scope.has(reference))


def is_extension_module(file: InstalledFile) -> bool:
    """Tell whether Python imports a file: it has an initialisation function (:pep:`489`)."""
    return file.traits is not None and any(name.startswith(b"PyInit") for name in file.traits.exports)


def process_scope(subject: Subject, process: Process, *, in_interpreter: bool) -> Scope:
    """Return the scope of a file that is loaded, by an interpreter or by itself, and of what the settings put before.

    What a file opens by name is no part of it: ``dlopen`` keeps those symbols to themselves.
    """
    processes = [process, *_loaded_before(subject, process.file)]
    libraries = [member.library for p in processes for member in p.loader.objects[: p.linked]]
    missing = [search.name for p in processes for search in p.loader.missing]
    declared = [name for name in subject.configuration.loaders_of(process.file.path) if not _files(subject, name)]
    unseen = [*(posixpath.basename(lib.path) for lib in libraries if _is_unseen(subject, lib)), *missing, *declared]
    files = (subject.file_of(library) for library in libraries)
    system = [(name, unversioned_symbols(name)) for name in unseen]
    return Scope(
        tuple(file.traits.linkage for file in files if file and file.traits),
        (*(p for _, found in system for p in found or ()), *(interpreter_symbols() if in_interpreter else ())),
        tuple(unseen),
        any(found is None for _, found in system),
    )


def _loaded_before(subject: Subject, file: InstalledFile) -> Iterator[Process]:
    for name in subject.configuration.loaders_of(file.path):
        yield from (subject.start(other) for other in _files(subject, name))


def _files(subject: Subject, pattern: str) -> list[InstalledFile]:
    """Return the programs and libraries at the paths, or of the file names, that a pattern fits."""
    return [f for f in subject.tree.files if f.is_loadable and _fits(f, pattern)]


def _fits(file: InstalledFile, pattern: str) -> bool:
    return fnmatchcase(file.path, pattern) or fnmatchcase(file.name, pattern)


def _is_unseen(subject: Subject, library: Library) -> bool:
    return subject.file_of(library) is None


def interpreter_files(processes: Iterable[Process], subject: Subject) -> frozenset[str]:
    """Return the paths of Python's extension modules and of all that they need: an interpreter is there already.

    Copies of such files count as well: wheels hold no links, so that the other names of a library are copies.
    """
    found = set()
    for process in processes:
        if is_extension_module(process.file):
            files = (subject.file_of(member.library) for member in process.loader.objects)
            found |= {process.file.path, *(file.path for file in files if file)}
    same = {(file.size, file.elf) for file in map(subject.tree.by_path.__getitem__, found)}
    return frozenset(found | {file.path for file in subject.tree.loadable if (file.size, file.elf) in same})
