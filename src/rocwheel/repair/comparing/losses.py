"""What a repair would take away: libraries that files may find before it, and no longer after it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.subject import Process, Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.linking.known.toolkits import is_toolkit_folder
from rocwheel.linking.tree_disk import SITE, place_of
from rocwheel.repair.comparing.own_folders import has_nothing_to_open
from rocwheel.repair.comparing.ways import find_ways, inheritable_folders, opened_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.installed.tree import InstalledFile
    from rocwheel.linking.loader import Library

__all__ = ["Loss", "find_losses"]


class Loss(msgspec.Struct, frozen=True):
    """A library that a file may find by an old run path alone."""

    user: str
    """The path of the file that looks for it, relative to site-packages."""
    name: str
    """The library's; empty for whatever the file opens by name at run time."""
    folders: tuple[str, ...]
    """The folders that may have it and that are no longer searched (`folder_words`)."""
    edited: tuple[str, ...]
    """The sources of the edited files whose run paths are to blame."""
    is_inherited: bool = False
    """Whether the library may be found as before, but finds no longer what it needs by the RPATH that it inherits."""

    @property
    def words(self) -> str:
        """What is lost, and where it is looked for no more."""
        wanted = self.name or "what it opens by name"
        places = ", ".join(self.folders) or "a package"
        if self.is_inherited:
            return f"{wanted}, which {self.user} may find, would no longer inherit the way to {places}"
        return f"{self.user} would no longer find {wanted} in {places}"


class _Comparison(msgspec.Struct, frozen=True):
    before: Subject
    after: Subject
    edited: Collection[str]
    """The sources of the edited files."""


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
        return _scope(self.old, self.index), _scope(self.new, self.counterpart)

    @property
    def scope(self) -> tuple[str, ...]:
        """The places of both, each once."""
        return (*dict.fromkeys(place for scope in self.scopes for place in scope),)


def find_losses(
    before: Subject,
    after: Subject,
    edited: Collection[str],
    sure: Mapping[str, Collection[str]],
    spared: Collection[str],
) -> Iterator[Loss]:
    """Yield what files of an environment find ``before`` its files were ``edited``, and not ``after`` that.

    Every file that may load an edited one is loaded into a process of its own. ``sure`` are the distributions that each
    one, by its source, is installed with for sure. ``spared`` are the sources of those that use the SDK in place of the
    machine's toolkits: folders of these don't count for what their files open by name.
    """
    comparison = _Comparison(before, after, edited)
    seen: set[object] = set()
    for file in before.tree.files:
        for pair in _pairs(comparison, file) if file.is_loadable else ():
            key = file.distribution, pair.scopes
            if key not in seen:
                seen.add(key)
                yield from _needed_losses(comparison, pair, sure.get(file.distribution, ()))
                yield from _opened_losses(comparison, pair, spares_toolkits=file.distribution in spared)
        yield from _replaced_losses(comparison, file) if file.is_loadable else ()


def _pairs(comparison: _Comparison, file: InstalledFile) -> Iterator[_Pair]:
    """Yield the objects of a file's process whose searches go by the run path of an edited file."""
    old = comparison.before.start(file)
    if not any(_edited(comparison, place_of(held.library)) for held in old.loader.objects):
        return
    new = comparison.after.start(comparison.after.tree.by_source[file.source])
    places = {held.library.identity: index for index, held in enumerate(new.loader.objects)}
    for index, held in enumerate(old.loader.objects):
        pair = _Pair(old, new, index, places.get(held.library.identity, -1))
        if pair.counterpart >= 0 and any(_edited(comparison, place) for place in pair.scope):
            yield pair


def _needed_losses(comparison: _Comparison, pair: _Pair, sure: Collection[str]) -> Iterator[Loss]:
    for name in _names(comparison.before, pair):
        was = find_ways(comparison.before, pair.old, pair.index, name, sure)
        now = find_ways(comparison.after, pair.new, pair.counterpart, name, sure)
        if not now.keep(was):
            lost = tuple(words for folder, words in was.folders.items() if folder not in now.folders)
            yield Loss(place_of(pair.library), name, lost, _blamed(comparison, pair))
        elif now.folders:
            # Any folder may hold what is not at hand, also one of the wheel: packages share folders.
            yield from _inherited_losses(comparison, pair, name)


