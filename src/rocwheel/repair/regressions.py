"""What files find before and after a repair, by the loader's rules, and what a repair would take away.

Packages share some folders, such as ``nvidia/cu13/lib``: on a user's machine there may be more in them.

A library is found for sure in the wheel itself, in a package that the wheel requires and that is at hand, and among the
libraries that every system has. Any other folder of a run path may have it: a folder of the host such as
``/opt/rocm/lib``, and one of packages that are not at hand, not required, or that share the folder with others.

Two kinds of folders have nothing more: those of entries that are proved to lead nowhere
(`rocwheel.environment.run_path_entries.leads_nowhere`), and those that a package at hand has for itself.

A process that takes a library from another place than before may lose two things: what the copy there needs and does
not find, and what other files found because the copy before had it loaded.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.audit.subject import Process, Subject
from rocwheel.audit.wheel_toolkits import OpenedNames, Toolkit
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.installed_paths import SITE, path_in_package
from rocwheel.environment.known_libraries import is_toolkit_folder
from rocwheel.environment.loader import How, LoaderStop, place_of
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
    """Return whether one distribution has an absolute folder for itself.

    That is a folder in a package whose ``__init__.py`` says something (an empty one is what distributions share that
    add to each other's packages, as ``nvidia`` is), and ``NAME.libs`` as auditwheel makes it for a wheel ``NAME``.
    """
    top = folder.removeprefix(f"{SITE}/").partition("/")[0]
    owners = subject.tree.owners_of_tops.get(top, frozenset())
    module = subject.tree.by_path.get(f"{top}/__init__.py")
    is_package = module is not None and module.size > 0
    is_named = top.endswith(_LIBS) and canonicalize_name(top.removesuffix(_LIBS)) in owners
    return len(owners) == 1 and (is_package or is_named) and subject.disk.is_folder(folder)


def has_nothing_to_open(subject: Subject, folder: str, opener: str) -> bool:
    """Return whether the file at the place ``opener`` can open nothing by name in a folder of one distribution.

    Modules that Python imports are opened by their whole paths.
    """
    held = (file for file in subject.tree.files if f"{SITE}/{file.folder}" == folder)
    openable = (one for one in held if one.is_loadable and one.path != opener and not one.has_init_function)
    return is_own_folder(subject, folder) and not any(True for _ in openable)


_HWCAPS = "/glibc-hwcaps/"
_REMEMBERED = 1 << 14
"""Folders that are remembered: a library of a long chain has the same ones asked for each name that it lacks."""


class CandidateFolders(msgspec.Struct, frozen=True):
    """Where one object of a process may find one library."""

    is_sure: bool
    folders: dict[str, str]
    """Absolute folders that may have it, in the loader's order, each with its words (`folder_words`).

    Those behind a sure place don't count.
    """

    def keep(self, before: CandidateFolders) -> bool:
        """Return whether everything that was found before is found, whichever of the folders have the library."""
        return self.is_sure or (not before.is_sure and before.folders.keys() <= self.folders.keys())


def candidate_folders(
    subject: Subject, process: Process, requester: int, name: str, sure: Collection[str]
) -> CandidateFolders:
    """Return where an object of a process may find a library, whatever was loaded before.

    ``sure`` are the names of the distributions that are installed with the wheel for sure.
    """
    elf = process.file.elf
    machine = elf.machine if elf else 0
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


def opened_folders(process: Process, requester: int) -> dict[str, str]:
    """Return the folders in which an object of a process looks for whatever it opens by name, each with its words."""
    return _folders(process.loader.candidates("any", requester))


def inheritable_folders(process: Process, requester: int) -> dict[str, str]:
    """Return the folders, each with its words, in which everything looks that an object of a process has loaded."""
    return _folders(found for found in process.loader.candidates("any", requester) if found[0] is How.RPATH)


def folder_words(entry: str, folder: str) -> str:
    """Return how messages name a folder that a run path entry leads to.

    That is its place in site-packages, else the entry itself: where packages are installed is only assumed.
    """
    inside = folder.removeprefix(f"{SITE}/")
    return entry if inside == folder or "$" in inside else inside


def _folders(candidates: Iterable[tuple[How, str, str]]) -> dict[str, str]:
    found = [(entry, _folder(path)) for _, entry, path in candidates]
    alive = [(entry, folder) for entry, folder in found if not _is_dead(entry, folder)]
    return {folder: folder_words(entry, folder) for entry, folder in reversed(alive)}


@lru_cache(maxsize=_REMEMBERED)
def _is_dead(entry: str, folder: str) -> bool:
    """Return whether an entry, which led the loader to a folder, is proved to lead to no library."""
    place = posixpath.relpath(folder, SITE)
    return leads_nowhere(f"$ORIGIN/{place}" if is_origin_relative(entry) else entry, "")


def _folder(path: str) -> str:
    return _outer(posixpath.dirname(path))


@lru_cache(maxsize=_REMEMBERED)
def _outer(folder: str) -> str:
    """Return the folder that a run path entry leads to, of which this one may be a subfolder for newer processors."""
    return posixpath.normpath(folder.partition(_HWCAPS)[0])


class Found(msgspec.Struct, frozen=True):
    """Where a file finds one library."""

    library: str
    where: Literal["wheel", "package", "system", "kept", "nothing"]
    """``kept``: only in folders that the old run path named already, on a machine that has it there."""
    place: str = ""
    """The package's name; the folder in the wheel; the folders that are kept, with colons between.

    Those are named as in site-packages, and outside of it as the run path has them.
    """


def resolve_libraries(subject: Subject, owner: Distribution) -> dict[str, tuple[Found, ...]]:
    """Return what each loadable file of a wheel finds of what it needs or opens by name, by the member's name."""
    resolved = {}
    for process in subject.processes:
        if process.file.distribution == owner.source:
            own = {search.name: search for search in process.loader.searches if search.requester == 0}
            resolved[process.file.member] = tuple(_found(subject, owner, process, one) for one in own.values())
    return resolved


def resolve_library(subject: Subject, owner: Distribution, process: Process, user: str, name: str) -> Found | None:
    """Return where a file of a process, given by its place, finds a library; None if it doesn't look for it."""
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
    """Return whether a folder is one of the packages at hand: nothing is known of those around site-packages."""
    return f"{folder}/".startswith(f"{SITE}/") and subject.disk.is_folder(folder)


class Regression(msgspec.Struct, frozen=True):
    """A library that a file may find by an old run path alone."""

    user: str
    """The path of the file that looks for it, relative to site-packages."""
    name: str
    """The library's; empty for whatever the file opens by name at run time."""
    folders: tuple[str, ...]
    """The folders that may have it and that are no longer searched (`folder_words`)."""
    edited: tuple[str, ...]
    """The sources of the edited files whose run paths are to blame: one at least."""
    is_inherited: bool = False
    """Whether the library may be found as before, but finds no longer what it needs by the RPATH that it inherits."""
    brought_by: str = ""
    """The name of another library in these folders that may have loaded it, if that is how it was found."""

    @property
    def words(self) -> str:
        """What is lost, and where it is looked for no more."""
        wanted, user = self.name or "what it opens by name", path_in_package(self.user, "")
        places = ", ".join(self.folders) or "a package"
        if self.is_inherited:
            return f"{wanted}, which {user} may find, would no longer inherit the way to {places}"
        if self.brought_by:
            return f"{user} would no longer find {wanted}, which the {self.brought_by} in {places} may have loaded"
        return f"{user} would no longer find {wanted} in {places}"


class ProcessPair(msgspec.Struct, frozen=True):
    """The process that begins with one file, before and after."""

    old: Process
    new: Process


class Comparison(msgspec.Struct, frozen=True):
    """An environment before and after files of it were edited."""

    before: Subject
    after: Subject
    edited: Collection[str]
    """The sources of the edited files."""

    def start(self, file: InstalledFile) -> ProcessPair | None:
        """Load a file before and after; None if it loads no edited file, for then both are the same."""
        old = self.before.start(file)
        if not self.edited_at(place_of(held.library) for held in old.loader.objects):
            return None
        return ProcessPair(old, self.after.start(self.after.tree.by_source[file.source]))

    def edited_at(self, places: Iterable[str]) -> tuple[str, ...]:
        """Return the sources of the edited ones among the files at some places, each once."""
        files = (self.before.tree.by_path.get(place) for place in places)
        return tuple(dict.fromkeys(file.source for file in files if file is not None and file.source in self.edited))


def scope_places(process: Process, index: int) -> tuple[str, ...]:
    """Return the places of the files whose run paths the searches of an object go by, its own first."""
    objects = process.loader.objects
    elf = objects[index].library.elf
    is_alone = elf is not None and elf.run_path_tag is RunpathTag.RUNPATH
    holders = (index,) if is_alone else process.loader.ancestors(index)
    return tuple(place_of(objects[holder].library) for holder in holders)


def replaced_regressions(comparison: Comparison, pair: ProcessPair) -> Iterator[Regression]:
    """Yield what an object of a process lacks that takes the place of another one at hand, which lacked nothing.

    Packages that take the place of what may be on a machine are taken to find what they need there.
    """
    old, new = pair.old.loader, pair.new.loader
    known = {held.library.identity for held in old.objects}
    added = {index for index, held in enumerate(new.objects) if held.library.identity not in known}
    whole = {search.name for search in old.searches if search.found is not None}
    for search in new.missing if added else ():
        chain = [*new.ancestors(search.requester)]
        first = [asked.name for asked in new.searches if asked.found in chain and asked.found in added]
        if search.requester in added and whole.intersection(first):
            near = [place_of(new.objects[index].library) for index in chain]
            yield Regression(near[0], search.name, (), _blamed_for(comparison, pair, near))


def dropped_regressions(comparison: Comparison, pair: ProcessPair) -> Iterator[Regression]:
    """Yield what objects of both processes find before, and not after: also what only others had loaded for them."""
    objects = pair.old.loader.objects
    kept = {held.library.identity for held in pair.new.loader.objects}
    found = _taken(pair.new)
    for search in pair.old.loader.searches:
        library = objects[search.requester].library
        is_lost = search.found is not None and (library.identity, search.name) not in found
        if is_lost and library.identity in kept:
            yield Regression(place_of(library), search.name, (), _blamed_for(comparison, pair, ()))


def preceded_regressions(comparison: Comparison, pair: ProcessPair, sure: Collection[str]) -> Iterator[Regression]:
    """Yield what objects of both processes need, what is not at hand, and what no other object has loaded by then.

    Before, an object that needs it as well came first, and may have found it in folders that only it looks in.
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
    """Return each name that is not found, with the objects that look for it, in order: their identities and indexes."""
    lacking: dict[str, dict[str, int]] = {}
    for search in process.loader.searches:
        if search.found is None:
            identity = process.loader.objects[search.requester].library.identity
            lacking.setdefault(search.name, {}).setdefault(identity, search.requester)
    return lacking


def _blamed_for(comparison: Comparison, pair: ProcessPair, near: Collection[str]) -> tuple[str, ...]:
    """Return the edited files by whose run paths a process takes a library from another place than before.

    Those at the places ``near`` come before all others, which are left out then. If no such file is edited, every
    edited file of the process is to blame: what it loses, it loses by these.
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
    """Return from where the objects of a process take what they look for, by the object's identity and the name."""
    objects = process.loader.objects
    return {
        (objects[search.requester].library.identity, search.name): objects[search.found].library.identity
        for search in process.loader.searches
        if search.found is not None
    }


class GivenUp(msgspec.Struct, frozen=True):
    """Which folders files give up on purpose, for what they open by name (`Toolkit.gives_up`)."""

    toolkits: Mapping[str, Toolkit] = {}
    """By the wheels' sources."""
    opens: Mapping[str, OpenedNames] = {}
    """By the files' sources; of all others, nothing is known."""
    tag_is_told: bool = False
    """Whether a user chose the kind of all run paths: then RPATHs may go that libraries not at hand would inherit."""

    def has(self, wheel: str, opener: str, folder: str) -> bool:
        """Return whether the file ``opener``, which one of a wheel loads, gives up an absolute folder."""
        toolkit = self.toolkits.get(wheel)
        inside = folder.removeprefix(f"{SITE}/")
        return toolkit is not None and toolkit.gives_up(inside, self.opens.get(opener, OpenedNames.ANYTHING))


_NOTHING = GivenUp()


class _Pair(msgspec.Struct, frozen=True):
    """The same object of a process, before and after."""

    old: Process
    new: Process
    index: int
    """Among the objects of the old process."""
    counterpart: int
    """Among those of the new one."""

    @property
    def library(self) -> Library:
        """The object's file as it was."""
        return self.old.loader.objects[self.index].library

    @property
    def scopes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The places of the files whose run paths the object's searches go by, before and after; its own first."""
        return scope_places(self.old, self.index), scope_places(self.new, self.counterpart)

    @property
    def scope(self) -> tuple[str, ...]:
        """The places of both, each once."""
        return (*dict.fromkeys(place for scope in self.scopes for place in scope),)


def find_regressions(
    before: Subject,
    after: Subject,
    edited: Collection[str],
    sure: Mapping[str, Collection[str]],
    given_up: GivenUp = _NOTHING,
) -> Iterator[Regression]:
    """Yield what files of an environment find ``before`` its files were ``edited``, and not ``after`` that.

    Every file that may load an edited one is loaded into a process of its own. ``sure`` are the distributions that each
    one, by its source, is installed with for sure. Folders that are ``given_up`` don't count for what files open by
    name.
    """
    comparison = Comparison(before, after, edited)
    seen, reported = set[object](), set[tuple[str, str]]()
    for file in before.tree.files:
        processes = comparison.start(file) if file.is_loadable else None
        if processes is None:
            continue
        for pair in _pairs(comparison, processes):
            names = _names(comparison.before, pair.library)
            key = file.distribution, pair.scopes, names
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
            yield from _brought_regressions(comparison, processes, installed)


def _pairs(comparison: Comparison, processes: ProcessPair) -> Iterator[_Pair]:
    """Yield the objects of a process whose searches go by the run path of an edited file."""
    old, new = processes.old, processes.new
    places = {held.library.identity: index for index, held in enumerate(new.loader.objects)}
    for index, held in enumerate(old.loader.objects):
        pair = _Pair(old, new, index, places.get(held.library.identity, -1))
        if pair.counterpart >= 0 and comparison.edited_at(pair.scope):
            yield pair


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
            # Any folder may hold what is not at hand, also one of the wheel: packages share folders.
            yield from _inherited_regressions(comparison, pair, name)


def _inherited_regressions(comparison: Comparison, pair: _Pair, name: str) -> Iterator[Regression]:
    """Yield what a library that is not at hand no longer inherits of the way to its own dependencies."""
    still = inheritable_folders(pair.new, pair.counterpart)
    handed = {words for folder, words in inheritable_folders(pair.old, pair.index).items() if folder not in still}
    if handed:
        yield Regression(place_of(pair.library), name, (*sorted(handed),), _blamed(comparison, pair), is_inherited=True)


def _brought_regressions(comparison: Comparison, processes: ProcessPair, sure: Collection[str]) -> Iterator[Regression]:
    """Yield what is opened by name and was there if a library of a machine had it loaded, which is replaced now.

    Such a library may load whatever is in the folders of the RPATHs that it inherits. What files need is not asked for:
    the loader looks for most of it before.
    """
    lacked = _lacked(comparison.after, processes.new, sure)
    for pair in _pairs(comparison, processes) if lacked else ():
        handed = inheritable_folders(pair.old, pair.index).keys()
        lost = [(user, name) for user, name, folders in lacked if not handed <= folders]
        for replaced, folders in _replaced(comparison, pair, sure) if lost else ():
            blamed = _blamed(comparison, pair)
            yield from (Regression(user, name, folders, blamed, brought_by=replaced) for user, name in lost)


def _lacked(subject: Subject, process: Process, sure: Collection[str]) -> list[tuple[str, str, frozenset[str]]]:
    """Return what the settings say that files of a process open by name, and what is not there for sure.

    That is the file's place, the name, and the folders in which what the file has loaded looks.
    """
    return [
        (file.path, name, frozenset(inheritable_folders(process, index)))
        for index, held in enumerate(process.loader.objects)
        if (file := subject.file_of(held.library))
        for name in subject.settings.opened_by(file.path)
        if not process.loader.has_loaded(name) and not candidate_folders(subject, process, index, name, sure).is_sure
    ]


def _replaced(comparison: Comparison, pair: _Pair, sure: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name that an object finds for sure, and not in folders that came first, with the folders' words.

    The SDK's libraries are taken to load what those of a machine's toolkit do.
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
    still = opened_folders(pair.new, pair.counterpart)
    gone = [item for item in opened_folders(pair.old, pair.index).items() if item[0] not in still]
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
    """Return what an object needs, and what the settings say that its file opens by name."""
    elf, file = library.elf, subject.file_of(library)
    opened = subject.settings.opened_by(file.path) if file else ()
    return tuple(dict.fromkeys([*(elf.wanted if elf else ()), *opened]))


def _blamed(comparison: Comparison, pair: _Pair) -> tuple[str, ...]:
    """Return the source of the object's file if that is edited, else those of the files whose RPATHs it inherits."""
    return comparison.edited_at([place_of(pair.library)]) or comparison.edited_at(pair.scope)
