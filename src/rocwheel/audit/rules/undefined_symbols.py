"""Rules about undefined symbols: the libraries that a file loads define them (gABI, "Symbol Table").

A file can use its own symbols, those of all files that it needs, and those of files that were loaded earlier.
"""

from __future__ import annotations

import functools
import operator
import posixpath
import re
from collections import defaultdict
from fnmatch import fnmatchcase, translate
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.loaded_files import UNLOADED, loaded_paths
from rocwheel.binary.elf.symbols import SymbolReference
from rocwheel.core.messages import count, first_of
from rocwheel.environment.known_libraries import (
    defines_by_default,
    interpreter_symbols,
    plugin_symbols,
    unversioned_symbols,
)
from rocwheel.environment.sdk_layout import is_rocm_library
from rocwheel.environment.tree import InstalledFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rocwheel.audit.subject import Process, Subject
    from rocwheel.binary.elf.symbols import Linkage


class Definitions:
    """The symbols that files define, keyed by name.

    A process can have hundreds of files, each with thousands of references. Therefore, this class keeps only the names
    in ``references``.
    """

    def __init__(self, linkages: Mapping[str, Linkage], references: Iterable[SymbolReference]) -> None:
        self._linkages = linkages
        self._holders: dict[bytes, list[str]] = defaultdict(list)
        wanted = {reference.name.encode() for reference in references}
        for path, linkage in linkages.items():
            for name in {definition.partition(b"@")[0] for definition in linkage.definitions} & wanted:
                self._holders[name].append(path)

    def has(self, reference: SymbolReference, paths: Collection[str]) -> bool:
        """Return whether a file in ``paths`` defines the symbol that a reference needs."""
        holders = self._holders.get(reference.name.encode(), ())
        return any(path in paths and self._linkages[path].defines(reference) for path in holders)


class Scope(msgspec.Struct, frozen=True):
    """The known symbol definitions in a process."""

    definitions: Definitions
    paths: frozenset[str]
    """The files in the process whose symbols are known."""
    patterns: tuple[str, ...] = ()
    """Patterns for symbols that system libraries define without versions, and for the interpreter's symbols."""
    unseen: frozenset[str] = frozenset()
    """Loaded libraries that weren't given. They can define any symbol."""
    is_partial: bool = False
    """Whether a possible source of unversioned symbols is missing or wasn't given."""

    def has(self, reference: SymbolReference) -> bool:
        """Return whether a symbol is defined, or whether a library that wasn't given may define it."""
        if reference.version and any(fnmatchcase(reference.library, name) for name in self.unseen):
            return True
        if self.definitions.has(reference, self.paths):
            return True
        return not reference.version and (
            self.is_partial
            or _expression(self.patterns).match(reference.name) is not None
            or any(defines_by_default(name, reference.name) for name in self.unseen)
        )


