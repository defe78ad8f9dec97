"""Compares the libraries that files find before and after a repair, and detects lost libraries.

Packages share some folders, such as ``nvidia/cu13/lib``. On a user's machine, these folders can contain additional
files.

It is certain that a file finds a library in the wheel itself, in a given package that the wheel requires, or among the
libraries that every system has. Any other folder in a run path might contain the library: a host folder such as
``/opt/rocm/lib``, or the folder of a package that isn't given, isn't required, or shares its folder.

Two kinds of folders contain no other libraries: folders of entries that provably lead to no file
(`rocwheel.environment.run_path_entries.leads_nowhere`), and folders that belong to only one given package.

If a process loads a library from a different location than before, it can lose libraries in two ways. The new copy
might not find its dependencies. Other files may have found libraries only because the old copy had loaded them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakKeyDictionary, proxy

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.audit.subject import Process, Subject
from rocwheel.audit.wheel_toolkits import OpenedNames, Toolkit
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.installed_paths import SITE, path_in_package
from rocwheel.environment.known_libraries import is_toolkit_folder
from rocwheel.environment.loader import How, KnownFolders, LoaderStop, place_of
from rocwheel.environment.run_path_entries import is_origin_relative, leads_nowhere
from rocwheel.environment.sdk_layout import find_sdk_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.environment.loader import Search
    from rocwheel.environment.tree import Distribution, InstalledFile

    Asked: TypeAlias = tuple[str, str]
    from collections.abc import Callable

    from rocwheel.environment.loader import Library


_LIBS = ".libs"


def is_own_folder(subject: Subject, folder: str) -> bool:
    """Return whether an absolute folder belongs to only one distribution.

    Such a folder is in a package with a non-empty ``__init__.py``, or is the ``NAME.libs`` folder that auditwheel
    creates for a wheel ``NAME``. Distributions that add to each other's packages share an empty ``__init__.py``, as in
    ``nvidia``.
    """
    top = folder.removeprefix(f"{SITE}/").partition("/")[0]
    owners = subject.tree.owners_of_tops.get(top, frozenset())
    module = subject.tree.by_path.get(f"{top}/__init__.py")
    is_package = module is not None and module.size > 0
    is_named = top.endswith(_LIBS) and canonicalize_name(top.removesuffix(_LIBS)) in owners
    return len(owners) == 1 and (is_package or is_named) and subject.disk.is_folder(folder)


def has_nothing_to_open(subject: Subject, folder: str, opener: str) -> bool:
    """Return whether the file at ``opener`` can't open any library by name in the folder of a distribution.

    Python opens imported modules by their full paths.
    """
    held = (file for file in subject.tree.files if f"{SITE}/{file.folder}" == folder)
    openable = (one for one in held if one.is_loadable and one.path != opener and not one.has_init_function)
    return is_own_folder(subject, folder) and not any(True for _ in openable)


_HWCAPS = "/glibc-hwcaps/"
_REMEMBERED = 1 << 14
"""The size of the folder cache. In a long chain, each library searches the same folders for each missing name."""


class CandidateFolders(msgspec.Struct, frozen=True):
    """The folders in which an object in a process may find a library."""

    is_sure: bool
    folders: Mapping[str, str]
    """Absolute folders that may contain the library, in the loader's order, each with its description (`folder_words`).

    Folders after a folder that definitely contains the library don't count.
    """

    def keep(self, before: CandidateFolders) -> bool:
        """Return whether all libraries that were found before are still found, regardless of their folders."""
        return self.is_sure or (not before.is_sure and before.folders.keys() <= self.folders.keys())


def candidate_folders(
    subject: Subject, process: Process, requester: int, name: str, sure: Collection[str]
) -> CandidateFolders:
    """Return the folders in which an object in a process may find a library, regardless of earlier loads.

    ``sure`` contains the names of the distributions that are definitely installed with the wheel.
    """
    elf = process.file.elf
    machine = elf.machine if elf else 0
    if "/" not in name and not subject.disk.has_name(name):
        anywhere = process.loader.folders(requester, _known_to(subject).possible)
        return CandidateFolders(subject.system.find(name, machine) is not None, anywhere)
    folders: dict[str, str] = {}
    for how, entry, path in process.loader.candidates(name, requester):
        found = subject.disk.find(path, machine)
        if isinstance(found, LoaderStop):
            return CandidateFolders(is_sure=False, folders=folders)
        if found is not None and (how is How.PATH or subject.provider_of(found) in sure):
            return CandidateFolders(is_sure=True, folders=folders)
        folder = _folder(path)
        if folder not in folders and (
            found is not None or not (_is_dead(entry, folder) or is_own_folder(subject, folder))
        ):
            folders[folder] = folder_words(entry, folder)
    return CandidateFolders("/" not in name and subject.system.find(name, machine) is not None, folders)


def opened_folders(subject: Subject, process: Process, requester: int) -> Mapping[str, str]:
    """Return the folders that an object searches for libraries that it opens by name, each with its description."""
    return process.loader.folders(requester, _known_to(subject).alive)


def inheritable_folders(subject: Subject, process: Process, requester: int) -> Mapping[str, str]:
    """Return the folders that all libraries loaded by an object search, each with its description."""
    return process.loader.folders(requester, _known_to(subject).alive, inherited=True)


class _Known:
    """The folders in all run paths in an environment that may contain a library."""

    def __init__(self, subject: Subject) -> None:
        self.alive = KnownFolders(_describe)
        """Folders for which it isn't proved that they contain no library."""
        self.possible = KnownFolders(partial(_describe_possible, proxy(subject)))
        """The subset of these folders that may contain a library that isn't given."""


