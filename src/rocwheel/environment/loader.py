"""Models how glibc's dynamic loader finds libraries (``ld.so(8)``), on disk and in descriptions of trees.

In the folders of a run path, the loader uses the first file with the requested name. If that file is for another
machine or class, the search continues. If the file isn't a library, loading fails.

The loader opens all NEEDED libraries of an object before their dependencies (breadth first). It looks up a name in the
following order:

1. the objects that are already loaded, by their SONAMEs and by the names under which they were opened
2. if the requester has no RUNPATH: the RPATH of the requester, of the object that loaded the requester, and so on up to
   the first object (an RPATH next to a RUNPATH doesn't count)
3. ``LD_LIBRARY_PATH``, which is assumed to be unset
4. the requester's RUNPATH, which its dependencies don't inherit
5. the system's libraries

A name with a slash is a path. The loader skips a file for another machine or class. It stops with an error at a file
that isn't a library (`obstacles`). In that case, the model only stops the search, without an error. In each folder, the
subfolders for newer processors come first.

The loader searches for filtees (``DT_FILTER``, ``DT_AUXILIARY``) in the same way. Their dependencies are loaded before
other waiting objects. Auxiliary filtees are optional.
"""

from __future__ import annotations

import enum
import math
import posixpath
import struct
from collections import deque
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import Elf
from rocwheel.binary.kind import ELF_MAGIC
from rocwheel.core.symlinks import Symlinks, Walk, WalkEnd
from rocwheel.environment.installed_paths import PREFIX, SITE, InstalledLayout
from rocwheel.environment.run_path_entries import expand_entry, split_run_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rocwheel.binary.elf.facts import Filtee


_HEADER = struct.Struct("<4s12sHHIQQQIHH")
"""The ELF header up to ``e_phentsize``."""
_HEADER_SIZE = 64
_CLASS, _DATA, _VERSION, _OSABI, _ABI_VERSION = range(5)
_64_BITS, _LITTLE_ENDIAN, _CURRENT = 2, 1, 1
_SYSTEM_V, _GNU = 0, 3
_EXECUTABLE, _SHARED_OBJECT = 2, 3
_PROGRAM_HEADER_SIZE = 56


class Obstacle(msgspec.Struct, frozen=True):
    """The reason why a file isn't a library, as worded by the loader.

    With ``machine``, the reason applies only to objects for that machine.
    """

    reason: str
    machine: int | None = None

    def stops(self, machine: int) -> bool:
        """Return whether the loader stops at the file when it searches for a library for ``machine``."""
        return self.machine in {None, machine}


CIRCLE = Obstacle("Too many levels of symbolic links")
FOLDER = Obstacle("cannot read file data: Is a directory")


def find_obstacle(head: bytes) -> Obstacle | None:
    """Return the reason that the loader stops at a file with these first 64 bytes.

    Return `None` if the loader loads or skips the file.
    """
    if len(head) < _HEADER_SIZE:
        return Obstacle("file too short")
    magic, ident, kind, machine, version, _, _, _, _, _, header_size = _HEADER.unpack_from(head)
    if magic != ELF_MAGIC:
        return Obstacle("invalid ELF header")
    if ident[_CLASS] != _64_BITS:
        return None
    if version != _CURRENT:
        return Obstacle("ELF file version does not match current one")
    reason = _fault_of_ident(ident) or _fault_of_header(kind, header_size)
    return Obstacle(reason, machine) if reason else None


def _fault_of_ident(ident: bytes) -> str:
    if ident[_DATA] != _LITTLE_ENDIAN:
        return "ELF file data encoding not little-endian"
    if ident[_VERSION] != _CURRENT:
        return "ELF file version ident does not match current one"
    if ident[_OSABI] not in {_SYSTEM_V, _GNU}:
        return "ELF file OS ABI invalid"
    # Each glibc release defines the meaning and the number of GNU's own versions.
    if ident[_OSABI] == _SYSTEM_V and ident[_ABI_VERSION]:
        return "ELF file ABI version invalid"
    return "nonzero padding in e_ident" if any(ident[_ABI_VERSION + 1 :]) else ""


