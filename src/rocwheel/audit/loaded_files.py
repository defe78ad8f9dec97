"""Which files some process loads, as far as the given packages show."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.binary.elf.facts import ElfKind

if TYPE_CHECKING:
    from rocwheel.audit.subject import Process, Subject
    from rocwheel.environment.tree import InstalledFile, Tree

UNLOADED = "; nothing in the given packages loads that file"
"""What a finding adds that is of no consequence until something loads the file."""


def loaded_paths(subject: Subject) -> frozenset[str]:
    """Return the paths of the files that are programs, that Python imports, and that such files bring in.

    A file brings in what it needs, and what its text names. Python's sources are text that something runs. All
    libraries of a package without programs and extension modules are for others to load; so are those of the SDK, those
    of a prefix, and those of no package.
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
    """Return each text that may stand for a library to the paths that it stands for; a text may lack a name's end."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, files in tree.libraries.items():
        for text in {name, name.partition(".")[0], f"{name.partition('.so')[0]}.so"}:
            found[text] += [file.path for file in files]
    return found


def _taken(file: InstalledFile, named: dict[str, list[str]]) -> list[str]:
    """Take out and return what a file's text names: whatever names it once more adds nothing."""
    return [path for text in file.mentions for path in named.pop(text, ())]


def _brought(subject: Subject, process: Process | None) -> list[str]:
    members = process.loader.objects if process else ()
    files = (subject.file_of(member.library) for member in members)
    return [file.path for file in files if file]


def _is_entered(file: InstalledFile) -> bool:
    is_program = file.elf is not None and file.elf.kind is ElfKind.EXECUTABLE
    return is_program or file.has_init_function


def _sources_for_others(tree: Tree) -> set[str]:
    """Return the sources of the distributions whose libraries all are for others to load."""
    entered = set() if tree.is_prefix else {file.distribution for file in tree.files if _is_entered(file)}
    own = {source for source in entered if source in tree.owners and not is_sdk_package(tree.owners[source].name)}
    return {file.distribution for file in tree.files} - own