def _describe(entry: str, searched: str) -> tuple[str, str] | None:
    folder = _folder(f"{searched}/any")
    return None if _is_dead(entry, folder) else (folder, folder_words(entry, folder))


def _describe_possible(subject: Subject, entry: str, searched: str) -> tuple[str, str] | None:
    return None if is_own_folder(subject, _folder(f"{searched}/any")) else _describe(entry, searched)


_known: WeakKeyDictionary[Subject, _Known] = WeakKeyDictionary()


def _known_to(subject: Subject) -> _Known:
    if subject not in _known:
        _known[subject] = _Known(subject)
    return _known[subject]


def folder_words(entry: str, folder: str) -> str:
    """Return the description of the folder of a run path entry.

    The description is the path in site-packages, or the entry itself, because the location of site-packages is only
    assumed.
    """
    inside = folder.removeprefix(f"{SITE}/")
    return entry if inside == folder or "$" in inside else inside


@lru_cache(maxsize=_REMEMBERED)
def _is_dead(entry: str, folder: str) -> bool:
    """Return whether a run path entry for this folder provably leads to no library."""
    place = posixpath.relpath(folder, SITE)
    return leads_nowhere(f"$ORIGIN/{place}" if is_origin_relative(entry) else entry, "")


def _folder(path: str) -> str:
    return _outer(posixpath.dirname(path))


@lru_cache(maxsize=_REMEMBERED)
def _outer(folder: str) -> str:
    """Return the folder of a run path entry. ``folder`` may be a subfolder of it for newer processors."""
    return posixpath.normpath(folder.partition(_HWCAPS)[0])


class Found(msgspec.Struct, frozen=True):
    """The location where a file finds a library."""

    library: str
    where: Literal["wheel", "package", "system", "kept", "nothing"]
    """``kept``: only in folders from the old run path, on machines where one of these folders contains the library."""
    place: str = ""
    """The name of the package, the folder in the wheel, or the retained folders, separated by colons.

    Retained folders are relative to site-packages. Folders outside of site-packages are written in the same way as in
    the run path.
    """


def resolve_libraries(subject: Subject, owner: Distribution) -> dict[str, tuple[Found, ...]]:
    """Return the libraries that a wheel's loadable files need or open, and their locations, keyed by member name."""
    resolved = {}
    for process in subject.processes:
        if process.file.distribution == owner.source:
            own = {search.name: search for search in process.loader.searches if search.requester == 0}
            resolved[process.file.member] = tuple(_found(subject, owner, process, one) for one in own.values())
    return resolved


def resolve_library(subject: Subject, owner: Distribution, process: Process, user: str, name: str) -> Found | None:
    """Return where a file in a process finds a library, or `None` if the file doesn't search for it."""
    objects = process.loader.objects
    searches = (search for search in process.loader.searches if search.name == name)
    asked = (search for search in searches if place_of(objects[search.requester].library) == user)
    return next((_found(subject, owner, process, search) for search in asked), None)