@functools.cache
def _expression(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return a single expression for all patterns, because the `fnmatch` cache is too small for them."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def unmet_references(linkage: Linkage, scope: Scope) -> list[SymbolReference]:
    """Return a file's references that aren't defined by anything in the process, sorted."""
    return sorted(reference for reference in linkage.references if not scope.has(reference))


def is_of_interpreter(reference: SymbolReference) -> bool:
    """Return whether a symbol is defined by the Python interpreter."""
    return not reference.version and _expression(interpreter_symbols()).match(reference.name) is not None


def _host_symbols(file: InstalledFile) -> tuple[str, ...]:
    """Return patterns for the symbols of the program that loads a plugin, or an empty tuple for other files."""
    definitions = file.traits.linkage.definitions if file.traits else frozenset()
    return tuple(chain.from_iterable(p for entry, p in plugin_symbols().items() if entry.encode() in definitions))


class _Part(msgspec.Struct, frozen=True):
    """The files that one or more processes add to a scope, keyed by path, and the names of other added libraries."""

    paths: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()

    def __or__(self, other: _Part) -> _Part:
        return _Part(self.paths | other.paths, self.unseen | other.unseen)


class Scopes:
    """The scopes of a tree's files. Scopes share parts, each of which is computed only once."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        linkages = {path: file.traits.linkage for path, file in subject.tree.by_path.items() if file.traits}
        # Several files can have the same path, and each has references.
        used = (file.traits.linkage.references for file in subject.tree.files if file.traits)
        self._definitions = Definitions(linkages, chain.from_iterable(used))
        self._in_interpreter = _interpreter_files(subject.processes, subject)
        self._before: dict[tuple[str, ...], _Part] = {}

    def of(self, process: Process) -> Scope:
        """Return the scope of a file that an interpreter or a program loads, including files that the settings list.

        The scope doesn't include files that the file opens by name, because ``dlopen`` doesn't share their symbols.
        """
        part = self._part(process) | self._part_before(self._subject.settings.loaders_of(process.file.path))
        system = [unversioned_symbols(name) for name in part.unseen]
        interpreter = interpreter_symbols() if process.file.path in self._in_interpreter else ()
        patterns = sorted({pattern for found in system for pattern in found or ()} | {*_host_symbols(process.file)})
        is_partial = any(found is None for found in system)
        return Scope(self._definitions, part.paths, (*patterns, *interpreter), part.unseen, is_partial)

    def _part(self, process: Process) -> _Part:
        libraries = [member.library for member in process.loader.objects[: process.linked]]
        files = [(library, self._subject.file_of(library)) for library in libraries]
        unseen = {posixpath.basename(library.path) for library, file in files if file is None}
        missing = {search.name for search in process.loader.missing}
        return _Part(frozenset(file.path for _, file in files if file), frozenset(unseen | missing))

    def _part_before(self, names: tuple[str, ...]) -> _Part:
        """Return the part with the files that are loaded before a file according to the settings.

        Names can be paths.
        """
        if names not in self._before:
            found = {name: _files(self._subject, name) for name in names}
            declared = _Part(unseen=frozenset(name for name in names if not found[name]))
            files = {file.source: file for files in found.values() for file in files}
            parts = (self._part(self._subject.start(file)) for file in files.values())
            self._before[names] = functools.reduce(operator.or_, parts, declared)
        return self._before[names]


def _files(subject: Subject, pattern: str) -> list[InstalledFile]:
    """Return the programs and libraries whose path or file name matches a pattern."""
    return [f for f in subject.tree.files if f.is_loadable and _fits(f, pattern)]


def _fits(file: InstalledFile, pattern: str) -> bool:
    return fnmatchcase(file.path, pattern) or fnmatchcase(file.name, pattern)


def _interpreter_files(processes: Iterable[Process], subject: Subject) -> frozenset[str]:
    """Return the paths of Python's extension modules and their dependencies. An interpreter has already loaded them.

    Copies of such files are also included. Wheels can't contain links, so a library under a second name is a copy.
    """
    found = set()
    for process in processes:
        if process.file.has_init_function:
            files = (subject.file_of(member.library) for member in process.loader.objects)
            found |= {process.file.path, *(file.path for file in files if file)}
    same = {(file.size, file.elf) for file in map(subject.tree.by_path.__getitem__, found)}
    return frozenset(found | {file.path for file in subject.tree.loadable if (file.size, file.elf) in same})


def absent_versioned(subject: Subject, process: Process) -> list[str]:
    """Return the libraries whose versions a file references, even though nothing in the process loads the libraries.

    In this case, glibc aborts (``_dl_check_map_versions`` in dl-version.c). glibc searches for the library's name among
    all loaded files, not only in the file's NEEDED entries. The C library is always loaded, and an interpreter has
    loaded the math library. A library that isn't given may load others, because system libraries can load other system
    libraries.
    """
    needs = process.file.elf.version_needs if process.file.elf else ()
    declared = subject.settings.loaders_of(process.file.path)
    before = [subject.start(file) for name in declared for file in _files(subject, name)]
    loaders = [process.loader, *(other.loader for other in before)]
    if any(loader.missing for loader in loaders) or len(before) < len(declared):
        return []
    unseen = {one.library.identity for loader in loaders for one in loader.objects if one.library.elf is None}
    may_load_more = any(not name.removeprefix("system:").startswith(_OWN_FAMILY) for name in unseen)
    present = (*_ALWAYS_LOADED, *(_WITH_INTERPRETER if process.file.has_init_function else ()))
    return [
        name
        for name in dict.fromkeys(need.library for need in needs)
        if not any(loader.has_loaded(name) for loader in loaders)
        and not any(fnmatchcase(name, known) for known in present)
        and not (may_load_more and (is_rocm_library(name) or subject.system.find(name, 0)))
    ]


_ALWAYS_LOADED = ("libc.so.6", "ld-linux*", "ld64.so.2")
_WITH_INTERPRETER = ("libm.so.6",)
_OWN_FAMILY = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libutil.so", "ld-linux")


class VersionGap(msgspec.Struct, frozen=True):
    """A reference to a symbol version, and the library that defines the symbol without that version."""

    reference: SymbolReference
    library: InstalledFile


def version_gaps(subject: Subject, process: Process) -> Iterator[VersionGap]:
    """Yield the references in a process's file that make the loader abort (glibc, ``check_match`` in dl-lookup.c).

    A library without a version table satisfies any reference with the symbol's name, except references to a version of
    that library. In that case, the loader assumes that the library lost its versions. The loader rejects a library that
    has other versions before it looks up any symbol (``_dl_check_map_versions`` in dl-version.c).
    """
    traits = process.file.traits
    names = {search.name: search.found for search in process.loader.searches if search.found is not None}
    members = [subject.file_of(member.library) for member in process.loader.objects[: process.linked]]
    suspects = {i for i, file in enumerate(members) if file and file.traits and not file.traits.linkage.has_versions}
    for reference in traits.linkage.references if traits else ():
        named = names.get(reference.library)
        library = members[named] if named is not None and named < len(members) else None
        if library is not None and _lacks(library, reference) and _is_defined(members, reference):
            yield VersionGap(reference, library)
        for index, file in enumerate(members) if named in suspects else ():
            if file is not None and file.traits is not None and file.traits.linkage.defines(reference):
                if index == named:
                    yield VersionGap(reference, file)
                break


def _lacks(library: InstalledFile, reference: SymbolReference) -> bool:
    """Return whether a library defines versions, but not the version in a reference."""
    versions = library.traits.linkage.versions if library.traits else ()
    return bool(versions) and reference.version.encode() not in versions


def _is_defined(members: Iterable[InstalledFile | None], reference: SymbolReference) -> bool:
    return any(file.traits.linkage.defines(reference) for file in members if file is not None and file.traits)


def _underlinked(subject: Subject) -> Iterator[Evidence]:
    scopes, loaded = Scopes(subject), loaded_paths(subject)
    for process in subject.processes:
        if process.file.traits is None:
            continue
        unmet = unmet_references(process.file.traits.linkage, scopes.of(process))
        if unmet:
            found = f"has {count(len(unmet), 'undefined symbol')} that no loaded library defines: {_shown(unmet)}"
            is_pythons = all(map(is_of_interpreter, unmet))
            found += _IN_PYTHON if is_pythons else _holder(subject, unmet)
            is_loaded = process.file.path in loaded
            severity = None if is_loaded else Severity.NOTE if is_pythons else Severity.WARNING
            found += "" if is_loaded else UNLOADED
            remedy = _EMBED if is_pythons else ""
            yield Evidence(process.file.source, found, remedy, tuple(map(str, unmet)), severity)


def _undefined(subject: Subject) -> Iterator[Evidence]:
    yield from _underlinked(subject)
    for process in subject.processes:
        gaps: dict[str, list[VersionGap]] = defaultdict(list)
        for gap in version_gaps(subject, process):
            gaps[gap.library.path].append(gap)
        for library, group in gaps.items():
            references = [gap.reference for gap in group]
            elf = group[0].library.elf
            without = (
                "doesn't have that version: the loader rejects the file"
                if elf and elf.version_definitions
                else _UNVERSIONED
            )
            found = f"needs {_shown(references)} from {library}, which {without}"
            yield Evidence(process.file.source, found, _RELINK, (library, *map(str, references)))


def _unneeded(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for library in absent_versioned(subject, process):
            found = f"requires versions of {library}, which no loaded file needs: the loader aborts"
            yield Evidence(process.file.source, found, facts=(library,))


def _shown(unmet: Sequence[SymbolReference]) -> str:
    return first_of(list(map(str, unmet)))


def _holder(subject: Subject, unmet: Sequence[SymbolReference]) -> str:
    """Return a note about the library that defines most of the symbols, or an empty string if no library does."""
    counts = {
        file.path: sum(map(file.traits.linkage.defines, unmet))
        for file in subject.tree.files
        if file.is_loadable and file.traits is not None
    }
    best = max(counts, key=lambda path: counts[path], default="")
    if best and counts[best] == len(unmet):
        return _AFTER.format(best, "it" if len(unmet) == 1 else "them")
    return f" ({counts[best]} defined in {best})" if best and counts[best] else ""


_AFTER = "; the file works only if {}, which defines {}, is loaded first with RTLD_GLOBAL"
_EMBED = "If a program other than Python loads the file, link the file with libpython."
_IN_PYTHON = "; the file works only in a Python process, because the interpreter defines them"
_UNVERSIONED = "has no symbol versions: the loader aborts"
_RELINK = "Link both files again: one of them was built with a version script."

RULES = (
    Rule(
        "undefined-symbol",
        Severity.ERROR,
        "The libraries that a file loads define all of its undefined symbols.",
        (
            "Link the file with the libraries that define the symbols. With -Wl,-z,defs, the linker reports "
            "undefined symbols. If the program that loads the file defines the symbols, add the program under "
            "loaded-by in the settings."
        ),
        _undefined,
    ),
    Rule(
        "version-of-unneeded",
        Severity.ERROR,
        "A file has a NEEDED entry for every library whose symbol versions it uses.",
        (
            "Link the file again without the library, or add the NEEDED entry again. 'patchelf "
            "--remove-needed' doesn't remove the version table."
        ),
        _unneeded,
    ),
)