def _fault_of_header(kind: int, header_size: int) -> str:
    if kind not in {_EXECUTABLE, _SHARED_OBJECT}:
        return "only ET_DYN and ET_EXEC can be loaded"
    if header_size != _PROGRAM_HEADER_SIZE:
        return "ELF file's phentsize not the expected size"
    return "cannot dynamically load executable" if kind == _EXECUTABLE else ""


class Library(msgspec.Struct, frozen=True):
    """An ELF file as the loader finds it.

    All names of a file share one ``identity``, like a device and an inode number.
    """

    path: str
    identity: str
    elf: Elf | None
    """The file's data, or `None` for a system library that is known only by name."""


class LoaderStop(msgspec.Struct, frozen=True):
    """A file that stops the loader because it isn't a library: the opened path, and the reason."""

    path: str
    reason: str


class Disk(Protocol):
    """A source of ELF files: the file system, or packages that aren't installed yet."""

    def find(self, path: str, machine: int) -> Library | LoaderStop | None:
        """Return the ELF file for ``machine`` at an absolute path. The path may contain symbolic links and ``..``."""

    def has_name(self, name: str) -> bool:
        """Return whether a folder may contain a file with this name.

        If it can't, a search for the file needs no lookups.
        """


class SystemLibraries(Protocol):
    """The libraries of the operating system."""

    def find(self, name: str, machine: int) -> Library | None:
        """Return the library for ``name`` in the loader's cache and default folders."""


class How(enum.Enum):
    """The rule that led to a library."""

    LOADED = "already loaded"
    RPATH = "RPATH"
    RUNPATH = "RUNPATH"
    PATH = "path"
    SYSTEM = "system"


class LoadedObject(msgspec.Struct, frozen=True):
    """An object in the process. ``loader`` is the index of the object that loaded it, or -1 for the first objects."""

    library: Library
    loader: int

    @property
    def origin(self) -> str:
        """The value of ``$ORIGIN`` in the object's run path."""
        return posixpath.dirname(self.library.path)


class Search(msgspec.Struct, frozen=True):
    """A search: the requester, the requested name, and the result with its rule and run path entry."""

    requester: int
    name: str
    found: int | None = None
    how: How | None = None
    entry: str = ""
    """The run path entry before the expansion of ``$ORIGIN``."""
    stop: LoaderStop | None = None
    """The file that stopped the search before a library was found."""
    is_optional: bool = False
    """Whether the requester works without the library."""


class LookupLimitError(Exception):
    """An error for a process that needs more lookups than its limit allows."""


