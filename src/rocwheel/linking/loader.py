"""What glibc's dynamic loader does to find the libraries that an ELF file needs (``ld.so(8)``, ``dlopen(3)``).

It opens everything that an object names as NEEDED before what its dependencies need (breadth first). It looks for a
name:

1. among the objects that are loaded already, by their SONAMEs and by the names that they were opened under;
2. unless the requester has a RUNPATH: in the RPATH of the requester, of the object that had the requester loaded, and
   so on up to the first object (an RPATH next to a RUNPATH doesn't count);
3. in ``LD_LIBRARY_PATH``, which is assumed to be unset;
4. in the requester's RUNPATH, which its dependencies don't inherit;
5. among the system's libraries.

A name with a slash is a path. The loader passes over a file of another machine or class. At a file that is not a
library it stops (`obstacles`); the model stops only the search. In each folder the subfolders for newer processors come
first.

The loader looks for filtees (``DT_FILTER``, ``DT_AUXILIARY``) in the same way. What they need comes before what waits
to be opened. An auxiliary filtee may be absent.
"""

from __future__ import annotations

import enum
import posixpath
from collections import deque
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import Elf
from rocwheel.linking.entries import expand_entry, split_run_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.elf.facts import Filtee

__all__ = ["Disk", "How", "Library", "LoadedObject", "Loader", "LoaderStop", "Search", "SystemLibraries"]


class Library(msgspec.Struct, frozen=True):
    """An ELF file as the loader finds it. All names of one file have one ``identity``, like device and inode."""

    path: str
    identity: str
    elf: Elf | None
    """None for a system library of which only the name is known."""


class LoaderStop(msgspec.Struct, frozen=True):
    """A file at which the loader stops, since it is not a library: its path as it was opened, and the reason."""

    path: str
    reason: str


class Disk(Protocol):
    """Where ELF files are: the file system, or packages that are not installed yet."""

    def find(self, path: str, machine: int) -> Library | LoaderStop | None:
        """Return the ELF file of ``machine`` at an absolute path, which may go through links and ``..``."""


class SystemLibraries(Protocol):
    """The libraries of the operating system."""

    def find(self, name: str, machine: int) -> Library | None:
        """Return the library that the loader's cache and default folders give for ``name``."""


class How(enum.Enum):
    """By which rule a library was found."""

    LOADED = "already loaded"
    RPATH = "RPATH"
    RUNPATH = "RUNPATH"
    PATH = "path"
    SYSTEM = "system"


class LoadedObject(msgspec.Struct, frozen=True):
    """An object of the process; ``loader`` is the index of the one that had it loaded, -1 for the first ones."""

    library: Library
    loader: int

    @property
    def origin(self) -> str:
        """What ``$ORIGIN`` stands for in its run path."""
        return posixpath.dirname(self.library.path)


class Search(msgspec.Struct, frozen=True):
    """One search: which object asked for which name, and what was found, by which rule and entry of a run path."""

    requester: int
    name: str
    found: int | None = None
    how: How | None = None
    entry: str = ""
    """The run path entry, unexpanded."""
    stop: LoaderStop | None = None
    """The file that the search ended at without a library."""
    is_optional: bool = False
    """Whether the requester can do without it."""


