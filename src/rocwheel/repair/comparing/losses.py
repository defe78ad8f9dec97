"""What a repair would take away: libraries that files may find before it, and no longer after it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.subject import Process, Subject
from rocwheel.audit.wheel_toolkits import Opens, Toolkit
from rocwheel.linking.known.sdk_layout import find_sdk_library
from rocwheel.linking.known.toolkits import is_toolkit_folder
from rocwheel.linking.tree_disk import SITE, place_of
from rocwheel.repair.comparing.comparison import Comparison, Loss, ProcessPair, scope_places
from rocwheel.repair.comparing.own_folders import has_nothing_to_open
from rocwheel.repair.comparing.replaced import dropped_losses, replaced_losses
from rocwheel.repair.comparing.ways import find_ways, inheritable_folders, opened_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from rocwheel.linking.loader import Library

__all__ = ["GivenUp", "find_losses"]


class GivenUp(msgspec.Struct, frozen=True):
    """Which folders files give up on purpose, for what they open by name (`Toolkit.gives_up`)."""

    toolkits: Mapping[str, Toolkit] = {}
    """By the wheels' sources."""
    opens: Mapping[str, Opens] = {}
    """By the files' sources; of all others, nothing is known."""
    tag_is_told: bool = False
    """Whether a user chose the kind of all run paths: then RPATHs may go that libraries not at hand would inherit."""

    def has(self, wheel: str, opener: str, folder: str) -> bool:
        """Return whether the file ``opener``, which one of a wheel loads, gives up an absolute folder."""
        toolkit = self.toolkits.get(wheel)
        inside = folder.removeprefix(f"{SITE}/")
        return toolkit is not None and toolkit.gives_up(inside, self.opens.get(opener, Opens.ANYTHING))


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


def find_losses(
    before: Subject,
    after: Subject,
    edited: Collection[str],
    sure: Mapping[str, Collection[str]],
    given_up: GivenUp = _NOTHING,
) -> Iterator[Loss]:
    """Yield what files of an environment find ``before`` its files were ``edited``, and not ``after`` that.

    Every file that may load an edited one is loaded into a process of its own. ``sure`` are the distributions that each
    one, by its source, is installed with for sure. Folders that are ``given_up`` don't count for what files open by
    name.
    """
    comparison = Comparison(before, after, edited)
    seen, told = set[object](), set[tuple[str, str]]()
    for file in before.tree.files:
        processes = comparison.start(file) if file.is_loadable else None
        if processes is None:
            continue
        for pair in _pairs(comparison, processes):
            names = _names(comparison.before, pair.library)
            key = file.distribution, pair.scopes, names
            if key not in seen:
                seen.add(key)
                for loss in _needed_losses(comparison, pair, names, sure.get(file.distribution, ())):
                    told.add((loss.user, loss.name))
                    if not (loss.is_inherited and given_up.tag_is_told):
                        yield loss
                yield from _opened_losses(comparison, pair, partial(given_up.has, file.distribution))
        yield from (loss for loss in dropped_losses(comparison, processes) if (loss.user, loss.name) not in told)
        yield from replaced_losses(comparison, processes)
        if not given_up.tag_is_told:
            yield from _brought_losses(comparison, processes, sure.get(file.distribution, ()))


def _pairs(comparison: Comparison, processes: ProcessPair) -> Iterator[_Pair]:
    """Yield the objects of a process whose searches go by the run path of an edited file."""
    old, new = processes.old, processes.new
    places = {held.library.identity: index for index, held in enumerate(new.loader.objects)}
    for index, held in enumerate(old.loader.objects):
        pair = _Pair(old, new, index, places.get(held.library.identity, -1))
        if pair.counterpart >= 0 and comparison.edited_at(pair.scope):
            yield pair


def _needed_losses(comparison: Comparison, pair: _Pair, names: Iterable[str], sure: Collection[str]) -> Iterator[Loss]:
    for name in names:
        was = find_ways(comparison.before, pair.old, pair.index, name, sure)
        now = find_ways(comparison.after, pair.new, pair.counterpart, name, sure)
        if not now.keep(was):
            lost = tuple(words for folder, words in was.folders.items() if folder not in now.folders)
            yield Loss(place_of(pair.library), name, lost, _blamed(comparison, pair))
        elif now.folders:
            # Any folder may hold what is not at hand, also one of the wheel: packages share folders.
            yield from _inherited_losses(comparison, pair, name)


def _inherited_losses(comparison: Comparison, pair: _Pair, name: str) -> Iterator[Loss]:
    """Yield what a library that is not at hand no longer inherits of the way to its own dependencies."""
    still = inheritable_folders(pair.new, pair.counterpart)
    handed = {words for folder, words in inheritable_folders(pair.old, pair.index).items() if folder not in still}
    if handed:
        yield Loss(place_of(pair.library), name, (*sorted(handed),), _blamed(comparison, pair), is_inherited=True)


def _brought_losses(comparison: Comparison, processes: ProcessPair, sure: Collection[str]) -> Iterator[Loss]:
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
            yield from (Loss(user, name, folders, blamed, brought_by=replaced) for user, name in lost)


def _lacked(subject: Subject, process: Process, sure: Collection[str]) -> list[tuple[str, str, frozenset[str]]]:
    """Return what the settings say that files of a process open by name, and what is not there for sure.

    That is the file's place, the name, and the folders in which what the file has loaded looks.
    """
    return [
        (file.path, name, frozenset(inheritable_folders(process, index)))
        for index, held in enumerate(process.loader.objects)
        if (file := subject.file_of(held.library))
        for name in subject.settings.opened_by(file.path)
        if not process.loader.has_loaded(name) and not find_ways(subject, process, index, name, sure).is_sure
    ]


def _replaced(comparison: Comparison, pair: _Pair, sure: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name that an object finds for sure, and not in folders that came first, with the folders' words.

    The SDK's libraries are taken to load what those of a machine's toolkit do.
    """
    for name in _names(comparison.before, pair.library):
        was = find_ways(comparison.before, pair.old, pair.index, name, sure)
        now = find_ways(comparison.after, pair.new, pair.counterpart, name, sure)
        gone = [item for item in was.folders.items() if item[0] not in now.folders]
        folders = tuple(
            words for folder, words in gone if not (find_sdk_library(name) and _is_of_system_toolkit(folder))
        )
        if now.is_sure and folders:
            yield name, folders


def _opened_losses(comparison: Comparison, pair: _Pair, is_given_up: Callable[[str, str], bool]) -> Iterator[Loss]:
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
        yield Loss(place, "", tuple(lost), _blamed(comparison, pair))


def _is_of_system_toolkit(folder: str) -> bool:
    return not folder.startswith(f"{SITE}/") and is_toolkit_folder(folder)


def _names(subject: Subject, library: Library) -> tuple[str, ...]:
    """Return what an object needs, and what the settings say that its file opens by name."""
    elf, file = library.elf, subject.file_of(library)
    opened = subject.settings.opened_by(file.path) if file else ()
    return tuple(dict.fromkeys([*(elf.wanted if elf else ()), *opened]))


def _blamed(comparison: Comparison, pair: _Pair) -> tuple[str, ...]:
    """Return the source of the object's file if that is edited, else those of the files whose RPATHs it inherits."""
    return comparison.edited_at([place_of(pair.library)]) or comparison.edited_at(pair.scope)