class Loader:
    """Models one process: opens files, and records the objects and searches in the loader's order.

    ``subfolders`` of each folder are searched before the folder itself (`rocwheel.environment.run_path_entries`).
    Raises `LookupLimitError` if ``most`` lookups aren't enough.
    """

    def __init__(
        self, disk: Disk, system: SystemLibraries, subfolders: Sequence[str] = (), most: float = math.inf
    ) -> None:
        self.objects: list[LoadedObject] = []
        self.searches: list[Search] = []
        self.lookups = 0
        """The number of searches plus the number of paths that they tried."""
        self._most = most
        self._disk = disk
        self._system = system
        self._inner = (*(f"/{subfolder}" for subfolder in subfolders), "")
        self._by_name: dict[str, int] = {}
        self._by_identity: dict[str, int] = {}
        self._scopes: dict[KnownFolders, dict[int, dict[str, str]]] = {}
        self._waiting: deque[int] = deque()

    def load(self, library: Library) -> None:
        """Load a file and all its dependencies, as a program or as the argument of ``dlopen`` with a path."""
        if library.identity not in self._by_identity:
            self._add(library, -1)
            self._load_needed()

    def open_name(self, name: str, requester: int = 0) -> Search:
        """Load the library that an object opens by name, with all its dependencies."""
        search = self._search(name, requester)
        self.searches.append(search)
        self._load_needed()
        return search

    def is_inherited(self, search: Search) -> bool:
        """Return whether an inherited RPATH points to the name, regardless of earlier loads."""
        if "/" not in search.name and not self._disk.has_name(search.name):
            return False
        found = self.candidates(search.name, search.requester)
        paths = (path for how, _, path in found if how is How.RPATH)
        return any(isinstance(self._disk.find(path, self._machine), Library) for path in paths)

    def candidates(self, name: str, requester: int) -> Iterator[tuple[How, str, str]]:
        """Yield the paths that the loader tries, in order, each with its rule and run path entry."""
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

    def folders(self, requester: int, known: KnownFolders, *, inherited: bool = False) -> Mapping[str, str]:
        """Return the folders of the entries from `candidates` that ``known`` describes, in order, with their words.

        With ``inherited``, these are only the folders of RPATHs. Objects with the same RPATHs share the result.
        """
        elf = self.objects[requester].library.elf
        if elf is None:
            return {}
        if elf.run_path_tag is RunpathTag.RUNPATH:
            return {} if inherited else self._own_folders(requester, known)
        scopes, waiting, holder = self._scopes.setdefault(known, {}), list[int](), requester
        while holder >= 0 and holder not in scopes:
            waiting.append(holder)
            holder = self.objects[holder].loader
        found = scopes[holder] if holder >= 0 else {}
        for holder in reversed(waiting):
            own = self._own_folders(holder, known) if self._has_rpath(holder) else {}
            if list(own.items()) != list(islice(found.items(), len(own))):
                found = {**own, **found, **own}
            scopes[holder] = found
            if len(scopes) > _MOST_SCOPES:
                del scopes[next(iter(scopes))]
        return found

    def _has_rpath(self, holder: int) -> bool:
        elf = self.objects[holder].library.elf
        return elf is not None and elf.run_path_tag is RunpathTag.RPATH

    def _own_folders(self, holder: int, known: KnownFolders) -> dict[str, str]:
        """Return the described folders of an object's own run path."""
        held = self.objects[holder]
        return known.of(held.library.elf.run_path if held.library.elf else None, held.origin, self._inner)

    def ancestors(self, index: int) -> Iterator[int]:
        """Yield an object, the object that loaded it, and so on up to the first object of the process."""
        while index >= 0:
            yield index
            index = self.objects[index].loader

    def has_loaded(self, name: str) -> bool:
        """Return whether a loaded object has this name as its SONAME, or was opened under this name."""
        return name in self._by_name

    @property
    def missing(self) -> list[Search]:
        """The failed searches for libraries that their requesters need."""
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
        self.lookups += 1
        if self.lookups > self._most:
            raise LookupLimitError
        if name in self._by_name:
            return Search(requester, name, self._by_name[name], How.LOADED)
        is_findable = "/" in name or self._disk.has_name(name)
        for how, entry, path in self.candidates(name, requester) if is_findable else ():
            self.lookups += 1
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
        """Return the effective run path entries if they have this tag, with their folders."""
        elf = self.objects[holder].library.elf
        if elf is None or elf.run_path_tag is not tag:
            return ()
        return _expanded(elf.run_path, self.objects[holder].origin, self._inner)

    @property
    def _machine(self) -> int:
        elf = self.objects[0].library.elf
        return elf.machine if elf else 0


_MOST_SCOPES = 64
"""The number of objects whose inherited folders are cached for a process. Objects are loaded breadth first."""