class Loader:
    """One process: opens files and collects the objects and the searches in the order of the real one.

    ``subfolders`` of each folder are looked into before the folder itself (`rocwheel.linking.hwcaps`).
    """

    def __init__(self, disk: Disk, system: SystemLibraries, subfolders: Sequence[str] = ()) -> None:
        self.objects: list[LoadedObject] = []
        self.searches: list[Search] = []
        self._disk = disk
        self._system = system
        self._inner = (*(f"/{subfolder}" for subfolder in subfolders), "")
        self._by_name: dict[str, int] = {}
        self._by_identity: dict[str, int] = {}
        self._run_paths: dict[int, tuple[tuple[str, str], ...]] = {}
        self._waiting: deque[int] = deque()

    def load(self, library: Library) -> None:
        """Load a file and everything that it needs, as a program or as the argument of ``dlopen`` with a path."""
        if library.identity not in self._by_identity:
            self._add(library, -1)
            self._load_needed()

    def open_name(self, name: str, requester: int = 0) -> Search:
        """Load the library that an object opens by name, with everything that it needs."""
        search = self._search(name, requester)
        self.searches.append(search)
        self._load_needed()
        return search

    def is_inherited(self, search: Search) -> bool:
        """Return whether an RPATH that the requester inherits leads to the name, whatever was loaded before."""
        found = self.candidates(search.name, search.requester)
        paths = (path for how, _, path in found if how is How.RPATH)
        return any(isinstance(self._disk.find(path, self._machine), Library) for path in paths)

    def candidates(self, name: str, requester: int) -> Iterator[tuple[How, str, str]]:
        """Yield the paths to try, in order, each with the rule and the run path entry that it comes from."""
        if "/" in name:
            yield How.PATH, "", expand_entry(name, self.objects[requester].origin)
            return
        elf = self.objects[requester].library.elf
        if elf is None:
            return
        if elf.run_path_tag is not RunpathTag.RUNPATH:
            for holder in self.ancestors(requester):
                for entry, folder in self._folders(holder, RunpathTag.RPATH):
                    yield How.RPATH, entry, f"{folder}/{name}"
        for entry, folder in self._folders(requester, RunpathTag.RUNPATH):
            yield How.RUNPATH, entry, f"{folder}/{name}"

    def ancestors(self, index: int) -> Iterator[int]:
        """Yield an object, the one that had it loaded, and so on up to the first object of the process."""
        while index >= 0:
            yield index
            index = self.objects[index].loader

    def has_loaded(self, name: str) -> bool:
        """Return whether an object of the process has a name as its SONAME, or was opened under it."""
        return name in self._by_name

    @property
    def missing(self) -> list[Search]:
        """The searches that found nothing, for objects that can't do without the library."""
        return [search for search in self.searches if search.found is None and not search.is_optional]

    def _load_needed(self) -> None:
        while self._waiting:
            requester = self._waiting.popleft()
            elf = self.objects[requester].library.elf
            for name in elf.needed if elf else ():
                self.searches.append(self._search(name, requester))
            self._load_filtees(elf.filtees if elf else (), requester)

    def _load_filtees(self, filtees: Sequence[Filtee], requester: int) -> None:
        opened = []
        for filtee in filtees:
            search = self._search(filtee.name, requester)
            if not (filtee.is_optional and search.stop):
                self.searches.append(msgspec.structs.replace(search, is_optional=filtee.is_optional))
                opened.append(search.found)
        for index in reversed(opened):
            if index is not None and index in self._waiting:
                self._waiting.remove(index)
                self._waiting.appendleft(index)

    def _add(self, library: Library, loader: int) -> int:
        index = len(self.objects)
        self.objects.append(LoadedObject(library, loader))
        self._by_identity[library.identity] = index
        if library.elf is not None and library.elf.soname is not None:
            self._by_name.setdefault(library.elf.soname, index)
        self._waiting.append(index)
        return index

    def _search(self, name: str, requester: int) -> Search:
        if name in self._by_name:
            return Search(requester, name, self._by_name[name], How.LOADED)
        for how, entry, path in self.candidates(name, requester):
            library = self._disk.find(path, self._machine)
            if isinstance(library, LoaderStop):
                return Search(requester, name, None, how, entry, library)
            if library is not None:
                return Search(requester, name, self._take(name, library, requester), how, entry)
        system = None if "/" in name else self._system.find(name, self._machine)
        if system is None:
            return Search(requester, name)
        return Search(requester, name, self._take(name, system, requester), How.SYSTEM)

    def _take(self, name: str, library: Library, requester: int) -> int:
        index = self._by_identity.get(library.identity)
        if index is None:
            index = self._add(library, requester)
        self._by_name.setdefault(name, index)
        return index

    def _folders(self, holder: int, tag: RunpathTag) -> tuple[tuple[str, str], ...]:
        """Return the entries of the run path that counts, if it has this tag, with the folders that they lead to."""
        elf = self.objects[holder].library.elf
        if elf is None or elf.run_path_tag is not tag:
            return ()
        if holder not in self._run_paths:  # everything that a chain of libraries lacks is looked for in all of theirs
            self._run_paths[holder] = self._expanded(elf.run_path, self.objects[holder].origin)
        return self._run_paths[holder]

    def _expanded(self, run_path: str | None, origin: str) -> tuple[tuple[str, str], ...]:
        entries = split_run_path(run_path)
        return tuple((entry, expand_entry(entry, origin) + inner) for entry in entries for inner in self._inner)

    @property
    def _machine(self) -> int:
        elf = self.objects[0].library.elf
        return elf.machine if elf else 0
