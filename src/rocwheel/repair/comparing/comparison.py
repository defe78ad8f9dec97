"""The inputs for comparing a wheel before and after its repair: the same files, in one process each."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.subject import Process, Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.installed.reading.member_paths import path_in_package
from rocwheel.linking.tree_disk import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import InstalledFile

__all__ = ["Comparison", "Loss", "ProcessPair", "scope_places"]


class Loss(msgspec.Struct, frozen=True):
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