def _found(subject: Subject, owner: Distribution, process: Process, search: Search) -> Found:
    if search.found is None:
        ways = candidate_folders(subject, process, search.requester, search.name, ())
        folders = ":".join(words for folder, words in ways.folders.items() if not _is_at_hand(subject, folder))
        return Found(search.name, "kept" if folders else "nothing", folders)
    library = process.loader.objects[search.found].library
    provider = subject.provider_of(library)
    if provider == owner.name:
        return Found(search.name, "wheel", posixpath.dirname(place_of(library)))
    return Found(search.name, "package", provider) if provider else Found(search.name, "system")


def _is_at_hand(subject: Subject, folder: str) -> bool:
    """Return whether a folder belongs to a given package.

    The contents of the folders around site-packages are unknown.
    """
    return f"{folder}/".startswith(f"{SITE}/") and subject.disk.is_folder(folder)


class Regression(msgspec.Struct, frozen=True):
    """A library that a file may be able to find only through an old run path."""

    user: str
    """The path of the file that searches for the library, relative to site-packages."""
    name: str
    """The name of the library. Empty for any library that the file opens by name at run time."""
    folders: tuple[str, ...]
    """The folders that may contain the library but that the file no longer searches (`folder_words`)."""
    edited: tuple[str, ...]
    """The sources of the edited files whose run paths cause the regression. There is at least one."""
    is_inherited: bool = False
    """Whether the file still finds the library, but the library no longer inherits the RPATH for its dependencies."""
    brought_by: str = ""
    """The name of another library in these folders that may have loaded the library, or an empty string."""

    @property
    def words(self) -> str:
        """A description of the lost library and of the folders that the file no longer searches."""
        wanted, user = self.name or "the libraries that it opens by name", path_in_package(self.user, "")
        places = ", ".join(self.folders) or "a package"
        if self.is_inherited:
            return f"{wanted}, which {user} may find, would no longer inherit the run path to {places}"
        if self.brought_by:
            return f"{user} would no longer find {wanted}, which the {self.brought_by} in {places} may have loaded"
        return f"{user} would no longer find {wanted} in {places}"


class ProcessPair(msgspec.Struct, frozen=True):
    """A process that starts with a file, before and after the edits."""

    old: Process
    new: Process


class Comparison(msgspec.Struct, frozen=True):
    """An environment before and after edits to its files."""

    before: Subject
    after: Subject
    edited: Collection[str]
    """The sources of the edited files."""

    def start(self, file: InstalledFile) -> ProcessPair | None:
        """Load a file before and after the edits.

        Return `None` if the file loads no edited file, because nothing changes in this case.
        """
        old = self.before.start(file)
        if not self.edited_at(place_of(held.library) for held in old.loader.objects):
            return None
        return ProcessPair(old, self.after.start(self.after.tree.by_source[file.source]))

    def edited_at(self, places: Iterable[str]) -> tuple[str, ...]:
        """Return the distinct sources of the edited files at these locations."""
        files = (self.before.tree.by_path.get(place) for place in places)
        return tuple(dict.fromkeys(file.source for file in files if file is not None and file.source in self.edited))


def scope_places(process: Process, index: int) -> tuple[str, ...]:
    """Return the locations of the files whose run paths affect an object's searches, the object's location first."""
    objects = process.loader.objects
    elf = objects[index].library.elf
    is_alone = elf is not None and elf.run_path_tag is RunpathTag.RUNPATH
    holders = (index,) if is_alone else process.loader.ancestors(index)
    return tuple(place_of(objects[holder].library) for holder in holders)


def replaced_regressions(comparison: Comparison, pair: ProcessPair) -> Iterator[Regression]:
    """Yield the missing libraries of an object that replaces another given library without missing libraries.

    If a package's library replaces a library on the machine, this function assumes that the machine's library found its
    dependencies.
    """
    old, new = pair.old.loader, pair.new.loader
    known = {held.library.identity for held in old.objects}
    added = {index for index, held in enumerate(new.objects) if held.library.identity not in known}
    whole = {search.name for search in old.searches if search.found is not None}
    replacing = {search.found for search in new.searches if search.found in added and search.name in whole}
    for search in new.missing if added else ():
        if search.requester in added and not replacing.isdisjoint(new.ancestors(search.requester)):
            near = [place_of(new.objects[index].library) for index in new.ancestors(search.requester)]
            yield Regression(near[0], search.name, (), _blamed_for(comparison, pair, near))


def dropped_regressions(comparison: Comparison, pair: ProcessPair) -> Iterator[Regression]:
    """Yield libraries that objects in both processes find only before the edits, even if another file loaded them."""
    objects = pair.old.loader.objects
    kept = {held.library.identity for held in pair.new.loader.objects}
    found = _taken(pair.new)
    for search in pair.old.loader.searches:
        library = objects[search.requester].library
        is_lost = search.found is not None and (library.identity, search.name) not in found
        if is_lost and library.identity in kept:
            yield Regression(place_of(library), search.name, (), _blamed_for(comparison, pair, ()))


