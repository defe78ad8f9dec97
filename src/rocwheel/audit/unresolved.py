"""Libraries that audited files don't find, and what may still lead to them."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.messages import first_of
from rocwheel.installed.tree import InstalledFile
from rocwheel.linking.entries import is_origin_relative, split_run_path
from rocwheel.linking.hwcaps import searched_folders
from rocwheel.linking.known.toolkits import driver_of_library
from rocwheel.linking.loader import LoaderStop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject

__all__ = ["UnresolvedLibrary", "find_unresolved", "folders_with", "host_hint", "is_left_to_driver"]


class UnresolvedLibrary(msgspec.Struct, frozen=True):
    """A library that a file doesn't find: the audited file itself, or a file of a context package that it loads."""

    file: InstalledFile
    name: str
    """The library, as the file asks for it."""
    user: InstalledFile
    """The audited file that is loaded."""
    stop: LoaderStop | None = None
    """The file at which the loader stops."""

    @property
    def words(self) -> str:
        """Who needs the library: the beginning of a finding's text."""
        through = "" if self.file is self.user else f"loads {self.file.path}, which "
        return f"{through}needs {self.name}"

    @property
    def facts(self) -> tuple[str, str]:
        """What sets the library apart from others that the user lacks: its name, and the path of who needs it."""
        return self.name, self.file.path


def find_unresolved(subject: Subject, rule: str) -> Iterator[UnresolvedLibrary]:
    """Yield what files don't find, but for the files at which ``rule`` is ignored.

    What a context package doesn't find is yielded only for the first of the others that loads it.
    """
    seen: set[tuple[str, str]] = set()
    for process in subject.processes:
        if subject.settings.is_ignored_at(rule, process.file.path):
            continue
        declared = subject.settings.opened_by(process.file.path)
        missed = (search for search in process.missed if search.name not in declared)
        yield from (UnresolvedLibrary(process.file, search.name, process.file, search.stop) for search in missed)
        for search in process.loader.missing:
            file = subject.file_of(process.loader.objects[search.requester].library)
            if file and subject.tree.is_context(file) and (file.path, search.name) not in seen:
                seen.add((file.path, search.name))
                yield UnresolvedLibrary(file, search.name, process.file, search.stop)


def folders_with(subject: Subject, name: str) -> list[str]:
    """Return the folders of the packages that have a library, those of an assumed SDK included."""
    files = subject.tree.libraries.get(name, ())
    places = searched_folders((file.folder for file in files), subject.settings.cpu_level)
    return [*places] or [posixpath.dirname(path) for path in subject.assumed if posixpath.basename(path) == name]


def is_left_to_driver(subject: Subject, library: UnresolvedLibrary) -> bool:
    """Return whether the machine's driver has to bring a library, and neither the package itself nor one it requires.

    That some other package has a loader of drivers, as ROCm's has one for OpenCL, is of no use to those without ROCm.
    """
    owner = subject.tree.owners.get(library.file.distribution)
    names = {owner.name, *subject.required.get(owner.name, ())} if owner else set()
    holders = {subject.provider_of_file(file) for file in subject.tree.libraries.get(library.name, ())}
    is_assumed = any(posixpath.basename(path) == library.name for path in subject.assumed)
    return bool(driver_of_library(library.name)) and not holders & names and not is_assumed


def host_hint(file: InstalledFile) -> str:
    """Return by which folders of a host the file may still find a library, in brackets; empty if by none."""
    hosts = [entry for entry in split_run_path(file.run_path) if not is_origin_relative(entry)]
    folders = first_of(hosts, more=" or {} more folders")
    return f" (only a host that has it in {folders} finds it)" if hosts else ""