@lru_cache(maxsize=1 << 10)
def _expanded(run_path: str | None, origin: str, inner: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the entries of a run path with their folders. All processes that load a file share the result."""
    entries = split_run_path(run_path)
    return tuple((entry, expand_entry(entry, origin) + below) for entry in entries for below in inner)


class KnownFolders:
    """The described folders of run paths, which all processes share.

    ``describe`` returns the folder of an entry with a description, or `None` for an entry that doesn't count.
    """

    def __init__(self, describe: Callable[[str, str], tuple[str, str] | None]) -> None:
        self._describe = describe
        self._known: dict[tuple[str | None, str, tuple[str, ...]], dict[str, str]] = {}

    def of(self, run_path: str | None, origin: str, inner: tuple[str, ...]) -> dict[str, str]:
        """Return the folders of a run path in a file in ``origin``.

        If several entries have the same folder, the first one counts.
        """
        key = (run_path, origin, inner)
        if key not in self._known:
            described = (self._describe(entry, folder) for entry, folder in _expanded(run_path, origin, inner))
            found = self._known[key] = dict[str, str]()
            for one in described:
                if one is not None:
                    found.setdefault(*one)
        return self._known[key]


_UNKNOWN = InstalledLayout()


class TreeDisk:
    """Described files, keyed by path relative to site-packages, and the raw texts of symbolic links.

    Libraries at ``assumed`` paths match every machine, because nothing else is known about them. ``obstacles`` are the
    files at which the loader stops, keyed by path. The ``layout`` defines the name of site-packages in entries.
    """

    def __init__(
        self,
        files: Mapping[str, Elf],
        links: Mapping[str, str],
        assumed: Iterable[str] = (),
        obstacles: Mapping[str, Obstacle] | None = None,
        layout: InstalledLayout = _UNKNOWN,
    ) -> None:
        self._files = {_absolute(path): elf for path, elf in files.items()}
        self._links = {_absolute(path): text for path, text in links.items()}
        if layout.site:
            self._links[posixpath.join(PREFIX, layout.site)] = SITE
        self._assumed = frozenset(map(_absolute, assumed))
        self._obstacles = {_absolute(path): obstacle for path, obstacle in (obstacles or {}).items()}
        paths = (*self._files, *self._links, *self._assumed, *self._obstacles, posixpath.join(SITE, "x"))
        self._folders = {folder for path in paths for folder in _parents(path)}
        self._names = {posixpath.basename(path) for path in (*paths, *self._folders)} | {"", ".", ".."}
        self._symlinks = Symlinks(self._links.get, self._folders.__contains__, root="/")
        self._walks: dict[str, Walk] = {}

    def find(self, path: str, machine: int) -> Library | LoaderStop | None:
        """Return the ELF file for ``machine`` at an absolute path, or the file at this path that stops the loader."""
        walk = self._walk(path)
        if walk.end is WalkEnd.LOOP:
            return LoaderStop(path, CIRCLE.reason) if self.is_folder(posixpath.dirname(path)) else None
        if walk.end is not WalkEnd.REACHED:
            return None
        real = walk.path
        if real in self._assumed:
            return Library(path, real, None)
        obstacle = FOLDER if real in self._folders else self._obstacles.get(real)
        if obstacle is not None and obstacle.stops(machine):
            return LoaderStop(path, obstacle.reason)
        elf = self._files.get(real)
        return Library(path, real, elf) if elf and elf.machine == machine else None

    def has_name(self, name: str) -> bool:
        """Return whether a file, a folder, or a symbolic link has this name."""
        return name in self._names

    def open(self, path: str) -> Library | None:
        """Return the ELF file at an absolute path, for any machine."""
        real = self.resolve(path)
        return Library(path, real, self._files[real]) if real in self._files else None

    def is_folder(self, path: str) -> bool:
        """Return whether an absolute path is a folder."""
        return self.resolve(path) in self._folders

    def resolve(self, path: str) -> str | None:
        """Follow symbolic links and ``..`` in the same way as a kernel: each component must exist."""
        walk = self._symlinks.follow(path)
        return walk.path if walk.end is WalkEnd.REACHED and self._exists(walk.path) else None

    def _walk(self, path: str) -> Walk:
        """Follow a path to a file. Folders are cached, because many names are looked up in the same folder."""
        folder, _, name = path.rpartition("/")
        around = self._walks.get(folder)
        if around is None:
            around = self._walks[folder] = self._symlinks.follow(f"{folder}/")
        real = f"{around.path.rstrip('/')}/{name}"
        if name in {"", ".", ".."} or real in self._links:
            return self._symlinks.follow(path)
        return Walk(around.end, real)

    def _exists(self, path: str) -> bool:
        return any(path in known for known in (self._folders, self._files, self._assumed, self._obstacles))


def place_of(library: Library) -> str:
    """Return the path of a library from `TreeDisk` relative to site-packages, or the identity of any other library."""
    inside = library.identity.removeprefix(f"{SITE}/")
    return posixpath.relpath(inside, SITE) if inside.startswith("/") else inside


def _absolute(path: str) -> str:
    return posixpath.normpath(posixpath.join(SITE, path))


def _parents(path: str) -> list[str]:
    parents = [posixpath.dirname(path)]
    while parents[-1] != "/":
        parents.append(posixpath.dirname(parents[-1]))
    return parents
