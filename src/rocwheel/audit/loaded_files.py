"""Finds the files that a process can load, based on the given packages."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.binary.elf.facts import ElfKind

if TYPE_CHECKING:
    from rocwheel.audit.subject import Process, Subject
    from rocwheel.environment.tree import InstalledFile, Tree

UNLOADED = "; nothing in the given packages loads that file"
"""The note for a finding that has no effect unless something loads the file."""


def loaded_paths(subject: Subject) -> frozenset[str]:
    """Return the paths of programs, of files that Python imports, and of files that these files load.

    A file loads its dependencies and the libraries that its strings mention. Mentions in Python sources are treated in
    the same way. If a package has neither programs nor extension modules, all its libraries are intended for other
    packages. The same applies to libraries in the SDK, in a prefix, and outside of packages.
    """
    processes = {process.file.path: process for process in subject.processes}
    named = _by_mention(subject.tree)
    for_others = _sources_for_others(subject.tree)
    started = (process.file for process in subject.processes)
    waiting = [file.path for file in started if _is_entered(file) or file.distribution in for_others]
    waiting += [path for file in subject.tree.files if file.elf is None for path in _taken(file, named)]
    loaded: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path not in loaded and path in subject.tree.by_path:
            loaded.add(path)
            waiting += _brought(subject, processes.get(path))
            waiting += _taken(subject.tree.by_path[path], named)
    return frozenset(loaded)


def _by_mention(tree: Tree) -> dict[str, list[str]]:
    """Return the paths of libraries, keyed by the strings that can refer to them.

    A string may omit the end of a name.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for name, files in tree.libraries.items():
        for text in {name, name.partition(".")[0], f"{name.partition('.so')[0]}.so"}:
            found[text] += [file.path for file in files]
    return found


def _taken(file: InstalledFile, named: dict[str, list[str]]) -> list[str]:
    """Remove and return the paths that a file's strings mention. Removed paths don't need to be visited again."""
    return [path for text in file.mentions for path in named.pop(text, ())]


def _brought(subject: Subject, process: Process | None) -> list[str]:
    members = process.loader.objects if process else ()
    files = (subject.file_of(member.library) for member in members)
    return [file.path for file in files if file]


def _is_entered(file: InstalledFile) -> bool:
    is_program = file.elf is not None and file.elf.kind is ElfKind.EXECUTABLE
    return is_program or file.has_init_function


def _sources_for_others(tree: Tree) -> set[str]:
    """Return the sources of the distributions that contain only libraries for other packages."""
    entered = set() if tree.is_prefix else {file.distribution for file in tree.files if _is_entered(file)}
    own = {source for source in entered if source in tree.owners and not is_sdk_package(tree.owners[source].name)}
    return {file.distribution for file in tree.files} - own