def preceded_regressions(comparison: Comparison, pair: ProcessPair, sure: Collection[str]) -> Iterator[Regression]:
    """Yield libraries that objects in both processes need, but that aren't given and that no other object has loaded.

    Before the edits, another object that needs the library came first. That object may have found the library in
    folders that no other object searches.
    """
    old, new = _lacking(pair.old), _lacking(pair.new)
    for name in (name for name, users in old.items() if [*users] != [*new.get(name, ())]):
        users, still = [*old[name]], [*new.get(name, ())]
        was = {user: candidate_folders(comparison.before, pair.old, old[name][user], name, sure) for user in users}
        now = {user: candidate_folders(comparison.after, pair.new, new[name][user], name, sure) for user in still}
        for user in (user for user in users if user in still):
            first = still[: still.index(user) + 1]
            gone = (was[other].folders for other in users[: users.index(user)] if other not in first)
            left = {folder for other in first for folder in now[other].folders}
            lost = {folder: words for folders in gone for folder, words in folders.items() if folder not in left}
            if lost:
                place = place_of(pair.old.loader.objects[old[name][user]].library)
                yield Regression(place, name, (*lost.values(),), _blamed_for(comparison, pair, ()))


def _lacking(process: Process) -> dict[str, dict[str, int]]:
    """Return each missing library name, with the identities and indexes of the objects that search for it."""
    lacking: dict[str, dict[str, int]] = {}
    for search in process.loader.searches:
        if search.found is None:
            identity = process.loader.objects[search.requester].library.identity
            lacking.setdefault(search.name, {}).setdefault(identity, search.requester)
    return lacking


def _blamed_for(comparison: Comparison, pair: ProcessPair, near: Collection[str]) -> tuple[str, ...]:
    """Return the edited files whose run paths make a process load a library from a different location than before.

    If there are such files at the locations ``near``, the result omits all others. If there are no such files, all
    edited files in the process are considered the cause of its losses.
    """
    was, now = _taken(pair.old), _taken(pair.new)
    changed = {identity for identity, name in was | now if was.get((identity, name)) != now.get((identity, name))}
    places = [
        place
        for process in (pair.old, pair.new)
        for index, held in enumerate(process.loader.objects)
        if held.library.identity in changed
        for place in scope_places(process, index)
    ]
    everything = (place_of(held.library) for process in (pair.old, pair.new) for held in process.loader.objects)
    return (
        comparison.edited_at(place for place in places if place in near)
        or comparison.edited_at(places)
        or comparison.edited_at(everything)
    )


def _taken(process: Process) -> dict[Asked, str]:
    """Return the source of each library in a process, keyed by the object's identity and the requested name."""
    objects = process.loader.objects
    return {
        (objects[search.requester].library.identity, search.name): objects[search.found].library.identity
        for search in process.loader.searches
        if search.found is not None
    }


class GivenUp(msgspec.Struct, frozen=True):
    """Folders that are deliberately removed even though files might open libraries in them (`Toolkit.gives_up`)."""

    toolkits: Mapping[str, Toolkit] = {}
    """The toolkits, keyed by the wheels' sources."""
    opens: Mapping[str, OpenedNames] = {}
    """The known names that files open, keyed by the files' sources. No names are known for other files."""
    tag_is_told: bool = False
    """Whether the user chose the tag of all run paths.

    In that case, the repair may remove RPATHs that missing libraries inherit.
    """

    def has(self, wheel: str, opener: str, folder: str) -> bool:
        """Return whether an absolute folder is deliberately removed for ``opener``.

        ``opener`` is loaded by a file in the wheel.
        """
        toolkit = self.toolkits.get(wheel)
        inside = folder.removeprefix(f"{SITE}/")
        return toolkit is not None and toolkit.gives_up(inside, self.opens.get(opener, OpenedNames.ANYTHING))


_NOTHING = GivenUp()