def _inherited_losses(comparison: _Comparison, pair: _Pair, name: str) -> Iterator[Loss]:
    """Yield what a library that is not at hand no longer inherits of the way to its own dependencies."""
    still = inheritable_folders(pair.new, pair.counterpart)
    handed = {words for folder, words in inheritable_folders(pair.old, pair.index).items() if folder not in still}
    if handed:
        yield Loss(place_of(pair.library), name, (*sorted(handed),), _blamed(comparison, pair), is_inherited=True)


def _replaced_losses(comparison: _Comparison, file: InstalledFile) -> Iterator[Loss]:
    """Yield what an object of a file's process lacks that takes the place of another one at hand, which lacked nothing.

    Packages that take the place of what may be on a machine are taken to find what they need there.
    """
    old, new = comparison.before.start(file), comparison.after.start(comparison.after.tree.by_source[file.source])
    known = {held.library.identity for held in old.loader.objects}
    added = {index for index, held in enumerate(new.loader.objects) if held.library.identity not in known}
    whole = {search.name for search in old.loader.searches if search.found is not None}
    for search in new.loader.missing if added else ():
        chain = [*new.loader.ancestors(search.requester)]
        first = [asked.name for asked in new.loader.searches if asked.found in chain and asked.found in added]
        if search.requester in added and whole.intersection(first):
            places = [place_of(new.loader.objects[index].library) for index in chain]
            blamed = tuple(dict.fromkeys(source for place in places if (source := _edited(comparison, place))))
            yield Loss(places[0], search.name, (), blamed)


def _opened_losses(comparison: _Comparison, pair: _Pair, *, spares_toolkits: bool) -> Iterator[Loss]:
    if pair.library.elf is None or not pair.library.elf.imports_dlopen:
        return
    still = opened_folders(pair.new, pair.counterpart)
    gone = [item for item in opened_folders(pair.old, pair.index).items() if item[0] not in still]
    place = place_of(pair.library)
    lost = sorted(
        words
        for folder, words in gone
        if not (spares_toolkits and _is_of_system_toolkit(folder))
        and not has_nothing_to_open(comparison.before, folder, place)
    )
    if lost:
        yield Loss(place, "", tuple(lost), _blamed(comparison, pair))


def _is_of_system_toolkit(folder: str) -> bool:
    return not folder.startswith(f"{SITE}/") and is_toolkit_folder(folder)


def _names(subject: Subject, pair: _Pair) -> list[str]:
    """Return what an object needs, and what the settings say that the process's file opens by name."""
    elf = pair.library.elf
    opened = () if pair.index else subject.settings.opened_by(pair.old.file.path)
    return list(dict.fromkeys([*(elf.wanted if elf else ()), *opened]))


def _scope(process: Process, index: int) -> tuple[str, ...]:
    objects = process.loader.objects
    elf = objects[index].library.elf
    is_alone = elf is not None and elf.run_path_tag is RunpathTag.RUNPATH
    holders = (index,) if is_alone else process.loader.ancestors(index)
    return tuple(place_of(objects[holder].library) for holder in holders)


def _edited(comparison: _Comparison, place: str) -> str:
    """Return the source of the file at a place if it is an edited one, else nothing."""
    file = comparison.before.tree.by_path.get(place)
    return file.source if file is not None and file.source in comparison.edited else ""


def _blamed(comparison: _Comparison, pair: _Pair) -> tuple[str, ...]:
    """Return the source of the object's file if that is edited, else those of the files whose RPATHs it inherits."""
    found = [source for place in pair.scope if (source := _edited(comparison, place))]
    own = _edited(comparison, place_of(pair.library))
    return (own,) if own else tuple(found)