class _Pair(msgspec.Struct, frozen=True):
    """The same object in a process, before and after the edits."""

    old: Process
    new: Process
    index: int
    """The index of the object in the old process."""
    counterpart: int
    """The index of the object in the new process."""
    key: tuple[int, int]
    """The numbers of the object's scopes before and after the edits (`_Chains`)."""

    @property
    def library(self) -> Library:
        """The object's file before the edits."""
        return self.old.loader.objects[self.index].library

    @property
    def scopes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The locations of the files whose run paths affect the object's searches, before and after the edits.

        The object's own location comes first.
        """
        return scope_places(self.old, self.index), scope_places(self.new, self.counterpart)

    @property
    def scope(self) -> tuple[str, ...]:
        """The distinct locations before and after the edits."""
        return (*dict.fromkeys(place for scope in self.scopes for place in scope),)


def find_regressions(
    before: Subject,
    after: Subject,
    edited: Collection[str],
    sure: Mapping[str, Collection[str]],
    given_up: GivenUp = _NOTHING,
) -> Iterator[Regression]:
    """Yield the libraries that files in an environment find ``before`` the edits, but not ``after`` them.

    This function loads every file that may load an edited file, each in a separate process. For each distribution,
    keyed by its source, ``sure`` contains the distributions that are definitely installed with it. Folders in
    ``given_up`` are ignored for libraries that files open by name.
    """
    comparison = Comparison(before, after, edited)
    chains = _Chains(comparison)
    seen, reported = set[object](), set[tuple[str, str]]()
    for file in before.tree.files:
        processes = comparison.start(file) if file.is_loadable else None
        if processes is None:
            continue
        for pair in _pairs(chains, processes):
            names = _names(comparison.before, pair.library)
            key = file.distribution, pair.key, names
            if key not in seen:
                seen.add(key)
                for regression in _needed_regressions(comparison, pair, names, sure.get(file.distribution, ())):
                    reported.add((regression.user, regression.name))
                    if not (regression.is_inherited and given_up.tag_is_told):
                        yield regression
                yield from _opened_regressions(comparison, pair, partial(given_up.has, file.distribution))
        installed = sure.get(file.distribution, ())
        others = dropped_regressions(comparison, processes), preceded_regressions(comparison, processes, installed)
        yield from (one for found in others for one in found if (one.user, one.name) not in reported)
        yield from replaced_regressions(comparison, processes)
        if not given_up.tag_is_told:
            yield from _brought_regressions(comparison, chains, processes, installed)


class _Chains:
    """Assigns numbers to the scopes of objects (`scope_places`). Equal scopes have the same number in all processes."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._numbers: dict[tuple[str, int], int] = {}
        self._are_edited: list[bool] = [False]

    def number(self, process: Process) -> list[int]:
        """Return the number of each object's scope."""
        chains, scopes = list[int](), list[int]()
        for held in process.loader.objects:
            place, elf = place_of(held.library), held.library.elf
            chains.append(self._numbered(place, chains[held.loader] if held.loader >= 0 else 0))
            is_alone = elf is not None and elf.run_path_tag is RunpathTag.RUNPATH
            scopes.append(self._numbered(place, 0) if is_alone else chains[-1])
        return scopes

    def _numbered(self, place: str, above: int) -> int:
        if (place, above) not in self._numbers:
            self._numbers[place, above] = len(self._are_edited)
            self._are_edited.append(self._are_edited[above] or bool(self._comparison.edited_at([place])))
        return self._numbers[place, above]

    def is_edited(self, number: int) -> bool:
        """Return whether a scope contains an edited file."""
        return self._are_edited[number]


def _pairs(chains: _Chains, processes: ProcessPair) -> Iterator[_Pair]:
    """Yield the objects in a process whose searches use the run path of an edited file."""
    old, new = processes.old, processes.new
    before, after = chains.number(old), chains.number(new)
    places = {held.library.identity: index for index, held in enumerate(new.loader.objects)}
    for index, held in enumerate(old.loader.objects):
        counterpart = places.get(held.library.identity, -1)
        if counterpart >= 0 and (chains.is_edited(before[index]) or chains.is_edited(after[counterpart])):
            yield _Pair(old, new, index, counterpart, (before[index], after[counterpart]))


def _needed_regressions(
    comparison: Comparison, pair: _Pair, names: Iterable[str], sure: Collection[str]
) -> Iterator[Regression]:
    for name in names:
        was = candidate_folders(comparison.before, pair.old, pair.index, name, sure)
        now = candidate_folders(comparison.after, pair.new, pair.counterpart, name, sure)
        if not now.keep(was):
            lost = tuple(words for folder, words in was.folders.items() if folder not in now.folders)
            yield Regression(place_of(pair.library), name, lost, _blamed(comparison, pair))
        elif now.folders:
            # Any folder may have a library that isn't given, including a folder in the wheel, because packages share
            # folders.
            yield from _inherited_regressions(comparison, pair, name)


def _inherited_regressions(comparison: Comparison, pair: _Pair, name: str) -> Iterator[Regression]:
    """Yield the folders with dependencies that a library outside of the given packages no longer inherits."""
    still = inheritable_folders(comparison.after, pair.new, pair.counterpart)
    once = inheritable_folders(comparison.before, pair.old, pair.index)
    if once.keys() <= still.keys():
        return
    handed = {words for folder, words in once.items() if folder not in still}
    yield Regression(place_of(pair.library), name, (*sorted(handed),), _blamed(comparison, pair), is_inherited=True)


def _brought_regressions(
    comparison: Comparison, chains: _Chains, processes: ProcessPair, sure: Collection[str]
) -> Iterator[Regression]:
    """Yield libraries that files open by name and that may have been loaded only by a replaced library on the machine.

    Such a library may load files from the folders in the RPATHs that it inherits. NEEDED libraries are ignored, because
    the loader searches for most of them earlier.
    """
    lacked = _lacked(comparison.after, processes.new, sure)
    for pair in _pairs(chains, processes) if lacked else ():
        handed = inheritable_folders(comparison.before, pair.old, pair.index).keys()
        lost = [(user, name) for user, name, folders in lacked if not handed <= folders]
        for replaced, folders in _replaced(comparison, pair, sure) if lost else ():
            blamed = _blamed(comparison, pair)
            yield from (Regression(user, name, folders, blamed, brought_by=replaced) for user, name in lost)


def _lacked(subject: Subject, process: Process, sure: Collection[str]) -> list[tuple[str, str, frozenset[str]]]:
    """Return the libraries that files in a process open according to the settings, and that may be missing.

    Each item contains the file's path, the library's name, and the folders that the libraries loaded by the file
    search.
    """
    return [
        (file.path, name, frozenset(inheritable_folders(subject, process, index)))
        for index, held in enumerate(process.loader.objects)
        if (file := subject.file_of(held.library))
        for name in subject.settings.opened_by(file.path)
        if not process.loader.has_loaded(name) and not candidate_folders(subject, process, index, name, sure).is_sure
    ]


def _replaced(comparison: Comparison, pair: _Pair, sure: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name that an object certainly finds, and the texts of the folders that came first before the edits.

    This function assumes that the SDK's libraries load the same libraries as the machine's toolkit.
    """
    for name in _names(comparison.before, pair.library):
        was = candidate_folders(comparison.before, pair.old, pair.index, name, sure)
        now = candidate_folders(comparison.after, pair.new, pair.counterpart, name, sure)
        gone = [item for item in was.folders.items() if item[0] not in now.folders]
        if find_sdk_library(name):
            gone = [item for item in gone if item[0].startswith(f"{SITE}/") or not is_toolkit_folder(item[0])]
        folders = tuple(words for _, words in gone)
        if now.is_sure and folders:
            yield name, folders


def _opened_regressions(
    comparison: Comparison, pair: _Pair, is_given_up: Callable[[str, str], bool]
) -> Iterator[Regression]:
    if pair.library.elf is None or not pair.library.elf.imports_dlopen:
        return
    still = opened_folders(comparison.after, pair.new, pair.counterpart)
    gone = [item for item in opened_folders(comparison.before, pair.old, pair.index).items() if item[0] not in still]
    place = place_of(pair.library)
    opener = comparison.before.file_of(pair.library)
    source = opener.source if opener else ""
    lost = sorted(
        words
        for folder, words in gone
        if not is_given_up(source, folder) and not has_nothing_to_open(comparison.before, folder, place)
    )
    if lost:
        yield Regression(place, "", tuple(lost), _blamed(comparison, pair))


def _names(subject: Subject, library: Library) -> tuple[str, ...]:
    """Return the libraries that an object needs, and the libraries that its file opens according to the settings."""
    elf, file = library.elf, subject.file_of(library)
    opened = subject.settings.opened_by(file.path) if file else ()
    return tuple(dict.fromkeys([*(elf.wanted if elf else ()), *opened]))


def _blamed(comparison: Comparison, pair: _Pair) -> tuple[str, ...]:
    """Return the source of the object's file if it is edited, or the sources of the files whose RPATHs it inherits."""
    return comparison.edited_at([place_of(pair.library)]) or comparison.edited_at(pair.scope)
